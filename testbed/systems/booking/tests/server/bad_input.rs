//! Bad requests are refused with the field, the reason and the next step, and change nothing.

use engine::Model;
use serde_json::{Value, json};

use crate::{
    suite::Fixture,
    support::{Response, ask, booking_body, day, delete, get, options, post, serve, test_number},
};

pub(crate) fn every_field(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    for (field, value) in wrong_values() {
        let mut body = booking_body(Some(1), &day(1), 1);
        body[field] = value.clone();
        assert_refused_for(&post(to, &body, "").unwrap(), field);
    }
    for field in ["date", "name", "aadhaar"] {
        let mut body = booking_body(Some(1), &day(1), 1);
        body.as_object_mut().unwrap().remove(field);
        assert_refused_for(&post(to, &body, "").unwrap(), field);
    }
    let secret = test_number(1);
    for body in
        ["", "{", "[]", "null", "\"x\"", "{\"room\":1,}", "\u{feff}{}", &format!("{{\"aadhaar\":{secret}")]
    {
        let answer = ask(to, "POST /bookings", "", body.as_bytes()).unwrap();
        assert_eq!(answer.status, 400, "{body}");
        assert!(!answer.body.contains(&secret), "{}", answer.body);
        let hint = answer.json()["hint"].as_str().unwrap().to_owned();
        let example: Value = serde_json::from_str(hint.strip_prefix("send ").unwrap()).unwrap();
        let date = example["date"].as_str().unwrap();
        assert!(*date > *day(1) && *date < *day(365), "{date} can be booked");
    }
    assert_eq!(ask(to, "POST /bookings", "", b"{\"name\":\"\xff\"}").unwrap().status, 400);
    assert_eq!(ask(to, "POST /bookings", "", &vec![b' '; 100_000]).unwrap().status, 413);
    assert_eq!(ask(to, "POST /bookings", "", "[".repeat(60_000).as_bytes()).unwrap().status, 400);
    assert_eq!(ask(to, "PUT /bookings", "", b"").unwrap().field("allow"), Some("POST"));
    assert_eq!(get(to, "/nothing").status, 404);
    assert_eq!(get(to, &format!("/rooms/1?from={}&to={}", day(0), day(300))).json()["booked"], json!([]));
}

fn wrong_values() -> Vec<(&'static str, Value)> {
    let mut swapped = test_number(4_567_890);
    swapped.replace_range(10..12, &swapped[10..12].chars().rev().collect::<String>());
    let all_the_same = test_number(4_567_890) == swapped;
    assert!(!all_the_same, "the swapped digits must differ");
    vec![
        ("room", json!("1")),
        ("room", json!(1.5)),
        ("room", json!(-1)),
        ("room", json!(99)),
        ("room", json!(18_446_744_073_709_551_615_u64)),
        ("room", json!([1])),
        ("date", json!(20_260_301)),
        ("date", json!("2026-02-30")),
        ("date", json!(day(-1))),
        ("date", json!("0001-01-01")),
        ("date", json!("9999-12-31")),
        ("date", json!("tomorrow")),
        ("slot", json!("noon")),
        ("slot", json!("09:00-10:00")),
        ("name", json!("")),
        ("name", json!("x".repeat(10_000))),
        ("name", json!("ж".repeat(10_000))),
        ("name", json!("a\u{0}b")),
        ("name", json!({"first": "Ann"})),
        ("aadhaar", json!(test_number(1).parse::<u64>().unwrap())),
        ("aadhaar", json!("1234")),
        ("aadhaar", json!("9".repeat(10_000))),
        ("aadhaar", json!("' OR 1=1 --")),
        ("aadhaar", json!(swapped)),
        ("nickname", json!("x")),
    ]
}

/// Checks for 422 with the field and the reason, and without the value.
fn assert_refused_for(answer: &Response, field: &str) {
    let refusal = answer.json();
    assert_eq!((answer.status, &refusal["field"]), (422, &json!(field)), "{}", answer.body);
    assert!(
        refusal["reason"].is_string() && refusal["error"].is_string() && answer.body.len() < 500,
        "{}",
        answer.body
    );
}

pub(crate) fn other_sites(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let body = booking_body(Some(1), &day(1), 1);
    for fields in [
        "Origin: https://evil.test\r\nSec-Fetch-Site: cross-site\r\n",
        "Origin: https://evil.test\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        assert_eq!(post(to, &body, fields).unwrap().status, 403, "{fields}");
    }
    let elsewhere = "Sec-Fetch-Site: cross-site\r\n";
    let made = post(to, &body, "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n").unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(delete(to, &made.id(), elsewhere).status, 403);
    assert_eq!(ask(to, "GET /rooms", elsewhere, b"").unwrap().status, 200, "a link on another site");
    assert_eq!(delete(to, &made.id(), "").status, 204, "not from a browser");
}

pub(crate) fn hostile_text(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let names = [
        "Robert'); DROP TABLE bookings;--",
        "<script>alert(1)</script>",
        "a\\'b\\\"c%00d_%",
        "अनन्या शर्मा 🙂",
        "ﷺ ﷽ Z̷a̷l̷g̷o̷",
        "$1 ? :name",
    ];
    for (ahead, name) in (1..).zip(names) {
        let mut body = booking_body(Some(1), &day(ahead), 1);
        body["name"] = json!(name);
        let made = post(to, &body, "Idempotency-Key: '; DELETE FROM rooms\r\n").unwrap();
        if ahead > 1 {
            // The first name used this key.
            assert_refused_for(&made, "Idempotency-Key");
            body["name"] = json!(name);
            let made = post(to, &body, "").unwrap();
            assert_eq!(made.json()["name"], json!(name));
            assert_eq!(get(to, &format!("/bookings/{}", made.id())).json()["name"], json!(name));
        }
    }
    for target in ["/bookings/1'%20OR%201=1", "/bookings/..%2f..", "/rooms/1;DROP", "/rooms/<b>"] {
        let status = ask(to, &format!("GET {target}"), "", b"").unwrap().status;
        assert!(matches!(status, 400 | 404), "{target}: {status}");
    }
    assert_eq!(get(to, "/rooms").json()["rooms"].as_array().unwrap().len(), 3);
}
