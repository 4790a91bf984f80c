//! Behind a proxy: its clients are distinguished if it is trusted, and not otherwise.

use engine::Model;
use files::Options;
use http_io::server::Network;

use crate::{
    support::{PASSWORD, basic, get, send},
    uploads::Place,
};

fn behind(options: &mut Options) {
    options.proxies = ["127.0.0.0/8".parse::<Network>().unwrap()].into_iter().collect();
}

/// The statuses of attempts by this many clients with one name, one attempt each.
fn one_try_each(place: &Place, says: impl Fn(u32) -> String) -> Vec<u16> {
    let guess = |client| get(place.to(), "/files/a", &(says(client) + &basic("ann", "wrong horse"))).status;
    (1..=14).map(guess).collect()
}

#[test]
fn each_client_of_a_proxy_is_slowed_down_separately() {
    let place = Place::new(Model::Epoll, behind);
    let says = |client| format!("X-Forwarded-For: 203.0.113.9, 192.0.2.{client}\r\n");
    assert_eq!(one_try_each(&place, says), [401; 14]);
    let again = get(place.to(), "/files/a", &(says(1) + &basic("ann", "wrong horse")));
    assert_eq!(again.status, 429, "one of them tries once more: {}", again.body);
}

#[test]
fn untrusted_and_contradictory_addresses_are_ignored() {
    let says = |client| format!("Forwarded: for=192.0.2.{client}\r\n");
    let plain = Place::new(Model::Epoll, |_| ());
    assert!(one_try_each(&plain, says).contains(&429));
    let proxied = Place::new(Model::Epoll, behind);
    let both = |client| format!("X-Forwarded-For: 198.51.100.1\r\n{}", says(client));
    assert!(one_try_each(&proxied, both).contains(&429), "a field that the proxy passes on is the client's");
}

#[test]
fn a_client_that_reached_the_proxy_over_tls_gets_a_secure_cookie() {
    let place = Place::new(Model::Epoll, behind);
    let cookie = |fields: &str| {
        let body = serde_json::json!({"name": "ann", "password": PASSWORD}).to_string();
        let begun = send(place.to(), "POST", "/login", fields, &body).unwrap();
        begun.field("set-cookie").unwrap().ends_with("; Secure")
    };
    assert!(cookie("Forwarded: for=\"[2001:db8::1]:4711\";proto=https\r\n"));
    assert!(cookie("X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\n"));
    assert!(!cookie("Forwarded: for=192.0.2.1;proto=http\r\n"));
    assert!(!cookie("") && !cookie("Forwarded: for=\"192.0.2.1;proto=https\r\n"));
}
