//! Failed logins are slowed down.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use crate::{
    suite::Fixture,
    support::{Client, PASSWORD, Response, basic, bearer},
};

fn login_from(client: &Client, address: &str, name: &str, password: &str) -> Response {
    let fields =
        format!("X-Forwarded-For: 203.0.113.1, {address}\r\nAuthorization: {}\r\n", basic(name, password));
    client.ask("GET /auth", &fields, "")
}

/// Tries until it is slowed down. Returns the responses before, and the one that says so. On a slow machine a wait may be
/// over before the next attempt, so that there are more attempts; the last waits are longer than that.
pub(crate) fn until_slowed(mut attempt: impl FnMut() -> Response) -> (Vec<Response>, Response) {
    let mut before = Vec::new();
    loop {
        let answer = attempt();
        if answer.status == 429 {
            return (before, answer);
        }
        assert!(before.len() < 30, "nothing slows it down");
        before.push(answer);
    }
}

pub(crate) fn known_or_not(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    let told = |name: &str| {
        let (before, slowed) = until_slowed(|| client.post("/sessions", name, "wrong horse"));
        assert!(before.len() >= 5 && before.iter().all(|answer| answer.status == 401), "{name}");
        assert!(slowed.field("retry-after").is_some_and(|wait_s| wait_s.parse::<u64>().unwrap() >= 1));
        (before[0].body.clone(), slowed.json()["error"].as_str().unwrap()[..27].to_owned())
    };
    assert_eq!(told("ann"), told("nobody"));
    let slowed = Instant::now();
    while client.login("ann", PASSWORD).status != 200 {
        assert!(slowed.elapsed() < Duration::from_secs(60), "it never ends");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn owner_comes_in(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    for number in 0..14 {
        let stranger = format!("198.51.100.{number}");
        assert_eq!(login_from(&client, &stranger, "ann", "wrong horse").status, 401, "its first try");
    }
    assert_eq!(login_from(&client, "198.51.100.1", "ann", "wrong horse").status, 429, "its second");
    assert_eq!(login_from(&client, "192.0.2.1", "ann", PASSWORD).status, 200);
    let changed = r#"{"password": "another horse", "old_password": "wrong horse"}"#;
    let change = |address: &str| {
        let fields = format!("X-Forwarded-For: {address}\r\n");
        client.ask("PUT /accounts/ann/password", &fields, changed).status
    };
    assert_eq!((change("192.0.2.2"), change("192.0.2.2")), (401, 429), "changing a password is a try, too");
}

/// After the free ones, registrations are slowed down, but not for administrators, other addresses or this machine.
pub(crate) fn registrations(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    let mut made = 0;
    let mut make = |fields: &str| {
        made += 1;
        let body = serde_json::json!({ "name": format!("name-{made}"), "password": PASSWORD }).to_string();
        client.ask("POST /accounts", fields, &body)
    };
    let (before, crowded) = until_slowed(|| make("X-Forwarded-For: 192.0.2.1\r\n"));
    assert!(before.len() >= 20 && before.iter().all(|answer| answer.status == 201), "{}", before.len());
    assert!(crowded.body.contains("too many accounts"), "{}", crowded.body);
    assert!(crowded.field("retry-after").is_some_and(|wait_s| wait_s.parse::<u64>().unwrap() >= 1));
    let (hidden, _) = until_slowed(|| make("X-Forwarded-For: unknown, 127.0.0.1\r\n"));
    assert!(hidden.iter().all(|answer| answer.status == 201), "the first of a proxy on this machine");
    let admin = bearer(client.admin_token()) + "X-Forwarded-For: 192.0.2.1\r\n";
    for fields in ["X-Forwarded-For: 192.0.2.2\r\n", "", &admin] {
        assert_eq!(make(fields).status, 201, "{fields}");
    }
}

/// Many addresses fill the queue of the hashers, but not the part of those who logged in lately from where they are.
pub(crate) fn flooded_logins(fixture: &Fixture) {
    let (_server, client) =
        fixture.serve_with(|options| (options.hashers, options.hash_queue) = (Some(1), Some(8)));
    client.make("ann");
    let ann = || login_from(&client, "192.0.2.9", "ann", PASSWORD).status;
    assert_eq!(ann(), 200);
    let (is_over, refused) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for stranger in 0..16 {
            let (client, is_over, refused) = (&client, &is_over, &refused);
            scope.spawn(move || {
                for n in 0..250 {
                    if is_over.load(Relaxed) {
                        break;
                    }
                    let status =
                        login_from(client, &format!("198.51.{stranger}.{n}"), "bob", "wrong horse").status;
                    refused.fetch_add(u32::from(status == 503), Relaxed);
                }
            });
        }
        while refused.load(Relaxed) < 16 {
            thread::yield_now();
        }
        let statuses: Vec<u16> = (0..4).map(|_| ann()).collect();
        is_over.store(true, Relaxed);
        assert_eq!(statuses, [200; 4]);
    });
}

/// Whether a name is taken is told to whoever registers, and so no more often than one may register.
pub(crate) fn taken_names(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    let body = serde_json::json!({ "name": "ann", "password": PASSWORD }).to_string();
    let (before, _) = until_slowed(|| client.ask("POST /accounts", "X-Forwarded-For: 192.0.2.3\r\n", &body));
    assert!(before.iter().all(|answer| answer.status == 409), "{}", before.len());
}
