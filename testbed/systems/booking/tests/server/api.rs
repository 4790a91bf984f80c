//! Booking, cancelling and reading.

use std::{fs::File, io::Write as _, net::SocketAddr, os::unix::fs::OpenOptionsExt, path::Path};

use engine::Model;
use http_io::server::Network;
use serde_json::{Value, json};

use crate::{
    suite::Fixture,
    support::{ask, booking_body, day, delete, get, options, post, serve, test_number},
};

/// The models that do not fork: a forked child would lack the threads of this process.
const IN_ONE_PROCESS: [Model; 8] = [
    Model::Threads,
    Model::Pool,
    Model::Polling,
    Model::Select,
    Model::Poll,
    Model::Epoll,
    Model::Aio,
    Model::Uring,
];

pub(crate) fn rooms_are_booked_once(fixture: &Fixture) {
    for (ahead, model) in (1..).step_by(10).zip(IN_ONE_PROCESS) {
        let server = serve(model, options(&fixture.database, fixture.folder()));
        let to = server.local_addr();
        let made = post(to, &booking_body(Some(2), &day(ahead), 1), "").unwrap();
        assert_eq!(made.status, 201, "{}", made.body);
        let view = made.json();
        assert_eq!((view["room"].as_i64(), view["room_name"].as_str()), (Some(2), Some("Room 2")));
        assert_eq!((view["date"].as_str(), view["version"].as_i64()), (Some(day(ahead).as_str()), Some(1)));
        let id = made.id();
        assert_eq!(made.field("location"), Some(format!("/bookings/{id}").as_str()));
        assert_eq!((made.field("etag"), made.field("cache-control")), (Some("\"1\""), Some("no-store")));
        assert_eq!(get(to, &format!("/bookings/{id}")).json(), view);

        assert_eq!(post(to, &booking_body(Some(2), &day(ahead + 1), 2), "").unwrap().status, 201);
        let taken = post(to, &booking_body(Some(2), &day(ahead), 3), "").unwrap();
        assert_eq!(taken.status, 409);
        assert_eq!(taken.json()["free_next"], json!({"date": day(ahead + 2)}), "{}", taken.body);
        assert!(!taken.body.contains("Guest"), "{}", taken.body);

        assert_eq!(delete(to, &id, "").status, 204);
        assert_eq!(delete(to, &id, "").status, 404, "it is cancelled already");
        assert_eq!(get(to, &format!("/bookings/{id}")).json()["cancelled"], json!(true));
        assert_eq!(post(to, &booking_body(Some(2), &day(ahead), 3), "").unwrap().status, 201);
        assert_eq!(delete(to, "1-00000000000000000000", "").status, 404, "ids cannot be guessed");
    }
}

pub(crate) fn any_room_will_do(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let mut rooms: Vec<_> = (0..3)
        .map(|guest| {
            let made = post(to, &booking_body(None, &day(3), guest), "").unwrap();
            assert_eq!(made.status, 201, "{}", made.body);
            made.json()["room"].as_i64().unwrap()
        })
        .collect();
    rooms.sort_unstable();
    assert_eq!(rooms, [1, 2, 3]);
    assert_eq!(post(to, &booking_body(Some(1), &day(4), 4), "").unwrap().status, 201);
    let full = post(to, &booking_body(None, &day(3), 5), "").unwrap();
    assert_eq!((full.status, &full.json()["free_next"]["date"]), (409, &json!(day(4))), "{}", full.body);
}

