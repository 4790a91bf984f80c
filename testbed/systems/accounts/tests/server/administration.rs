//! Changing, disabling, deleting and listing accounts, with their revocations and audit entries.

use std::thread;

use http_io::server::Network;

use crate::{
    suite::Fixture,
    support::{Client, PASSWORD, basic, bearer},
};

const NEW: &str = "another horse";

fn change_password(client: &Client, name: &str, old: &str, new: &str) -> u16 {
    let body = serde_json::json!({ "password": new, "old_password": old }).to_string();
    client.ask(&format!("PUT /accounts/{name}/password"), "", &body).status
}

pub(crate) fn made_and_recognised(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    assert_eq!(client.post("/accounts", "ann", NEW).status, 409);
    assert_eq!(client.login("ann", NEW).status, 401);
    assert_eq!(client.login("ann", PASSWORD).body, "{\"name\":\"ann\",\"role\":\"user\",\"quota\":null}\n");
    let token = client.begin("ann");
    let known = client.auth(&format!("Bearer {token}")).json();
    assert_eq!((known["name"].as_str(), known["role"].as_str()), (Some("ann"), Some("user")));
    assert_eq!(client.ask("DELETE /sessions", &bearer(&token), "").status, 204);
    assert_eq!(client.auth(&format!("Bearer {token}")).status, 401, "logged out");
    assert_eq!(client.ask("DELETE /sessions", &bearer(&token), "").status, 401);
}

pub(crate) fn changed_passwords(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    let (_other_server, other) = fixture.serve();
    client.make("ann");
    client.make("bob");
    let (anns, bobs) = (client.begin("ann"), client.begin("bob"));
    assert_eq!(change_password(&client, "ann", PASSWORD, NEW), 204);
    for server in [&client, &other] {
        assert_eq!(server.login("ann", PASSWORD).status, 401);
        assert_eq!(server.login("ann", NEW).status, 200);
        assert_eq!(server.auth(&format!("Bearer {anns}")).status, 401, "her sessions ended");
        assert_eq!(server.auth(&format!("Bearer {bobs}")).status, 200, "his did not");
    }
}

