//! File sharing as a person runs it.

use crate::{
    serve::{ask, listening},
    support::Place,
};

#[test]
fn an_index_is_served_until_told_to_stop_and_forgets_nothing() {
    let place = Place::new();
    for (request, status) in [
        (
            "POST /register HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 39\r\n\r\n\
             {\"peer\": \"127.0.0.1:9999\", \"files\": []} ",
            "HTTP/1.1 200",
        ),
        (
            "POST /renew HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 26\r\n\r\n\
             {\"peer\": \"127.0.0.1:9999\"}",
            "HTTP/1.1 200",
        ),
    ] {
        let mut running = place.nstar(["serve", "index", "--listen", "127.0.0.1:0"]).start();
        let address = listening(&mut running);
        let answer = ask(&address, request);
        assert!(answer.starts_with(status), "{answer}");
        running.signal("TERM");
        running.finish().exits(0);
    }
}

#[test]
fn an_index_open_to_other_machines_is_refused_without_a_secret() {
    let place = Place::new();
    let words = ["serve", "index", "--listen", "0.0.0.0:0"];
    place.nstar(words).run().exits(2).complains("--secret-file");
    place.nstar(["serve", "index", "--life", "10ms"]).run().exits(2).complains("a second at least");
}
