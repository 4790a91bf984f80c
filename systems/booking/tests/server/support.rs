//! A server on a port of its own, a client that shows everything it was answered, and guests to book for.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use booking::{Accepted, Options};
use engine::{Model, Server};
use serde_json::{Value, json};
use store::Database;

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

/// An answer as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_else(|| panic!("no id in {}", self.body)).to_owned()
    }
}

/// Asks on a connection of its own. `fields` are header lines, each with its end.
pub(crate) fn ask(to: SocketAddr, line: &str, fields: &str, body: &[u8]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.get(9..12).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}

pub(crate) fn get(to: SocketAddr, target: &str) -> Answer {
    ask(to, &format!("GET {target}"), "", b"").unwrap()
}

pub(crate) fn delete(to: SocketAddr, id: &str, fields: &str) -> Answer {
    ask(to, &format!("DELETE /bookings/{id}"), fields, b"").unwrap()
}

pub(crate) fn post(to: SocketAddr, body: &Value, fields: &str) -> io::Result<Answer> {
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
