//! A server on a port of its own, a client that shows everything it was answered, and guests to book for.

use std::{io, net::SocketAddr, path::Path};

use booking::{Accepted, Options};
use engine::{Model, Server};
use serde_json::{Value, json};
use store::Database;

pub(crate) use test_support::http::{Response, ask};

/// Options that keep the tests light: three rooms, test numbers allowed, the key in `folder`.
pub(crate) fn options(database: &Database, folder: &Path) -> Options {
    let mut options = Options::new(database.clone());
    options.key = folder.join("booking.key");
    options.rooms = 3;
    options.accepted = Accepted::TestsToo;
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

/// A booking of a room, or of any.
pub(crate) fn wish(room: Option<i64>, date: &str, guest: u64) -> Value {
    json!({"room": room, "date": date, "name": format!("Guest {guest}"), "aadhaar": test_number(guest)})
}

/// The `n`-th test number: 1, ten digits, and the check digit that fits, found by the multiplication in D5 written out
/// as J. Verhoeff has it.
pub(crate) fn test_number(n: u64) -> String {
    let eleven = format!("1{n:010}");
    let last = (0..10).find(|last| verhoeff(&format!("{eleven}{last}")) == 0).unwrap();
    format!("{eleven}{last}")
}

fn verhoeff(digits: &str) -> usize {
    const PRODUCT: [&str; 10] = [
        "0123456789",
        "1234067895",
        "2340178956",
        "3401289567",
        "4012395678",
        "5987604321",
        "6598710432",
        "7659821043",
        "8765932104",
        "9876543210",
    ];
    const PERMUTED: [&str; 8] = [
        "0123456789",
        "1576283094",
        "5803796142",
        "8916043527",
        "9453126870",
        "4286573901",
        "2793806415",
        "7046913258",
    ];
    let digit = |text: &str, place: usize| usize::from(text.as_bytes()[place] - b'0');
    digits.bytes().rev().enumerate().fold(0, |sum, (place, byte)| {
        digit(PRODUCT[sum], digit(PERMUTED[place % 8], usize::from(byte - b'0')))
    })
}

/// A day so many days ahead.
pub(crate) fn day(ahead: i32) -> String {
    let today = jiff::Zoned::now().date();
    today.saturating_add(jiff::Span::new().days(ahead)).to_string()
}
