//! Uploads arrive whole, whatever their length and pace. Incomplete ones are not acknowledged.

use crate::{
    client::{chunked, upload, upload_head},
    content::{LARGE, content, receipt},
    models::every_model,
    server::{Served, Setup},
};

fn sink(model: engine::Model) -> Served {
    Setup::sink(model).with("--verify blake3").start()
}

#[test]
fn large_bodies_come_byte_for_byte_in_any_chunk_and_framing() {
    every_model(|model| {
        for (chunk, length) in [("64KiB", LARGE), ("1000", 3_000_000)] {
            let server = Setup::sink(model).with("--verify blake3 --chunk").with(chunk).start();
            let mut client = server.connect();
            for request in [upload(content(length)), chunked(content(length), 1_000_003)] {
                client.send(request);
                assert_eq!(client.response().text(), receipt(content(length)), "{model}: chunk {chunk}");
            }
            server.stop().says(&format!("received {} bytes; 2 uploads completed, 0 failed", 2 * length));
        }
    });
}

#[test]
fn slow_writers_are_waited_for_while_others_are_served() {
    every_model(|model| {
        let server = sink(model);
        let request = upload(content(30));
        let mut slow: Vec<_> = (0..20).map(|_| server.connect()).collect();
        // All of them byte by byte, in turn.
        for (number, byte) in request.iter().enumerate() {
            slow.iter_mut().for_each(|client| client.send([*byte]));
            if number % 20 == 0 {
                let mut other = server.connect();
                other.send(upload(content(100_000)));
                assert_eq!(other.response().text(), receipt(content(100_000)), "{model}");
            }
        }
        for client in &mut slow {
            assert_eq!(client.response().text(), receipt(content(30)), "{model}");
        }
        server.stop().says("0 failed");
    });
}

#[test]
fn an_upload_whose_client_ends_its_side_is_acknowledged_only_if_it_is_whole() {
    every_model(|model| {
        let server = sink(model);
        for request in [upload(content(1_000_000)), chunked(content(1_000_000), 10_000)] {
            let mut whole = server.connect();
            whole.send(&request);
            whole.end_sending();
            assert_eq!(whole.response().text(), receipt(content(1_000_000)), "{model}");
            assert_eq!(whole.rest(), b"", "{model}");
            let mut cut = server.connect();
            cut.send(&request[..request.len() - 1]);
            cut.end_sending();
            let said = String::from_utf8(cut.rest()).unwrap();
            assert!(!said.contains("HTTP/1.1 200"), "{model}: {said}");
        }
        server.stop().says("2 uploads completed, 2 failed");
    });
}

#[test]
fn uploads_reset_in_the_middle_leave_nothing_behind() {
    const BROKEN: usize = 40;
    every_model(|model| {
        let server = sink(model);
        for number in 0..BROKEN {
            let mut client = server.connect();
            client.send(upload_head("Expect: 100-continue\r\nContent-Length: 1000000\r\n"));
            // An upload that breaks off before the server accepts it may not be counted.
            assert_eq!(client.head().status, 100, "{model}");
            client.send(&content(LARGE)[..number * 10_000]);
            client.reset();
        }
        server.wait_for_metric("nstar_sink_failures_total", BROKEN as u64);
        server.wait_for_metric("nstar_sink_connections", 1);
        let mut client = server.connect();
        client.send(upload(content(1_000)));
        assert_eq!(client.response().text(), receipt(content(1_000)), "{model}");
        server.stop().says("1 uploads completed, 40 failed");
    });
}

#[test]
fn bytes_without_http_are_counted_to_the_last() {
    every_model(|model| {
        let server = Setup::sink(model).with("--raw --chunk 1024").start();
        for length in [0, 1, 1_024, 5_000_000] {
            let mut client = server.connect();
            client.send(content(length));
            client.end_sending();
            assert_eq!(client.rest(), b"", "{model}");
        }
        server.stop().says("received 5001025 bytes; 4 uploads completed, 0 failed");
    });
}
