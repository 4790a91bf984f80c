//! Logins with a cookie, which works like a token and is useless to other sites.

use engine::Model;

use crate::{
    support::{PASSWORD, Response, ask, get, send},
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
    assert!(log_in(&place, PASSWORD, "").field("set-cookie").unwrap().ends_with("; Secure"));
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
