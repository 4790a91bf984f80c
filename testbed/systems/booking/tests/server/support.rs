//! A server on its own port, a client that shows complete responses, and guests to book for.

use std::{io, net::SocketAddr, path::Path};

use booking::{IdPolicy, Options};
use engine::{Model, Server};
use serde_json::{Value, json};
use store::Database;

pub(crate) use test_support::http::{Response, ask};

/// Options that keep the tests light: three rooms, test numbers allowed, the key in `folder`.
pub(crate) fn options(database: &Database, folder: &Path) -> Options {
    let mut options = Options::new(database.clone());
    options.key = folder.join("booking.key");
    options.rooms = 3;
    options.ids = IdPolicy::AllowTest;
    // However full the disk of the tests is.
    options.keep_free = Some(0);
    options
}

/// Starts a booking server with two loops or workers.
pub(crate) fn serve(model: Model, options: Options) -> Server {
    let mut run = engine::Options::new("127.0.0.1:0".parse().unwrap());
    (run.loops, run.workers) = (2, 2);
    engine::start(model, &run, booking::factory(options).unwrap()).unwrap()
}

pub(crate) fn get(to: SocketAddr, target: &str) -> Response {
    ask(to, &format!("GET {target}"), "", b"").unwrap()
}

pub(crate) fn delete(to: SocketAddr, id: &str, fields: &str) -> Response {
    ask(to, &format!("DELETE /bookings/{id}"), fields, b"").unwrap()
}

pub(crate) fn post(to: SocketAddr, body: &Value, fields: &str) -> io::Result<Response> {
    ask(to, "POST /bookings", fields, body.to_string().as_bytes())
}

/// The body of a request to book a room, or any room.
pub(crate) fn booking_body(room: Option<i64>, date: &str, guest: u64) -> Value {
    json!({"room": room, "date": date, "name": format!("Guest {guest}"), "aadhaar": test_number(guest)})
}

/// The `n`-th test number: 1, ten digits and the check digit.
pub(crate) fn test_number(n: u64) -> String {
    let eleven = format!("1{n:010}");
    format!("{eleven}{}", verhoeff::calculate(eleven.as_str()))
}

/// The day this many days from today.
pub(crate) fn day(ahead: i32) -> String {
    let today = jiff::Zoned::now().date();
    today.saturating_add(jiff::Span::new().days(ahead)).to_string()
}
