//! Values captured from responses are used up in later requests of the same user.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use analysis::ticks::ErrorKind;
use load::{Generator, Plan, RequestTotal, Scenario, Stop};

use crate::common::{Counted, NEVER, Server};

/// A server for bookings. Each can be cancelled once, on the connection that made it.
struct BookingServer {
    server: Server,
    standing: Arc<Mutex<BTreeSet<(usize, String)>>>,
}

impl BookingServer {
    /// Starts a server that answers a booking with `booked` of its number.
    fn start(booked: fn(usize) -> String) -> Self {
        let standing: Arc<Mutex<BTreeSet<(usize, String)>>> = Arc::default();
        let (books, made) = (standing.clone(), AtomicUsize::new(0));
        let server = Server::start(move |mut peer, user| {
            while let Some(request) = peer.request() {
                let response = if request.line.starts_with("POST") {
                    let number = made.fetch_add(1, Ordering::SeqCst);
                    books.lock().unwrap().insert((user, format!("/bookings/{number}")));
                    booked(number)
                } else {
                    let path = request.line.split(' ').nth(1).unwrap().to_owned();
                    let status = if books.lock().unwrap().remove(&(user, path)) { 204 } else { 404 };
                    format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")
                };
                if peer.send(response.as_bytes()).is_err() {
                    return;
                }
            }
        });
        BookingServer { server, standing }
    }

    fn run(&self, keep: &str, cancel: &str, weights: [u32; 2]) -> (Counted, Vec<RequestTotal>) {
        let [book, cancels] = weights;
        let text = format!(
            "[[request]]\nname = \"book\"\nweight = {book}\nmethod = \"POST\"\npath = \"/bookings\"\nkeep = {{ name = \"b\", from = \"{keep}\" }}\n\
             [[request]]\nname = \"cancel\"\nweight = {cancels}\nmethod = \"DELETE\"\npath = \"{cancel}\"\n"
        );
        let scenario = Scenario::from_toml(Path::new("booking.toml"), &text).unwrap();
        let mut generator = Generator::start(&Plan { threads: 2, ..self.plan(scenario) }).unwrap();
        generator.set_users(5).unwrap();
        let counted = Counted::of(&generator.run(Stop::PerUser(200), &NEVER).unwrap());
        (counted, generator.finish())
    }

    fn plan(&self, scenario: Scenario) -> Plan {
        Plan::new(scenario.with_base(self.server.url("/")))
    }
}

fn json(number: usize) -> String {
    let body = format!(r#"{{"room": 1, "booking": {{"id": {number}}}}}"#);
    format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn location(number: usize) -> String {
    format!(
        "HTTP/1.1 201 Created\r\nLocation: http://elsewhere/bookings/{number}\r\nContent-Length: 2\r\n\r\nok"
    )
}

#[test]
fn a_user_cancels_each_of_its_bookings_once() {
    for (booked, keep, cancel) in [
        (json as fn(usize) -> String, "json:booking.id", "/bookings/${taken:b}"),
        (location, "header:location", "${taken:b}"),
    ] {
        let bookings = BookingServer::start(booked);
        let (counted, totals) = bookings.run(keep, cancel, [70, 30]);
        assert_eq!((counted.completed, counted.errors_total()), (1_000, 0), "{counted:?}");
        let [book, cancel] = totals.as_slice() else { panic!("{totals:?}") };
        assert_eq!((book.name.as_str(), cancel.name.as_str()), ("book", "cancel"));
        assert_eq!(book.completed + cancel.completed, 1_000);
        assert_eq!((book.uncertain(), cancel.uncertain()), (0, 0));
        assert_eq!(book.completed - cancel.completed, bookings.standing.lock().unwrap().len() as u64);
        assert!((250..350).contains(&cancel.completed), "the seed gives about 30 %: {totals:?}");
    }
}

#[test]
fn totals_show_the_mix_that_ran_if_there_was_too_little_to_cancel() {
    let (counted, totals) =
        BookingServer::start(json).run("json:booking.id", "/bookings/${taken:b}", [1, 999]);
    assert_eq!((counted.completed, counted.errors_total()), (1_000, 0), "{counted:?}");
    let [book, cancel] = totals.as_slice() else { panic!("{totals:?}") };
    assert!(cancel.asked_share > 0.99 && cancel.completed <= book.completed, "{totals:?}");
    assert!(
        cancel.replaced.abs_diff(book.completed) < 50,
        "nearly every booking replaced a cancellation: {totals:?}"
    );
}

#[test]
fn a_response_without_the_value_is_a_separate_kind_of_error() {
    let (counted, totals) = BookingServer::start(json).run("json:id", "/bookings/${taken:b}", [70, 30]);
    assert_eq!((counted.completed, counted.errors), (0, vec![(ErrorKind::NothingToKeep, 1_000)]));
    assert_eq!((totals[0].nothing_to_keep, totals[1].begun), (1_000, 0));
    assert!(totals[1].replaced > 200, "{totals:?}");
}

#[test]
fn a_409_is_a_refusal_and_no_response_is_uncertain() {
    let server = Server::start(|mut peer, number| {
        while peer.request().is_some() {
            if number == 0 {
                return;
            }
            let _ = peer.send(b"HTTP/1.1 409 Taken\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let mut generator = Generator::start(&server.plan()).unwrap();
    generator.set_users(1).unwrap();
    generator.run(Stop::PerUser(3), &NEVER).unwrap();
    let totals = generator.finish();
    assert_eq!((totals[0].begun, totals[0].refused(), totals[0].uncertain()), (3, 2, 1), "{totals:?}");
}

#[test]
fn the_probe_sends_the_first_request_that_can_be_made() {
    let bookings = BookingServer::start(json);
    let text = "[[request]]\nmethod = \"DELETE\"\npath = \"/x/${taken:b}\"\n\
                [[request]]\nmethod = \"POST\"\npath = \"/\"\nkeep = { name = \"b\", from = \"json:none\" }\n";
    let scenario = Scenario::from_toml(Path::new("booking.toml"), text).unwrap();
    let probe = load::probe(&bookings.plan(scenario)).unwrap().remove(0);
    assert!(probe.status == 201 && probe.status_expected && probe.nothing_to_keep, "{probe:?}");
}
