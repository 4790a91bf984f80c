//! Bookings.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    net::SocketAddr,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use serde_json::{Value as Json, json};
use test_support::http::{Response, ask};

use super::{Client, System, database, rows, words};
use crate::ledger::Ledger;

const ROOMS: u64 = 40;
const DAYS: i64 = 60;
/// How many bookings to ask the server for after a crash.
const ASKED: usize = 20;
/// What stands behind the id of a booking in the ledger.
const STANDS: &str = "stands";
const CANCELLED: &str = "cancelled";

/// Room booking. A key is that of a client's request, its value the id of the booking and whether it stands.
#[derive(Debug, Default)]
pub(super) struct Booking {
    count: AtomicU64,
    /// Requests, by their keys, as they are repeated.
    requests: Mutex<BTreeMap<String, Json>>,
}

impl Booking {
    fn book(&self, client: &mut Client<'_>) -> io::Result<()> {
        let number = self.count.fetch_add(1, Relaxed);
        let key = format!("{}-{number}", client.number);
        let room = (client.random.u8(..2) == 0).then(|| client.random.u64(1..=ROOMS));
        let today = jiff::Zoned::now().date();
        let day = today.saturating_add(jiff::Span::new().days(client.random.i64(1..=DAYS)));
        let body =
            json!({ "room": room, "date": day.to_string(), "name": "Guest", "aadhaar": identity(number) });
        self.requests().insert(key.clone(), body.clone());
        let answer = book(client.to, &key, &body)?;
        self.note(client.ledger, &key, &answer);
        Ok(())
    }

    /// Repeats a request, which must have booked the same as before.
    fn repeat(&self, to: SocketAddr, ledger: &Ledger, key: &str) -> io::Result<()> {
        let body = self.requests().get(key).cloned();
        let Some(body) = body else { return Ok(()) };
        let answer = book(to, key, &body)?;
        let known = ledger.entries().into_iter().find(|(known, _)| known == key);
        match known.and_then(|(_, right)| right.into_iter().flatten().next()) {
            Some(known) if answer.status == 201 => {
                let same = id(&answer).is_some_and(|id| known.starts_with(&id));
                if !same {
                    ledger.fault(format!("{key}: repeated, it books {}, not {known}", answer.body));
                }
            }
            Some(known) if answer.status < 500 => {
                ledger.fault(format!("{key}: repeated, it gets {}, not {known}", answer.status));
            }
            Some(_) => {}
            None => self.note(ledger, key, &answer),
        }
        Ok(())
    }

    fn repeat_unanswered(&self, client: &mut Client<'_>) -> io::Result<()> {
        let own = format!("{}-", client.number);
        let key = self.unanswered(client.ledger).into_iter().find(|key| key.starts_with(&own));
        match key {
            Some(key) => self.repeat(client.to, client.ledger, &key),
            None => self.book(client),
        }
    }

    /// Notes what came of a request.
    fn note(&self, ledger: &Ledger, key: &str, answer: &Response) {
        match (answer.status, id(answer)) {
            (201, Some(id)) => ledger.acknowledge(key, Some(format!("{id} {STANDS}"))),
            (409, _) => drop(self.requests().remove(key)),
            _ => {}
        }
    }

    fn cancel(&self, client: &Client<'_>, key: &str, id: &str) -> io::Result<()> {
        let cancelled = Some(format!("{id} {CANCELLED}"));
        client.ledger.attempt(key, cancelled.clone());
        let answer = client.ask(&format!("DELETE /bookings/{id}"), "", b"")?;
        if answer.status == 204 {
            client.ledger.acknowledge(key, cancelled);
        }
        Ok(())
    }

    fn requests(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Json>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of requests without an answer.
    fn unanswered(&self, ledger: &Ledger) -> Vec<String> {
        let known: BTreeMap<_, _> = ledger.entries().into_iter().collect();
        self.requests().keys().filter(|key| !known.contains_key(*key)).cloned().collect()
    }
}

fn book(to: SocketAddr, key: &str, body: &Json) -> io::Result<Response> {
    ask(to, "POST /bookings", &format!("Idempotency-Key: {key}\r\n"), body.to_string().as_bytes())
}

fn id(answer: &Response) -> Option<String> {
    let json: Json = serde_json::from_slice(&answer.bytes).ok()?;
    json["id"].as_str().map(str::to_owned)
}

/// The `n`-th identity number for tests: 1, ten digits and the check digit.
fn identity(n: u64) -> String {
    let eleven = format!("1{n:010}");
    format!("{eleven}{}", verhoeff::calculate(eleven.as_str()))
}

impl System for Booking {
    fn words(&self, data: &Path) -> Vec<OsString> {
        let rooms = ROOMS.to_string();
        words("booking", data, &["--database", "/booking.db", "--allow-test-ids", "--rooms", &rooms])
    }

    fn act(&self, client: &mut Client<'_>) -> io::Result<()> {
        let own = client.ledger.any(&format!("{}-", client.number), &mut client.random);
        match (client.random.u8(..8), own) {
            (0 | 1, Some((key, value))) if value.ends_with(STANDS) => {
                self.cancel(client, &key, value.split(' ').next().unwrap_or_default())
            }
            (2, Some((key, _))) => self.repeat(client.to, client.ledger, &key),
            (3, _) => self.repeat_unanswered(client),
            _ => self.book(client),
        }
    }

    fn look_at_files(&self, data: &Path, ledger: &Ledger) -> Result<(), String> {
        let Some(database) = database(&data.join("booking.db"))? else {
            ledger.entries().iter().for_each(|(key, _)| ledger.compare(key, None));
            return Ok(());
        };
        let twice = "SELECT room || ' on ' || day, count(*) || '' FROM bookings WHERE cancelled_at_us IS NULL \
                     GROUP BY room, day, slot HAVING count(*) > 1";
        for (what, count) in rows(&database, twice)? {
            ledger.fault(format!("room {what} is booked {count} times"));
        }
        let all = "SELECT id || '', CASE WHEN cancelled_at_us IS NULL THEN 'stands' ELSE 'cancelled' END FROM bookings";
        let all: BTreeMap<String, String> = rows(&database, all)?.into_iter().collect();
        for (key, right) in ledger.entries() {
            let Some(id) = right.iter().flatten().next().and_then(|value| value.split(' ').next()) else {
                continue;
            };
            let state = id.split_once('-').and_then(|(number, _)| all.get(number));
            ledger.compare(&key, state.map(|state| format!("{id} {state}")));
        }
        Ok(())
    }

    fn look_at_server(&self, to: SocketAddr, ledger: &Ledger, random: &mut fastrand::Rng) -> io::Result<()> {
        for key in self.unanswered(ledger) {
            self.repeat(to, ledger, &key)?;
        }
        let mut entries = ledger.entries();
        random.shuffle(&mut entries);
        for (key, right) in entries.into_iter().take(ASKED) {
            self.repeat(to, ledger, &key)?;
            let Some(id) = right.iter().flatten().next().and_then(|value| value.split(' ').next()) else {
                continue;
            };
            let answer = ask(to, &format!("GET /bookings/{id}"), "", b"")?;
            let state = match (answer.status, answer.json()["cancelled"].as_bool()) {
                (200, Some(true)) => Some(CANCELLED),
                (200, Some(false)) => Some(STANDS),
                _ => None,
            };
            ledger.compare(&key, state.map(|state| format!("{id} {state}")));
        }
        Ok(())
    }
}
