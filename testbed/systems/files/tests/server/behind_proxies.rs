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

fn alone(_: &mut Options) {}

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
fn addresses_of_untrusted_proxies_are_ignored() {
    let says = |client| format!("Forwarded: for=192.0.2.{client}\r\n");
    let plain = Place::new(Model::Epoll, |_| ());
    assert!(one_try_each(&plain, says).contains(&429));
}

/// The proxy's own address would count for all of its clients, which is that of the machine.
#[test]
fn a_client_that_contradicts_its_proxy_gets_400() {
    let place = Place::new(Model::Epoll, behind);
    let added = "X-Forwarded-For: 198.51.100.1\r\n";
    for own in
        ["Forwarded: for=192.0.2.1\r\n", "Forwarded: for=127.0.0.1\r\n", "Forwarded: for=\"192.0.2.1\r\n"]
    {
        let answer = get(place.to(), "/me", &(added.to_owned() + own + &basic("ann", PASSWORD)));
        assert_eq!(answer.status, 400, "{own}: {}", answer.body);
        assert!(answer.body.contains("Forwarded"), "{}", answer.body);
    }
    let agreed = format!("{added}Forwarded: for=198.51.100.1\r\n{}", basic("ann", PASSWORD));
    assert_eq!(get(place.to(), "/me", &agreed).status, 200);
}

#[test]
fn metrics_are_not_for_clients_of_a_proxy() {
    let [proxied, alone] = [behind, alone].map(|change: fn(&mut Options)| Place::new(Model::Epoll, change));
    for (place, own) in [(proxied, 403), (alone, 200)] {
        let status = |fields: &str| get(place.to(), "/metrics", fields).status;
        assert_eq!(status(""), own, "the address of a proxy is no program's");
        assert_eq!(status("X-Forwarded-For: 198.51.100.1\r\n"), 403);
        assert_eq!(status("Forwarded: for=198.51.100.1\r\n"), 403);
    }
}

/// nginx adds no header field unless it is told to.
#[test]
fn clients_of_a_trusted_proxy_that_names_nobody_register_no_more_than_others() {
    let place = Place::new(Model::Epoll, behind);
    let mut statuses = (0..40).map(|number| {
        let body = serde_json::json!({ "name": format!("name-{number}"), "password": PASSWORD }).to_string();
        send(place.to(), "POST", "/accounts", "", &body).unwrap().status
    });
    assert!(statuses.any(|status| status == 429));
}

/// Behind a proxy that is not named, every client seems to be on this machine.
#[test]
fn clients_of_a_proxy_that_is_not_trusted_register_no_more_than_others() {
    let place = Place::new(Model::Epoll, |_| ());
    let register = |number: u32, fields: &str| {
        let body = serde_json::json!({ "name": format!("name-{number}"), "password": PASSWORD }).to_string();
        send(place.to(), "POST", "/accounts", fields, &body).unwrap().status
    };
    let passed_on = |number| register(number, "X-Forwarded-For: 127.0.0.1\r\n");
    assert!((0..40).map(passed_on).any(|status| status == 429));
    assert_eq!(register(100, ""), 201, "a program of this machine is not limited");
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
    assert!(!cookie(""));
}
