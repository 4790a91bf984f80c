//! `POST /upload`: every byte is counted, whatever the length and framing.

use std::{
    io::{ErrorKind, Read, Write},
    num::NonZeroUsize,
    time::{Duration, Instant},
};

use sink::{Options, Verify};

use crate::support::{MODELS, Sink, answer, chunked, eventually, head, pattern, rest, upload};

const LENGTHS: [usize; 6] = [0, 1, 1_023, 1_024, 65_537, 3_000_000];

fn verifying(chunk: usize) -> Options {
    let mut options = Options::default();
    options.chunk = NonZeroUsize::new(chunk).unwrap();
    options.verify = Verify::Blake3;
    options
}

#[test]
fn every_byte_is_counted_and_hashed_whatever_the_chunk_and_the_framing() {
    for model in MODELS {
        for chunk in [1_024, 64 << 10] {
            let sink = Sink::start(model, verifying(chunk));
            let mut stream = sink.connect();
            for length in LENGTHS {
                let body = pattern(length);
                let hash = blake3::hash(&body);
                let expected = format!(r#"{{"bytes":{length},"blake3":"{hash}"}}"#);
                for request in [upload(&body), chunked(&body, &[1, 700, 40_000])] {
                    stream.write_all(&request).unwrap();
                    assert_eq!(answer(&mut stream), ("HTTP/1.1 200 OK".into(), expected.clone()), "{model}");
                }
            }
            let sent = 2 * LENGTHS.iter().sum::<usize>() as u64;
            eventually("all is counted", || sink.totals.received_bytes() == sent);
            assert_eq!((sink.totals.uploads(), sink.totals.upload_bytes()), (12, sent), "{model}");
            assert_eq!(sink.totals.failures(), 0, "{model}");
        }
    }
}

#[test]
fn pipelined_uploads_are_answered_in_order() {
    for model in MODELS {
        let sink = Sink::start(model, Options::default());
        let mut stream = sink.connect();
        let requests: Vec<u8> =
            [5, 70_000, 0].into_iter().flat_map(|length| upload(&pattern(length))).collect();
        stream.write_all(&requests).unwrap();
        for length in [5, 70_000, 0] {
            assert_eq!(answer(&mut stream).1, format!(r#"{{"bytes":{length}}}"#), "{model}");
        }
    }
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    for model in MODELS {
        let sink = Sink::start(model, Options::default());
        let mut stream = sink.connect();
        stream.write_all(&head("Expect: 100-continue\r\nContent-Length: 3\r\n")).unwrap();
        let mut said = [0; 25];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n", "{model}");
        stream.write_all(b"abc").unwrap();
        assert_eq!(answer(&mut stream).1, r#"{"bytes":3}"#, "{model}");
    }
}

#[test]
fn too_long_uploads_are_refused_before_they_arrive() {
    for model in MODELS {
        let mut options = Options::default();
        options.max_body = 1_000;
        let sink = Sink::start(model, options);
        let announced = sink.ask(&head("Content-Length: 1001\r\n"));
        assert!(announced.starts_with("HTTP/1.1 413 "), "{model}: {announced}");
        let in_chunks = sink.ask(&chunked(&pattern(1_001), &[600]));
        assert!(in_chunks.starts_with("HTTP/1.1 413 "), "{model}: {in_chunks}");
        let mut stream = sink.connect();
        stream.write_all(&upload(&pattern(1_000))).unwrap();
        assert_eq!(answer(&mut stream).1, r#"{"bytes":1000}"#, "{model}");
        assert_eq!((sink.totals.uploads(), sink.totals.failures()), (1, 2), "{model}");
    }
}

#[test]
fn other_methods_paths_and_broken_requests_get_their_status() {
    for model in MODELS {
        let sink = Sink::start(model, Options::default());
        let close = "Host: x\r\nConnection: close\r\n";
        for (request, status) in [
            (format!("GET /upload HTTP/1.1\r\n{close}\r\n"), "405"),
            (format!("PUT /upload HTTP/1.1\r\n{close}Content-Length: 1\r\n\r\nx"), "405"),
            (format!("POST /metrics HTTP/1.1\r\n{close}Content-Length: 1\r\n\r\nx"), "405"),
            (format!("POST / HTTP/1.1\r\n{close}Content-Length: 1\r\n\r\nx"), "404"),
            (format!("GET /healthz HTTP/1.1\r\n{close}\r\n"), "200"),
            (format!("POST /upload HTTP/1.1\r\n{close}Content-Length: x\r\n\r\n"), "400"),
            (format!("POST /upload HTTP/1.1\r\n{close}Transfer-Encoding: chunked\r\n\r\nnot hex\r\n"), "400"),
            (format!("POST /upload HTTP/1.1\r\n{close}X: {}\r\n\r\n", "x".repeat(20_000)), "431"),
        ] {
            let answer = sink.ask(request.as_bytes());
            let line = answer.lines().next().unwrap_or_default();
            assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{model}: {line} to {request:.60}");
        }
        assert!(sink.ask(format!("GET /upload HTTP/1.1\r\n{close}\r\n").as_bytes()).contains("Allow: POST"));
        assert_eq!(sink.totals.failures(), 1, "{model}: the upload with a broken chunk, and nothing else");
    }
}

#[test]
fn an_upload_that_breaks_off_counts_as_a_failure() {
    for model in MODELS {
        let sink = Sink::start(model, Options::default());
        let mut stream = sink.connect();
        stream.write_all(&head("Content-Length: 1000000\r\n")).unwrap();
        stream.write_all(&pattern(5_000)).unwrap();
        drop(stream);
        eventually("the failure is counted", || sink.totals.failures() == 1);
        assert_eq!((sink.totals.uploads(), sink.totals.received_bytes()), (0, 5_000), "{model}");
        let metrics = sink.metrics();
        for line in [
            "nstar_sink_received_bytes_total 5000",
            "nstar_sink_failures_total 1",
            "nstar_sink_connections_accepted_total 2",
        ] {
            assert!(metrics.contains(line), "{model}: no {line} in {metrics}");
        }
        assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    }
}

#[test]
fn a_slow_client_does_not_hold_up_others() {
    for model in MODELS {
        let sink = Sink::start(model, Options::default());
        let mut slow = sink.connect();
        slow.write_all(&head("Content-Length: 2\r\n")).unwrap();
        slow.write_all(b"a").unwrap();
        let mut other = sink.connect();
        other.write_all(&upload(&pattern(1_000_000))).unwrap();
        assert_eq!(answer(&mut other).1, r#"{"bytes":1000000}"#, "{model}");
        slow.write_all(b"b").unwrap();
        assert_eq!(answer(&mut slow).1, r#"{"bytes":2}"#, "{model}");
    }
}

#[test]
fn each_response_is_delayed() {
    for model in MODELS {
        let mut options = Options::default();
        options.delay = Duration::from_millis(50);
        let sink = Sink::start(model, options);
        let begun = Instant::now();
        let mut stream = sink.connect();
        for _ in 0..2 {
            stream.write_all(&upload(b"abc")).unwrap();
            assert_eq!(answer(&mut stream).1, r#"{"bytes":3}"#, "{model}");
        }
        assert!(begun.elapsed() >= Duration::from_millis(100), "{model}");
    }
}

#[test]
fn a_delayed_upload_does_not_hold_up_others() {
    for model in MODELS {
        let mut options = Options::default();
        options.delay = Duration::from_secs(3_600);
        let sink = Sink::start(model, options);
        let mut waiting = sink.connect();
        waiting.write_all(&upload(b"abc")).unwrap();
        assert!(sink.metrics().contains("nstar_sink_uploads_total 0"), "{model}");
        waiting.set_nonblocking(true).unwrap();
        assert_eq!(waiting.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "{model}");
    }
}

#[test]
fn the_connection_closes_after_a_response_with_close() {
    for model in MODELS {
        let sink = Sink::start(model, Options::default());
        let mut stream = sink.connect();
        stream.write_all(&head("Connection: close\r\nContent-Length: 2\r\n")).unwrap();
        stream.write_all(b"ok").unwrap();
        assert!(rest(&mut stream).ends_with(r#"{"bytes":2}"#), "{model}");
    }
}
