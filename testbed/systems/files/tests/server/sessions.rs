//! Logins with a cookie, which works like a token and is useless to other sites.

use engine::Model;

use crate::{
    support::{PASSWORD, Response, ask, basic, get, send},
    uploads::Place,
};

fn log_in(place: &Place, password: &str, fields: &str) -> Response {
    let body = serde_json::json!({"name": "ann", "password": password}).to_string();
    send(place.to(), "POST", "/login", fields, &body).unwrap()
}

fn cookie(place: &Place) -> String {
    let begun = log_in(place, PASSWORD, "");
    let (cookie, _) = begun.field("set-cookie").unwrap().split_once(';').unwrap();
    format!("Cookie: other=1; {cookie}\r\n")
}

#[test]
fn the_cookie_admits_until_logout() {
    let place = Place::new(Model::Epoll, |_| ());
    let begun = log_in(&place, PASSWORD, "");
    assert_eq!((begun.status, &*begun.body), (204, ""), "the token is in the cookie only");
    let set = begun.field("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "over plain HTTP it would never come back");
    let cookie = cookie(&place);
    assert_eq!(send(place.to(), "PUT", "/files/users/ann/a", &cookie, "hello").unwrap().status, 201);
    let part = get(place.to(), "/files/users/ann/a", &(cookie.clone() + "Range: bytes=1-2\r\n"));
    assert_eq!((part.status, part.body), (206, "el".into()));
    let ended = ask(place.to(), "POST", "/logout", &cookie);
    assert!(ended.status == 204 && ended.field("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(
        get(place.to(), "/files/users/ann/a", &cookie).status,
        401,
        "a copy of it is good for nothing"
    );
    assert_eq!(log_in(&place, "wrong password", "").status, 401);
    for wrong in
        ["Cookie: nstar-session=\r\n", "Cookie: nstar-session=a b\r\n", "Cookie: nstar-session=AAAA\r\n"]
    {
        assert_eq!(get(place.to(), "/files/users/ann/a", wrong).status, 401, "{wrong}");
    }
    let ended = get(place.to(), "/files/users/ann/a", "Authorization: Bearer nonsense\r\n");
    assert!(ended.body.contains("the token is wrong"), "{}", ended.body);
    let other = cookie + "Authorization: Basic nonsense\r\n";
    assert_eq!(get(place.to(), "/files/users/ann/a", &other).status, 401, "what is presented is what counts");
}

#[test]
fn over_tls_the_cookie_is_secure() {
    let place = Place::new(Model::Epoll, |options| options.encrypted = true);
    let begun = log_in(&place, PASSWORD, "");
    let set = begun.field("set-cookie").unwrap();
    assert!(set.starts_with("__Host-nstar-session=") && set.ends_with("; Secure"), "{set}");
    let token = set.split(['=', ';']).nth(1).unwrap();
    let status = |cookie: &str| get(place.to(), "/me", &format!("Cookie: {cookie}\r\n")).status;
    assert_eq!(status(&format!("__Host-nstar-session={token}")), 200);
    assert_eq!(status(&format!("nstar-session={token}")), 401, "another host of the domain may have set it");
}

/// Somebody who can set a cookie for the domain must not choose as whom a user works.
#[test]
fn of_two_cookies_neither_admits() {
    let place = Place::new(Model::Epoll, |_| ());
    let cookie = cookie(&place);
    let (own, other) = (cookie.trim_end(), "nstar-session=AAAA");
    assert_eq!(get(place.to(), "/me", &format!("{own}\r\n")).status, 200);
    for both in
        [format!("{own}; {other}"), format!("{own}\r\nCookie: {other}"), format!("{own}; nstar-session=")]
    {
        assert_eq!(get(place.to(), "/me", &format!("{both}\r\n")).status, 401, "{both}");
    }
}

#[test]
fn browsers_are_told_what_others_may_do_with_responses() {
    let place = Place::new(Model::Epoll, |options| options.encrypted = true);
    place.put("users/ann/a", "", "hello");
    let ann = basic("ann", PASSWORD);
    for (path, fields) in [
        ("/", "Accept: text/html\r\n".to_owned()),
        ("/me", ann.clone()),
        ("/files/users/ann/", ann.clone()),
        ("/files/users/ann/a", ann.clone()),
        ("/files/users/ann/a", ann.clone() + "Range: bytes=1-2\r\n"),
    ] {
        let answer = get(place.to(), path, &fields);
        assert_eq!(answer.field("cross-origin-resource-policy"), Some("same-origin"), "{path}");
    }
    let page = |host: &str| {
        crate::support::raw(
            place.to(),
            &format!("GET / HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n"),
        )
    };
    assert_eq!(page("files.example.org").field("strict-transport-security"), Some("max-age=31536000"));
    assert_eq!(page("localhost").field("strict-transport-security"), None, "others are there too");
}

#[test]
fn other_sites_cannot_change_anything() {
    let place = Place::new(Model::Epoll, |_| ());
    let cookie = cookie(&place);
    let put = |fields: &str| {
        let fields = cookie.clone() + fields;
        send(place.to(), "PUT", "/files/users/ann/a", &fields, "x").unwrap().status
    };
    for other in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
    ] {
        assert_eq!(put(other), 403, "{other}");
        let delete = ask(place.to(), "DELETE", "/files/users/ann/a", &(cookie.clone() + other));
        assert_eq!(delete.status, 403, "{other}");
        assert_eq!(log_in(&place, PASSWORD, other).status, 403, "{other}");
    }
    assert!(!place.path("users/ann/a").exists());
    // The client of these tests sends `Host: localhost`.
    for own in [
        "Sec-Fetch-Site: same-origin\r\n",
        "Origin: http://localhost\r\n",
        "Origin: https://localhost\r\n",
        "",
    ] {
        assert!(matches!(put(own), 201 | 204), "{own}");
    }
}

#[test]
fn scripts_get_no_basic_challenge_and_programs_do() {
    let place = Place::new(Model::Epoll, |_| ());
    let challenges =
        |fields: &str| -> String { get(place.to(), "/me", fields).fields("www-authenticate").collect() };
    assert!(challenges("").contains("Basic"));
    assert!(challenges("Sec-Fetch-Dest: document\r\n").contains("Basic"));
    let script = challenges("Sec-Fetch-Dest: empty\r\n");
    assert!(!script.contains("Basic") && script.contains("Bearer"), "{script}");
    assert!(
        !log_in(&place, "wrong password", "").fields("www-authenticate").any(|field| field.contains("Basic"))
    );
}

#[test]
fn the_page_is_for_browsers_and_runs_its_own_script_only() {
    let place = Place::new(Model::Epoll, |_| ());
    let page = get(place.to(), "/", "Accept: text/html,*/*;q=0.8\r\n");
    assert_eq!((page.status, page.field("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.field("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'")
            && policy.contains("script-src 'nonce-")
            && !policy.contains("unsafe")
    );
    assert!(!page.body.contains("NONCE") && !page.body.contains("src=\"http"));
    assert_eq!(get(place.to(), "/", "").field("location"), Some("/files/"));
}