pub(crate) fn slots_are_booked_apart(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let hall =
        add_room(fixture.folder(), to, &json!({"name": "Hall", "slots": ["09:00-12:00", "13:00-17:00"]}));
    let book = |slot: Option<&str>, ahead| {
        let mut body = booking_body(Some(hall), &day(ahead), 1);
        body["slot"] = json!(slot);
        post(to, &body, "").unwrap()
    };
    assert_eq!(book(Some("09:00-12:00"), 1).status, 201);
    let taken = book(Some("09:00-12:00"), 1);
    assert_eq!(taken.json()["free_next"], json!({"date": day(1), "slot": "13:00-17:00"}), "{}", taken.body);
    assert_eq!(book(Some("13:00-17:00"), 1).json()["slot"], json!("13:00-17:00"));
    assert_eq!(
        book(Some("13:00-17:00"), 1).json()["free_next"],
        json!({"date": day(2), "slot": "09:00-12:00"})
    );
    for (slot, room) in [(None, hall), (Some("12:00-13:00"), hall), (Some("09:00-12:00"), 1)] {
        let mut body = booking_body(Some(room), &day(5), 1);
        body["slot"] = json!(slot);
        let answer = post(to, &body, "").unwrap();
        assert_eq!((answer.status, &answer.json()["field"]), (422, &json!("slot")), "{slot:?} of {room}");
    }
}

pub(crate) fn repeated_requests(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let key = "Idempotency-Key: 7c1e\r\n";
    for (room, ahead) in [(Some(1), 1), (None, 2)] {
        let key = format!("Idempotency-Key: key-{ahead}\r\n");
        let first = post(to, &booking_body(room, &day(ahead), 1), &key).unwrap();
        let again = post(to, &booking_body(room, &day(ahead), 1), &key).unwrap();
        assert_eq!((first.status, again.status), (201, 201), "{}", again.body);
        assert_eq!(first.json(), again.json());
    }
    // All rooms but one are still free on the second day.
    assert_eq!(post(to, &booking_body(None, &day(2), 2), "").unwrap().status, 201);
    let made = post(to, &booking_body(None, &day(2), 3), key).unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    let other_room = made.json()["room"].as_i64().map(|room| room % 3 + 1);
    assert_eq!(post(to, &booking_body(None, &day(2), 4), "").unwrap().status, 409);
    // The same holds on a full day.
    assert_eq!(post(to, &booking_body(None, &day(2), 3), key).unwrap().status, 201);

    for other in [
        booking_body(Some(1), &day(3), 1),
        booking_body(other_room, &day(2), 3),
        booking_body(None, &day(2), 9),
    ] {
        let answer = post(to, &other, key).unwrap();
        assert_eq!((answer.status, &answer.json()["field"]), (422, &json!("Idempotency-Key")), "{other}");
    }
    let long = format!("Idempotency-Key: {}\r\n", "k".repeat(256));
    assert_eq!(post(to, &booking_body(Some(1), &day(9), 1), &long).unwrap().status, 422);
}

pub(crate) fn changed_bookings(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let id = post(to, &booking_body(Some(1), &day(1), 1), "").unwrap().id();
    assert_eq!(delete(to, &id, "If-Match: \"2\"\r\n").status, 409, "its version is 1");
    assert_eq!(delete(to, &id, "If-Match: nonsense\r\n").status, 409);
    assert_eq!(delete(to, &id, "If-Match: \"1\"\r\n").status, 204);
    assert_eq!(delete(to, &id, "If-Match: \"1\"\r\n").status, 409, "it has been cancelled since");
}

pub(crate) fn listings(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    assert_eq!(post(to, &booking_body(Some(2), &day(3), 1), "").unwrap().status, 201);
    let cancelled = post(to, &booking_body(Some(2), &day(4), 1), "").unwrap().id();
    assert_eq!(delete(to, &cancelled, "").status, 204);
    let rooms = get(to, "/rooms").json();
    let names: Vec<_> = rooms["rooms"].as_array().unwrap().iter().map(|room| room["name"].clone()).collect();
    assert_eq!(names, ["Room 1", "Room 2", "Room 3"]);

    let span = format!("from={}&to={}", day(1), day(5));
    let month = get(to, &format!("/rooms?{span}")).json();
    assert_eq!(month["rooms"][0]["booked"], json!([]));
    assert_eq!(month["rooms"][1]["booked"], json!([{"date": day(3)}]));
    let room = get(to, &format!("/rooms/2?{span}")).json();
    assert_eq!((&room["booked"], &room["id"]), (&json!([{"date": day(3)}]), &json!(2)));

    let page = get(to, "/rooms?limit=2").json();
    assert_eq!((page["rooms"].as_array().unwrap().len(), page["next_after"].as_i64()), (2, Some(2)));
    let rest = get(to, "/rooms?limit=2&after=2").json();
    assert_eq!((rest["rooms"][0]["id"].as_i64(), rest.get("next_after")), (Some(3), None));
    assert_eq!(get(to, "/rooms/99").status, 404);
    assert_eq!(get(to, "/rooms/x").status, 404);
    assert_eq!(get(to, "/rooms?from=2026-02-30").status, 422);
}

