//! Many requests on one connection.

use std::{io::Write, thread};

use crate::{
    client::{chunked, get, request, upload},
    content::{LARGE, content, receipt},
    models::every_model,
    server::{Served, Setup},
};

/// A length that is cached in memory, and one that is sent from the file.
const LENGTHS: [usize; 3] = [0, 1_000, 300_000];

fn files(model: engine::Model) -> Served {
    Setup::files(model, &LENGTHS).start()
}

#[test]
fn one_connection_carries_requests_of_every_kind() {
    every_model(|model| {
        let server = files(model);
        let mut client = server.connect();
        for _ in 0..20 {
            for length in LENGTHS {
                let target = format!("/files/{length}");
                let whole = client.get(&target, "");
                assert_eq!((whole.status, &whole.body[..]), (200, content(length)), "{model}");
                client.send(request("HEAD", &target, ""));
                assert_eq!(client.head().field("content-length"), whole.field("content-length"), "{model}");
                let condition = format!("If-None-Match: {}\r\n", whole.field("etag").unwrap());
                assert_eq!(client.get(&target, &condition).status, 304, "{model}");
            }
            let part = client.get("/files/300000", "Range: bytes=299000-\r\n");
            assert_eq!((part.status, &part.body[..]), (206, &content(300_000)[299_000..]), "{model}");
            assert_eq!(client.get("/files/none", "").status, 404, "{model}");
            assert!(client.get("/files/", "").text().contains("300000"), "{model}");
        }
        let accepted = client.get("/metrics", "").metric("nstar_files_connections_accepted_total");
        assert_eq!(accepted, 1, "{model}");
        server.stop();
    });
}

#[test]
fn a_connection_ends_after_the_answer_that_says_so() {
    every_model(|model| {
        let server = files(model);
        for request in [
            get("/files/300000", "Connection: close\r\n"),
            "GET /files/300000 HTTP/1.0\r\n\r\n".to_owned(),
            "GET /files/300000\r\n\r\n".to_owned(),
            "nonsense\r\n\r\n".to_owned(),
        ] {
            let mut client = server.connect();
            client.send(&request);
            let answer = client.response();
            assert_eq!(answer.status, if request.contains("HTTP") { 200 } else { 400 }, "{model}: {request}");
            assert_eq!(client.rest(), b"", "{model}: {request}");
        }
        server.stop();
    });
}

#[test]
fn pipelined_requests_are_answered_in_order_whatever_their_length() {
    const ROUNDS: usize = 100;
    every_model(|model| {
        let server = Setup::files(model, &LENGTHS).start();
        let mut client = server.connect();
        let round = [
            get("/files/1000", ""),
            get("/files/none", ""),
            get("/files/300000", ""),
            request("HEAD", "/files/300000", ""),
            get("/files/0", ""),
            get("/files/300000", "Range: bytes=7-100006\r\n"),
        ];
        let mut sender = client.sender();
        let writer = thread::spawn(move || sender.write_all(round.concat().repeat(ROUNDS).as_bytes()));
        for number in 0..ROUNDS {
            let expect = |answer: crate::client::Response, status: u16, body: &[u8]| {
                assert_eq!(answer.status, status, "{model}: round {number}");
                assert!(answer.body == body, "{model}: another body, round {number}\n{}", answer.head);
            };
            expect(client.response(), 200, content(1_000));
            assert_eq!(client.response().status, 404, "{model}");
            expect(client.response(), 200, content(300_000));
            assert_eq!(client.head().field("content-length"), Some("300000"), "{model}");
            expect(client.response(), 200, b"");
            expect(client.response(), 206, &content(300_000)[7..100_007]);
        }
        writer.join().unwrap().unwrap();
        server.stop();
    });
}

#[test]
fn pipelined_uploads_are_answered_in_order_with_their_hashes() {
    const LENGTHS: [usize; 6] = [0, 1, 70_000, 4_096, 1_000_000, 3];
    const ROUNDS: usize = 4;
    every_model(|model| {
        let server = Setup::sink(model).with("--verify blake3").start();
        let mut client = server.connect();
        let bodies = || LENGTHS.into_iter().cycle().take(ROUNDS * LENGTHS.len()).map(content);
        let mut sender = client.sender();
        let writer = thread::spawn(move || {
            bodies().try_for_each(|body| {
                sender.write_all(&upload(body))?;
                sender.write_all(&chunked(body, 10_007))
            })
        });
        for body in bodies() {
            for framing in ["known length", "chunks"] {
                let answer = client.response();
                assert_eq!((answer.status, answer.text()), (200, &*receipt(body)), "{model}: {framing}");
            }
        }
        writer.join().unwrap().unwrap();
        let sum = 2 * ROUNDS * LENGTHS.iter().sum::<usize>();
        server.stop().says(&format!("received {sum} bytes; 48 uploads completed, 0 failed"));
    });
}

#[test]
fn a_client_that_leaves_its_answers_unread_gets_them_all_later() {
    every_model(|model| {
        let server = Setup::files(model, &[LARGE]).start();
        let mut greedy = server.connect();
        // Three responses are more than all buffers hold, so that the server has to wait for the client.
        (0..3).for_each(|_| greedy.send(get(&format!("/files/{LARGE}"), "")));
        server.assert_well();
        for _ in 0..3 {
            assert!(greedy.response().body == content(LARGE), "{model}");
        }
        server.stop();
    });
}
