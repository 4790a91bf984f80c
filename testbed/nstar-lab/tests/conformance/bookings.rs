//! Booking, with a database that each process of a server opens: rooms are booked once, and everything is counted.

use std::thread;

use serde_json::Value;

use crate::{
    client::Response,
    models::every_model,
    server::{Served, Setup},
};

const ROOMS: usize = 5;
const GUESTS: usize = 8;

#[test]
fn guests_that_race_get_each_room_once_and_every_process_counts() {
    every_model(|model| {
        let served = Setup::booking(model, ROOMS).start();
        let answers: Vec<Response> = thread::scope(|scope| {
            let guests: Vec<_> = (0..GUESTS).map(|_| scope.spawn(|| book(&served))).collect();
            guests.into_iter().map(|guest| guest.join().unwrap()).collect()
        });
        let count = |status| answers.iter().filter(|answer| answer.status == status).count();
        assert_eq!((count(201), count(409)), (ROOMS, GUESTS - ROOMS), "{model}: {answers:?}");

        let booked = answers.iter().find(|answer| answer.status == 201).unwrap();
        let booking: Value = serde_json::from_slice(&booked.body).unwrap();
        let id = booking["id"].as_str().unwrap();
        let cancel =
            format!("DELETE /bookings/{id} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_eq!(ask(&served, &cancel).status, 204, "{model}");
        assert_eq!(ask(&served, &cancel).status, 404, "{model}: once");
        assert_eq!(book(&served).status, 201, "{model}: free again");

        for (route, status, count) in [
            ("/bookings", 201, ROOMS + 1),
            ("/bookings", 409, GUESTS - ROOMS),
            ("/bookings/{id}", 204, 1),
            ("/bookings/{id}", 404, 1),
        ] {
            let name = format!("nstar_booking_requests_total{{route=\"{route}\",status=\"{status}\"}}");
            served.wait_for_metric(&name, count as u64);
        }
        served.assert_well();
        served.stop();
    });
}

/// Books any room on one day, with a number that is not issued.
fn book(served: &Served) -> Response {
    let tomorrow = jiff::Zoned::now().date().tomorrow().unwrap();
    let body = format!(r#"{{"date":"{tomorrow}","name":"Asha Rao","aadhaar":"100987654315"}}"#);
    let length = body.len();
    ask(
        served,
        &format!(
            "POST /bookings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ),
    )
}

fn ask(served: &Served, request: &str) -> Response {
    let mut client = served.connect();
    client.send(request);
    client.response()
}