pub(crate) fn feeds(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    assert_eq!(post(to, &booking_body(Some(2), &day(3), 1), "").unwrap().status, 201);
    let feed = get(to, "/rooms/2/calendar.ics");
    assert_eq!((feed.status, feed.field("content-type")), (200, Some("text/calendar; charset=utf-8")));
    let (begin, end) = (day(3).replace('-', ""), day(4).replace('-', ""));
    for line in [format!("DTSTART;VALUE=DATE:{begin}\r\n"), format!("DTEND;VALUE=DATE:{end}\r\n")] {
        assert!(feed.body.contains(&line), "{}", feed.body);
    }
    assert_eq!(feed.body.matches("BEGIN:VEVENT").count(), 1);
    let free = get(to, "/rooms/1/calendar.ics").body;
    assert!(free.starts_with("BEGIN:VCALENDAR\r\n") && free.ends_with("\r\nEND:VCALENDAR\r\n"), "{free}");
    let components = ["BEGIN:VEVENT", "BEGIN:VFREEBUSY"].map(|begin| free.matches(begin).count());
    assert_eq!(components, [0, 1], "a calendar needs a component: {free}");
    assert!(!feed.body.contains("Guest"), "{}", feed.body);
}

pub(crate) fn adding_rooms(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let body = json!({"name": "Lake view"}).to_string();
    for fields in ["", "Authorization: Bearer x\r\n", "Authorization: Basic YTpi\r\n"] {
        assert_eq!(ask(to, "POST /rooms", fields, body.as_bytes()).unwrap().status, 401);
    }
    let id = add_room(fixture.folder(), to, &json!({"name": "Lake view"}));
    assert_eq!(get(to, &format!("/rooms/{id}")).json()["name"], json!("Lake view"));
    let token = admin(fixture.folder());
    let add = |body: Value| ask(to, "POST /rooms", &token, body.to_string().as_bytes()).unwrap();
    assert_eq!(add(json!({"name": "Lake view"})).status, 409);
    for (body, field) in [
        (json!({}), "name"),
        (json!({"name": 7}), "name"),
        (json!({"name": "a".repeat(101)}), "name"),
        (json!({"name": "b", "slots": "09:00-10:00"}), "slots"),
        (json!({"name": "b", "slots": ["09:00-10:00", "09:30-11:00"]}), "slots"),
        (json!({"name": "b", "slot": []}), "slot"),
    ] {
        let answer = add(body);
        assert_eq!((answer.status, &answer.json()["field"]), (422, &json!(field)), "{}", answer.body);
    }
}

