//! The same over TLS, and what only TLS has: failed handshakes, and close_notify.

use std::{io::Write, net::Shutdown, thread};

use crate::{
    client::{Client, chunked, get, upload, upload_head},
    content::{LARGE, content, receipt},
    models::every_model,
    server::{Served, Setup, eventually},
    stream,
};

const LENGTHS: [usize; 4] = [0, 1_000, 300_000, LARGE];

fn files(model: engine::Model) -> Served {
    Setup::files(model, &LENGTHS).secured().start()
}

/// A client without TLS.
fn plain(server: &Served) -> Client {
    Client::connect(server.address, false, server.model).unwrap()
}

fn handshakes(server: &Served, outcome: &str, system: &str) -> u64 {
    server.metric(&format!("nstar_{system}_tls_handshakes_total{{outcome=\"{outcome}\"}}"))
}

#[test]
fn one_connection_carries_files_parts_and_pipelines() {
    every_model(|model| {
        let server = files(model);
        let mut client = server.connect();
        for _ in 0..3 {
            for length in LENGTHS {
                let answer = client.get(&format!("/files/{length}"), "");
                assert!(answer.body == content(length), "{model}: {length} bytes differ");
            }
            let part = client.get("/files/300000", "Range: bytes=16000-299998\r\n");
            assert!(part.status == 206 && part.body == content(300_000)[16_000..299_999], "{model}");
        }
        let mut sender = client.sender();
        let round = [get("/files/1000", ""), get("/files/300000", ""), get("/files/none", "")].concat();
        let writer = thread::spawn(move || sender.write_all(round.repeat(50).as_bytes()));
        for _ in 0..50 {
            assert!(client.response().body == content(1_000), "{model}");
            assert!(client.response().body == content(300_000), "{model}");
            assert_eq!(client.response().status, 404, "{model}");
        }
        writer.join().unwrap().unwrap();
        // Without close_notify the client would take the end for a reset.
        client.send(get("/files/300000", "Connection: close\r\n"));
        assert!(client.response().body == content(300_000), "{model}");
        assert_eq!(client.rest(), b"", "{model}");
        server.stop();
    });
}

#[test]
fn uploads_come_whole_in_any_framing_and_chunk() {
    every_model(|model| {
        for chunk in ["64KiB", "1000"] {
            let server = Setup::sink(model).secured().with("--verify blake3 --chunk").with(chunk).start();
            let mut client = server.connect();
            for request in [upload(content(10_000_000)), chunked(content(10_000_000), 1_000_003)] {
                client.send(request);
                assert_eq!(client.response().text(), receipt(content(10_000_000)), "{model}: chunk {chunk}");
            }
            server.stop().says("2 uploads completed, 0 failed");
        }
    });
}

#[test]
fn an_upload_cut_short_is_not_acknowledged_though_its_end_looks_like_one() {
    every_model(|model| {
        let server = Setup::sink(model).secured().with("--raw").start();
        let mut whole = server.connect();
        whole.send(content(100_000));
        whole.end_sending();
        assert_eq!(whole.rest(), b"", "{model}");
        // Something in between ends the connection, and cannot send a close_notify.
        let mut cut = server.connect();
        cut.send(content(50_000));
        cut.sender().socket().shutdown(Shutdown::Write).unwrap();
        assert_eq!(cut.until_broken(), b"", "{model}");
        server.stop().says("received 150000 bytes; 1 uploads completed, 1 failed");
    });
}

#[test]
fn what_is_no_handshake_is_refused_and_counted() {
    every_model(|model| {
        let server = files(model);
        let mut http = plain(&server);
        http.send(get("/files/1000", ""));
        let answer = http.response();
        assert_eq!(answer.status, 400, "{model}");
        assert!(answer.text().contains("https://"), "{model}: {}", answer.text());
        assert_eq!(http.rest(), b"", "{model}");
        // Another protocol, a malformed record, the beginning of a handshake, and nothing at all.
        let record = [&[22, 3, 1, 2, 0][..], &[1; 512]].concat();
        for said in [&[0; 100], &record[..], &record[..100], &[]] {
            let mut client = plain(&server);
            client.send(said);
            client.end_sending();
            let answered = client.until_broken();
            assert!(!answered.starts_with(b"HTTP"), "{model}");
        }
        let mut silent = plain(&server);
        eventually("failures are counted", || handshakes(&server, "failed", "files") == 3);
        assert_eq!(handshakes(&server, "unencrypted", "files"), 1, "{model}");
        assert!(server.connect().get("/files/1000", "").body == content(1_000), "{model}");
        assert_eq!(server.metric("nstar_files_panics_total"), 0, "{model}");
        silent.send("G");
        server.stop();
    });
}

