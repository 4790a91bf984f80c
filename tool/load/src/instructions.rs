//! Limits on the instructions that each request may take, counted by callgrind, whose counts do not depend on how busy the
//! machine is.
//!
//! If a count is well below its baseline, lower the baseline.

use std::hint::black_box;
use std::process::Command;

use wire::{Limits, Method};

use crate::requests::Program;
use crate::requests::program::PreparedRequest;
use crate::requests::response::Response;
use crate::scenario::definition::Scenario;
use crate::scenario::single::RequestTemplate;
use crate::ticks::recorder::Recorder;
use crate::url::Url;

/// Responses per count.
const RESPONSES: u64 = 2_000;

/// Instructions per response when last counted; processors and compilers differ a little.
const FEED_BASELINE: u64 = 3_900;
const RECORD_BASELINE: u64 = 120;

/// Tolerance for other compilers.
const MARGIN: f64 = 1.4;

/// Parses whole responses as a web server sends them: parser, framing, checks.
#[inline(never)]
fn feed_responses(response: &mut Response, asked: &PreparedRequest, bytes: &[u8]) {
    let limits = Limits { body_bytes: u64::MAX, ..Limits::default() };
    for _ in 0..RESPONSES {
        response.reset();
        let completed = response.feed(black_box(bytes), asked, &limits).unwrap();
        assert!(completed.is_some_and(|completed| completed.status == 200));
    }
}

/// Records completed requests in one slice.
#[inline(never)]
fn record_responses(recorder: &mut Recorder) {
    for response_ns in 0..RESPONSES {
        recorder.roll(black_box(0));
        recorder.completed(black_box(0), black_box(150_000 + response_ns * 100));
        recorder.received(black_box(1_000));
    }
}

#[test]
#[ignore = "run under callgrind by the test below"]
fn subject() {
    let url: Url = "http://127.0.0.1/".parse().unwrap();
    let scenario = Scenario::single(&url, RequestTemplate::default()).unwrap();
    let program = Program::new(&scenario, &url, false);
    assert_eq!(program.requests[0].method, Method::Get);
    let mut bytes = b"HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Content-Type: application/octet-stream\r\nContent-Length: 1000\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 \
        GMT\r\nConnection: keep-alive\r\nETag: \"2ebb0d95-3e8\"\r\nAccept-Ranges: bytes\r\n\r\n"
        .to_vec();
    bytes.resize(bytes.len() + 1_000, b'x');
    feed_responses(&mut Response::default(), &program.requests[0], &bytes);
    record_responses(&mut Recorder::new(0));
}

#[test]
fn a_response_takes_no_more_instructions_than_before() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("SKIPPED: valgrind is not installed (scripts/setup-tests)");
        return;
    }
    for (function, baseline) in [("feed_responses", FEED_BASELINE), ("record_responses", RECORD_BASELINE)] {
        let each = instructions(function) / RESPONSES;
        eprintln!("{function}: {each} instructions a response");
        assert!(
            each as f64 <= baseline as f64 * MARGIN,
            "{function}: {each} instructions a response, {baseline} before: find what made it slower (valgrind \
             --tool=callgrind), or say in the commit why it is worth it and raise the baseline"
        );
        assert!(each > 0, "{function} was not called, or callgrind did not see it");
    }
}

/// Counts the instructions in a function that [`subject`] calls, callees included.
fn instructions(function: &str) -> u64 {
    let run = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            &format!("--toggle-collect=*{function}*"),
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "instructions::subject", "--ignored", "--test-threads=1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected.unwrap_or_else(|| panic!("callgrind counted nothing: {said}"))
}