pub(crate) fn who_may_change(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    client.make("bob");
    assert_eq!(change_password(&client, "ann", NEW, NEW), 401);
    assert_eq!(change_password(&client, "nobody", PASSWORD, NEW), 401, "as for a wrong password");
    let put = |fields: &str, body: &str| client.ask("PUT /accounts/ann/password", fields, body);
    let set = format!(r#"{{"password": "{NEW}"}}"#);
    assert_eq!(put("", &set).json()["field"], "old_password");
    assert_eq!(put(&format!("Authorization: {}\r\n", basic("bob", PASSWORD)), &set).status, 403);
    let own = put(&bearer(&client.begin("ann")), &set);
    assert_eq!(
        (own.status, &own.json()["field"]),
        (422, &"old_password".into()),
        "a stolen token changes nothing"
    );
    let elsewhere = client.ask("PUT /accounts/ann/password", "Origin: https://evil.test\r\n", &set);
    assert_eq!(elsewhere.status, 403, "asked for by another site");
    assert_eq!(client.login("ann", PASSWORD).status, 200, "nothing was changed");
    assert_eq!(client.admin("PUT /accounts/ann/password", &set).status, 204);
    assert_eq!(client.login("ann", NEW).status, 200);
    assert_eq!(client.admin("PUT /accounts/nobody/password", &set).status, 404);
}

pub(crate) fn disabled_and_expired(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    let token = client.begin("ann");
    let wrong = client.login("ann", "wrong horse");
    for (shut, open) in [
        (r#"{"disabled": true}"#, r#"{"disabled": false}"#),
        (r#"{"expires": "2020-01-01T00:00:00Z"}"#, r#"{"expires": null}"#),
    ] {
        assert_eq!(client.patch("ann", shut).status, 200);
        let refused = client.login("ann", PASSWORD);
        assert_eq!((refused.status, &refused.body), (401, &wrong.body), "{shut}");
        assert_eq!(refused.head.lines().count(), wrong.head.lines().count());
        assert_eq!(client.auth(&format!("Bearer {token}")).status, 401);
        assert_eq!(client.patch("ann", open).status, 200);
        assert_eq!(client.login("ann", PASSWORD).status, 200);
    }
    assert_eq!(client.auth(&format!("Bearer {token}")).status, 401, "disabling ended the session");
    assert_eq!(client.patch("ann", r#"{"expires": "2999-01-01T00:00:00Z"}"#).status, 200);
    let until = client.login("ann", PASSWORD).json()["expires_in_s"].as_u64();
    assert!(until.is_some_and(|left_s| left_s > 3600), "who remembers is told when it ends: {until:?}");
}

pub(crate) fn deleted_accounts(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    let token = client.begin("ann");
    assert_eq!(client.admin("DELETE /accounts/ann", "").status, 204);
    assert_eq!(client.admin("DELETE /accounts/ann", "").status, 404);
    assert_eq!(client.login("ann", PASSWORD).status, 401);
    client.make("bob");
    let body = format!(r#"{{"name": "ann", "password": "{PASSWORD}"}}"#);
    let bobs = bearer(&client.begin("bob"));
    for stranger in ["", &bearer(&token), &bobs] {
        assert_eq!(
            client.ask("POST /accounts", stranger, &body).status,
            409,
            "her files are not a stranger's"
        );
    }
    assert_eq!(client.admin("POST /accounts", &body).status, 201);
    assert_eq!(client.admin("POST /accounts", &body).status, 409);
    assert_eq!(client.login("ann", PASSWORD).status, 200);
    assert_eq!(client.auth(&format!("Bearer {token}")).status, 401, "of the one before");
    assert_eq!(client.admin("DELETE /accounts/ann", "").status, 204);
    assert_eq!(client.post("/accounts", "ann", PASSWORD).status, 409, "still");
}

pub(crate) fn only_administrators(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    client.make("bob");
    let anns = format!("Authorization: {}\r\n", basic("ann", PASSWORD));
    let requests = [
        ("GET /accounts", ""),
        ("GET /accounts/bob", ""),
        ("PATCH /accounts/ann", r#"{"role": "admin"}"#),
        ("DELETE /accounts/bob", ""),
        ("GET /audit", ""),
    ];
    for (line, body) in requests {
        let nameless = client.ask(line, "", body);
        assert_eq!(nameless.status, 401, "{line}");
        assert_eq!(nameless.json()["error"], "a name and password, or a token, are needed");
        assert_eq!(client.ask(line, &bearer(&"A".repeat(43)), body).status, 401, "{line}");
        assert_eq!(client.ask(line, &anns, body).status, 403, "{line}");
    }
    let own = client.ask("GET /accounts/ann", &anns, "");
    assert_eq!((own.status, own.json()["role"].as_str()), (200, Some("user")), "{}", own.body);
    assert_eq!(client.ask("GET /accounts/no-such", &anns, "").status, 403, "as if there were one");

    assert_eq!(client.patch("ann", r#"{"role": "admin"}"#).status, 200);
    assert_eq!(client.login("ann", PASSWORD).json()["role"], "admin");
    for (line, body) in requests {
        let answer = client.ask(line, &anns, body);
        assert!([200, 204].contains(&answer.status), "{line}: {}", answer.body);
    }
}

pub(crate) fn listing(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    for name in ["eve", "Bob", "ann", "a@b"] {
        client.make(name);
    }
    let names = |target: &str| {
        let list = client.admin(&format!("GET {target}"), "").json();
        let names = list["accounts"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|account| account["name"].as_str().unwrap().to_owned()).collect();
        (names.join(" "), list["next_after"].as_str().map(str::to_owned))
    };
    assert_eq!(names("/accounts"), ("Bob a@b ann eve".into(), None));
    assert_eq!(names("/accounts?limit=2"), ("Bob a@b".into(), Some("a@b".into())));
    assert_eq!(names("/accounts?limit=2&after=a%40b"), ("ann eve".into(), Some("eve".into())));
    assert_eq!(names("/accounts?limit=2&after=eve"), (String::new(), None));
    let changed = client.patch("a%40b", r#"{"quota": 5000000000, "expires": "2999-01-01T01:00:00+01:00"}"#);
    let mut shown = client.admin("GET /accounts/a%40b", "").json();
    assert_eq!(changed.json(), shown);
    assert!(shown["created"].take().as_str().is_some_and(|at| at.ends_with('Z')));
    let expected = serde_json::json!({"name": "a@b", "role": "user", "quota": 5_000_000_000_u64,
        "disabled": false, "expires": "2999-01-01T00:00:00Z", "created": null});
    assert_eq!(shown, expected);
    assert_eq!(client.login("a@b", PASSWORD).json()["quota"], 5_000_000_000_u64);
}

pub(crate) fn bad_input(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    let before = client.admin("GET /accounts/ann", "").body;
    for (body, field) in [
        (r#"{"role": "root"}"#, "role"),
        (r#"{"role": 1}"#, "role"),
        (r#"{"disabled": "yes"}"#, "disabled"),
        (r#"{"expires": "tomorrow"}"#, "expires"),
        (r#"{"expires": "2027-02-30T00:00:00Z"}"#, "expires"),
        (r#"{"expires": 1801418400}"#, "expires"),
        (r#"{"quota": -1}"#, "quota"),
        (r#"{"quota": "1 GB"}"#, "quota"),
        (r#"{"quota": 1.5}"#, "quota"),
        (r#"{"disabled": true, "quotta": 1}"#, "quotta"),
        (r#"{"password": "correct horse"}"#, "password"),
    ] {
        let answer = client.patch("ann", body);
        assert_eq!((answer.status, answer.json()["field"].as_str()), (422, Some(field)), "{body}");
    }
    for body in ["", "[]", "{}", r#"{"role": "#] {
        assert_eq!(client.patch("ann", body).status, 400, "{body}");
    }
    for query in ["limit=0", "limit=x", "after=%zz", "befor=1"] {
        assert_eq!(client.admin(&format!("GET /accounts?{query}"), "").status, 422, "{query}");
    }
    for (body, field) in [(r#"{"password": "short"}"#, "password"), (r#"{"pasword": "x"}"#, "password")] {
        let answer = client.admin("PUT /accounts/ann/password", body);
        assert_eq!((answer.status, answer.json()["field"].as_str()), (422, Some(field)), "{body}");
    }
    for name in ["nobody", "a%20b", "%00", "a%2Fb", "x;--"] {
        assert_eq!(client.patch(name, r#"{"disabled": true}"#).status, 404, "{name}");
    }
    assert_eq!(client.admin("GET /accounts/ann", "").body, before, "nothing was changed");
    assert_eq!(client.login("ann", PASSWORD).status, 200);
}

fn asked(client: &Client, after: &str) -> (u64, Option<Vec<u64>>) {
    let told = client.ask(&format!("GET /revocations{after}"), "", "").json();
    let buckets = told["buckets"].as_array();
    let buckets = buckets.map(|buckets| buckets.iter().map(|bucket| bucket.as_u64().unwrap()).collect());
    (told["revision"].as_u64().unwrap(), buckets)
}

pub(crate) fn revocations(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    let (_other_server, other) = fixture.serve();
    client.make("ann");
    client.make("bob");
    let bucket = |name| u64::from(accounts::bucket(name));
    let (mut revision, none) = asked(&other, "");
    assert_eq!(none, Some(vec![]), "making accounts revokes nothing");
    let acts: [(&str, &dyn Fn() -> u16); 6] = [
        ("ann", &|| change_password(&client, "ann", PASSWORD, NEW)),
        ("bob", &|| client.patch("bob", r#"{"disabled": true}"#).status),
        ("bob", &|| client.patch("bob", r#"{"disabled": false}"#).status),
        ("bob", &|| client.ask("DELETE /sessions", &bearer(&client.begin("bob")), "").status),
        ("ann", &|| client.patch("ann", r#"{"quota": 1, "role": "admin"}"#).status),
        ("bob", &|| client.admin("DELETE /accounts/bob", "").status),
    ];
    let first = revision;
    for (name, act) in acts {
        let status = act();
        assert!([200, 204].contains(&status), "{status}");
        let (next, buckets) = asked(&other, &format!("?after={revision}"));
        assert_eq!((next, buckets), (revision + 1, Some(vec![bucket(name)])));
        revision = next;
    }
    let mut both = vec![bucket("ann"), bucket("bob")];
    both.sort_unstable();
    assert_eq!(asked(&client, &format!("?after={first}")), (revision, Some(both)));
    assert_eq!(asked(&client, "?after=999"), (revision, None), "what never was");
    assert_eq!(change_password(&client, "ann", PASSWORD, NEW), 401);
    assert_eq!(client.patch("bob", r#"{"disabled": true}"#).status, 404);
    assert_eq!(asked(&client, "").0, revision, "what failed revokes nothing");
    assert_eq!(client.ask("GET /revocations?after=x", "", "").json()["field"], "after");
}

pub(crate) fn audit(fixture: &Fixture) {
    let behind = ["127.0.0.1", "10.0.0.0/8"].map(|proxy| proxy.parse::<Network>().unwrap());
    let (_server, client) =
        fixture.serve_with(|options| options.server.proxies = behind.into_iter().collect());
    client.make("ann");
    client.make("bob");
    assert_eq!(client.patch("ann", r#"{"role": "admin", "quota": null}"#).status, 200);
    let anns =
        format!("Authorization: {}\r\nX-Forwarded-For: 192.0.2.7, 10.0.0.9\r\n", basic("ann", PASSWORD));
    assert_eq!(client.ask("PATCH /accounts/bob", &anns, r#"{"disabled": true}"#).status, 200);
    assert_eq!(client.ask("DELETE /accounts/bob", &anns, "").status, 204);
    assert_eq!(change_password(&client, "ann", PASSWORD, NEW), 204);
    for name in ["ann", "no-such-name"] {
        for _ in 0..5 {
            client.login(name, "wrong horse");
        }
    }
    let first = client.admin("GET /audit?limit=4", "").json();
    let after = first["next_after"].as_i64().unwrap();
    let rest = client.admin(&format!("GET /audit?after={after}"), "");
    assert_eq!(rest.json()["next_after"], serde_json::Value::Null);
    let entries: Vec<_> = [&first, &rest.json()]
        .into_iter()
        .flat_map(|list| list["entries"].as_array().unwrap().clone())
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap().to_owned();
            assert!(text("at").starts_with("20") && entry["id"].is_i64());
            ["actor", "address", "action", "account", "detail"].map(text).join("|")
        })
        .collect();
    let expected = [
        "ann|127.0.0.1|created|ann|",
        "bob|127.0.0.1|created|bob|",
        "(admin token)|127.0.0.1|changed|ann|role=admin quota=none",
        "ann|192.0.2.7|changed|bob|disabled=true",
        "ann|192.0.2.7|deleted|bob|",
        "ann|127.0.0.1|password changed|ann|",
        "(unknown)|127.0.0.1|failed logins slowed|ann|",
        "(unknown)|127.0.0.1|failed logins slowed||",
    ];
    assert_eq!(entries, expected);
    let all = client.admin("GET /audit", "").body;
    assert!(!all.contains("no-such-name"), "it may be a mistyped password");
    assert!([PASSWORD, NEW, client.admin_token(), "$argon2"].iter().all(|secret| !all.contains(secret)));
}

pub(crate) fn racing_changes(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    let new = |n: usize| format!("new password {n}");
    let statuses: Vec<_> = thread::scope(|scope| {
        let client = &client;
        let changing: Vec<_> =
            (0..4).map(|n| scope.spawn(move || change_password(client, "ann", PASSWORD, &new(n)))).collect();
        changing.into_iter().map(|changed| changed.join().unwrap()).collect()
    });
    let done: Vec<_> = (0..4).filter(|&n| statuses[n] == 204).collect();
    assert_eq!(done.len(), 1, "{statuses:?}");
    assert_eq!(client.login("ann", &new(done[0])).status, 200);
    let entries = client.admin("GET /audit", "").body.matches("password changed").count();
    assert_eq!(entries, 1, "and the audit has that one");
}

pub(crate) fn closed_registration(fixture: &Fixture) {
    let (_server, client) =
        fixture.serve_with(|options| options.registration = accounts::Registration::Closed);
    let make = |fields: &str, name: &str| {
        let body = serde_json::json!({ "name": name, "password": PASSWORD }).to_string();
        let made = client.ask("POST /accounts", fields, &body);
        (made.status, made.body)
    };
    let (status, why) = make("", "ann");
    assert!(status == 403 && why.contains("administrator"), "{why}");
    let admin = bearer(client.admin_token());
    assert_eq!(make(&admin, "ann").0, 201);
    let anns = format!("Authorization: {}\r\n", basic("ann", PASSWORD));
    assert_eq!(make(&anns, "bob").0, 403, "she is no administrator");
    assert_eq!(make("Authorization: Bearer nonsense\r\n", "bob").0, 401);
    assert_eq!(client.patch("ann", r#"{"role": "admin"}"#).status, 200);
    assert_eq!((make(&anns, "bob").0, make(&anns, "bob").0), (201, 409));
}

pub(crate) fn wrong_tokens(fixture: &Fixture) {
    let (_server, client) = fixture.serve();
    client.make("ann");
    let wrong = client.auth("Bearer nonsense");
    assert_eq!((wrong.status, wrong.body.contains("the token is wrong")), (401, true), "{}", wrong.body);
    let wrong = client.login("ann", "wrong horse");
    assert!(wrong.body.contains("the name or the password is wrong"), "{}", wrong.body);
}
