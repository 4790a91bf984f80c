//! Files arrive whole, whatever their length and whatever the clients do.

use std::thread;

use crate::{
    client::get,
    content::{LARGE, content},
    models::every_model,
    server::Setup,
};

/// Lengths around the sizes of pages, buffers and cached files.
const LENGTHS: [usize; 12] =
    [0, 1, 4_095, 4_096, 4_097, 65_535, 65_537, 262_143, 262_144, 262_145, 1_000_000, LARGE];

fn large() -> String {
    format!("/files/{LARGE}")
}

#[test]
fn files_of_every_length_come_byte_for_byte() {
    every_model(|model| {
        let server = Setup::files(model, &LENGTHS).start();
        let mut client = server.connect();
        for length in LENGTHS {
            // The second may be served from the cache.
            for _ in 0..2 {
                let answer = client.get(&format!("/files/{length}"), "");
                assert_eq!(answer.field("content-length"), Some(&*length.to_string()), "{model}");
                assert!(answer.body == content(length), "{model}: {length} bytes differ");
            }
        }
        server.stop();
    });
}

#[test]
fn parts_fetched_at_the_same_time_make_up_the_whole() {
    const PARTS: usize = 8;
    every_model(|model| {
        let server = Setup::files(model, &[LARGE]).start();
        let part = |number: usize| {
            let (from, to) = (number * LARGE / PARTS, (number + 1) * LARGE / PARTS - 1);
            server.connect().get(&large(), &format!("Range: bytes={from}-{to}\r\n"))
        };
        let parts: Vec<_> = thread::scope(|scope| {
            let fetching: Vec<_> = (0..PARTS).map(|number| scope.spawn(move || part(number))).collect();
            fetching.into_iter().map(|part| part.join().unwrap()).collect()
        });
        assert!(parts.iter().all(|part| part.status == 206), "{model}");
        let whole: Vec<u8> = parts.into_iter().flat_map(|part| part.body).collect();
        assert!(whole == content(LARGE), "{model}");
        server.stop();
    });
}

#[test]
fn a_download_that_broke_off_is_resumed_where_it_stopped() {
    every_model(|model| {
        let server = Setup::files(model, &[LARGE]).start();
        let mut broken = server.connect();
        broken.send(get(&large(), ""));
        let head = broken.head();
        let mut got = vec![0; 1_234_567];
        let mut count = 0;
        while count < got.len() {
            count += broken.read_some(&mut got[count..]);
        }
        drop(broken);
        let fields = format!("Range: bytes={count}-\r\nIf-Range: {}\r\n", head.field("etag").unwrap());
        let rest = server.connect().get(&large(), &fields);
        assert_eq!(rest.status, 206, "{model}");
        got.extend(rest.body);
        assert!(got == content(LARGE), "{model}");
        server.stop();
    });
}

#[test]
fn slow_readers_get_everything_while_others_are_served() {
    const SLOW: usize = 8;
    every_model(|model| {
        let server = Setup::files(model, &[1_000, LARGE]).start();
        let mut slow: Vec<_> = (0..SLOW).map(|_| server.connect()).collect();
        slow.iter_mut().for_each(|client| client.send(get(&large(), "")));
        // Each reads a little at a time, in pieces of odd lengths, and none waits for the others.
        let mut got = [0; SLOW];
        let mut piece = vec![0; 70_001];
        for round in 1..=40 {
            for (client, got) in slow.iter_mut().zip(&mut got) {
                if *got == 0 {
                    assert_eq!(client.head().status, 200, "{model}");
                }
                let count = client.read_some(&mut piece[..round * 1_750]);
                assert!(piece[..count] == content(LARGE)[*got..*got + count], "{model}: at {got}");
                *got += count;
            }
            assert!(server.connect().get("/files/1000", "").body == content(1_000), "{model}");
        }
        for (mut client, got) in slow.into_iter().zip(got) {
            client.end_sending();
            assert!(client.rest() == content(LARGE)[got..], "{model}: after {got}");
        }
        server.stop();
    });
}

#[test]
fn a_client_that_has_ended_its_side_gets_all_it_asked_for() {
    every_model(|model| {
        let server = Setup::files(model, &[1_000, LARGE]).start();
        let mut client = server.connect();
        client.send([get("/files/1000", ""), get(&large(), ""), get("/files/1000", "")].concat());
        client.end_sending();
        for length in [1_000, LARGE, 1_000] {
            assert!(client.response().body == content(length), "{model}: {length}");
        }
        assert_eq!(client.rest(), b"", "{model}");
        // A client that ends within a request gets the end of the connection or an error response.
        let mut client = server.connect();
        client.send("GET /files/1000 HT");
        client.end_sending();
        let said = client.rest();
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 400 "), "{model}");
        server.stop();
    });
}

#[test]
fn downloads_reset_in_the_middle_leave_nothing_behind() {
    every_model(|model| {
        let server = Setup::files(model, &[1_000, LARGE]).start();
        for round in 0..3 {
            let mut broken: Vec<_> = (0..20).map(|_| server.connect()).collect();
            broken.iter_mut().for_each(|client| client.send(get(&large(), "")));
            for (number, mut client) in broken.into_iter().enumerate() {
                // Some at once, some within the body.
                if number % 2 == 0 {
                    assert_eq!(client.head().status, 200, "{model}: round {round}");
                }
                client.reset();
            }
        }
        // The one that asks.
        server.wait_for_metric("nstar_files_connections", 1);
        assert!(server.connect().get("/files/1000", "").body == content(1_000), "{model}");
        assert_eq!(server.metric("nstar_files_panics_total"), 0, "{model}");
        server.stop();
    });
}