#[test]
fn slow_clients_are_waited_for_while_others_are_served() {
    every_model(|model| {
        let server = files(model);
        let mut slow: Vec<_> = (0..4).map(|_| server.connect()).collect();
        slow.iter_mut().for_each(|client| client.send(get(&format!("/files/{LARGE}"), "")));
        // A handshake whose first record is incomplete.
        let mut stuck = plain(&server);
        stuck.send([22, 3, 1, 2]);
        for round in 0..10 {
            for client in &mut slow {
                if round == 0 {
                    assert_eq!(client.head().status, 200, "{model}");
                }
                client.read_some(&mut [0; 5_000]);
            }
            assert!(server.connect().get("/files/1000", "").body == content(1_000), "{model}");
        }
        // The server no longer waits for either.
        drop((slow, stuck));
        server.stop();
    });
}

#[test]
fn sessions_are_resumed_whoever_serves_them() {
    every_model(|model| {
        let server = files(model);
        // A client whose request is still in its kernel learns at once that its handshake has ended.
        server.connect().sender().await_ticket();
        for _ in 0..6 {
            assert_eq!(server.connect().get("/files/1000", "Connection: close\r\n").status, 200, "{model}");
        }
        assert!(handshakes(&server, "resumed", "files") >= 5, "{model}");
        server.stop();
    });
}

#[test]
fn sighup_shows_a_new_certificate_to_new_clients_and_a_broken_one_to_nobody() {
    const EXPIRY: &str = "nstar_files_tls_certificate_expiry_timestamp_seconds";
    const Y2100: u64 = 4_102_444_800;
    every_model(|model| {
        let mut server = files(model);
        let mut kept = server.connect();
        assert!(kept.get("/metrics", "").metric(EXPIRY) != Y2100, "{model}");
        let is_shown_by = stream::renew(&server.folder);
        server.signal("HUP");
        eventually(&format!("{model}: the new one is shown"), || is_shown_by(server.address));
        assert_eq!(kept.get("/files/1000", "").status, 200, "{model}: connections go on");
        assert_eq!(kept.get("/metrics", "").metric(EXPIRY), Y2100, "{model}");
        server.folder.write("key.pem", "no key");
        server.signal("HUP");
        server.wait_until_it_says("stays in use");
        // Processes that had no reason to read the files before they were broken too.
        assert!((0..8).all(|_| is_shown_by(server.address)), "{model}: the one before is kept");
        assert_eq!(kept.get("/metrics", "").metric(EXPIRY), Y2100, "{model}");
        drop(kept);
        server.signal("TERM");
        server.ends();
    });
}

#[test]
fn a_server_told_to_stop_answers_what_was_begun_and_ends_what_was_not() {
    every_model(|model| {
        let server = files(model);
        let (mut idle, mut fresh, mut half, mut reading) =
            (server.connect(), server.connect(), server.connect(), server.connect());
        assert_eq!(idle.get("/files/1000", "").status, 200, "{model}");
        half.send([&get("/files/1000", ""), "GET /files/1000 HTTP/1.1\r\nHo"].concat());
        assert_eq!(half.response().status, 200, "{model}");
        reading.send(get(&format!("/files/{LARGE}"), ""));
        assert_eq!(reading.head().status, 200, "{model}");
        server.signal("TERM");
        eventually(&format!("{model}: new connections are refused"), || server.try_connect().is_err());
        assert_eq!(idle.until_broken(), b"", "{model}: an idle connection ends");
        assert_eq!(fresh.until_broken(), b"", "{model}: a fresh connection ends");
        half.send("st: localhost\r\n\r\n");
        assert_eq!(half.response().status, 200, "{model}: a request half received is answered");
        assert!(reading.rest() == content(LARGE), "{model}: what is under way is finished");
        server.ends();
    });
}

#[test]
fn an_upload_reset_in_the_middle_leaves_nothing_behind() {
    every_model(|model| {
        let server = Setup::sink(model).secured().start();
        for sent in [0, 10_000, 500_000] {
            let mut client = server.connect();
            client.send(upload_head("Expect: 100-continue\r\nContent-Length: 1000000\r\n"));
            assert_eq!(client.head().status, 100, "{model}");
            client.send(&content(LARGE)[..sent]);
            client.reset();
        }
        server.wait_for_metric("nstar_sink_failures_total", 3);
        server.wait_for_metric("nstar_sink_connections", 1);
        assert_eq!(server.metric("nstar_sink_panics_total"), 0, "{model}");
        server.stop();
    });
}