pub(crate) fn audit(fixture: &Fixture) {
    let mut options = options(&fixture.database, fixture.folder());
    options.server.proxies = ["127.0.0.1".parse::<Network>().unwrap()].into_iter().collect();
    let server = serve(Model::Epoll, options);
    let to = server.local_addr();
    let ids: Vec<_> =
        (1..=3).map(|n| post(to, &booking_body(Some(n), &day(2), 7), "").unwrap().id()).collect();
    assert_eq!(delete(to, &ids[1], "Forwarded: for=\"[2001:db8::7]:4711\"\r\n").status, 204);
    for fields in ["", "Authorization: Bearer x\r\n"] {
        assert_eq!(ask(to, "GET /audit", fields, b"").unwrap().status, 401);
    }
    let read = |query: &str| ask(to, &format!("GET /audit{query}"), &admin(fixture.folder()), b"").unwrap();
    let first = read("?limit=2").json();
    let after = first["next_after"].as_i64().unwrap();
    let rest = read(&format!("?limit=2&after={after}")).json();
    assert_eq!((rest["bookings"].as_array().unwrap().len(), &rest["next_after"]), (1, &Value::Null));
    let of = |n: usize| &first["bookings"][n];
    assert_eq!(
        (&of(0)["room"], &of(0)["date"], &of(0)["name"]),
        (&json!(1), &json!(day(2)), &json!("Guest 7"))
    );
    assert_eq!((&of(0)["booked"]["from"], &of(0)["cancelled"]), (&json!("127.0.0.1"), &Value::Null));
    assert_eq!(&of(1)["cancelled"]["from"], &json!("2001:db8::7"));
    assert!(of(1)["cancelled"]["at"].as_str() > of(1)["booked"]["at"].as_str());
    let all = read("").body;
    assert!(ids.iter().all(|id| !all.contains(id)), "anyone could cancel a booking by its id");
    assert!(!all.contains("aadhaar"), "{all}");
    assert_eq!(read("?after=x").status, 422);
}

pub(crate) fn privacy(fixture: &Fixture) {
    // Digits that occur in no metric and no date.
    let guest = 8_765_432_109;
    let number = test_number(guest);
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let made = post(to, &booking_body(Some(1), &day(1), guest), "").unwrap();
    assert_eq!(made.json()["aadhaar"], json!(format!("XXXX XXXX {}", &number[8..])));
    let taken = post(to, &booking_body(Some(1), &day(1), guest), "").unwrap();
    for answer in [made, taken, get(to, "/rooms"), get(to, "/metrics"), get(to, "/rooms/1")] {
        assert!(!answer.body.contains(&number[..8]), "{}", answer.body);
    }
    let metrics = get(to, "/metrics").body;
    assert!(metrics.contains("{route=\"/bookings\",status=\"201\"} 1"), "{metrics}");
    if let Some(path) = fixture.database.path() {
        let folder = path.parent().unwrap();
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let kept = std::fs::read(&file).unwrap();
            assert!(!kept.windows(12).any(|part| part == number.as_bytes()), "{}", file.display());
        }
    }
}

pub(crate) fn another_key(fixture: &Fixture) {
    drop(serve(Model::Epoll, options(&fixture.database, fixture.folder())));
    let mut other = options(&fixture.database, fixture.folder());
    other.key = fixture.folder().join("other.key");
    let error = booking::factory(other.clone()).map(drop).unwrap_err().to_string();
    assert!(error.contains("other.key") && error.contains("--key"), "{error}");
    assert!(error.contains("no such file"), "{error}");
    let there = || ["other.key", "other.admin"].map(|name| fixture.folder().join(name).exists());
    assert_eq!(there(), [false, false], "nothing is left behind");

    let file = File::options().write(true).create_new(true).mode(0o600).open(&other.key);
    file.unwrap().write_all("A".repeat(43).as_bytes()).unwrap();
    let error = booking::factory(other).map(drop).unwrap_err().to_string();
    assert!(error.contains("is not the one"), "{error}");
    assert_eq!(there(), [true, false], "nor after a start with a wrong key");
    drop(serve(Model::Epoll, options(&fixture.database, fixture.folder())));
}

fn admin(folder: &Path) -> String {
    let token = std::fs::read_to_string(folder.join("booking.admin")).unwrap();
    format!("Authorization: Bearer {}\r\n", token.trim())
}

pub(crate) fn add_room(folder: &Path, to: SocketAddr, room: &Value) -> i64 {
    let answer = ask(to, "POST /rooms", &admin(folder), room.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.json()["id"].as_i64().unwrap()
}
