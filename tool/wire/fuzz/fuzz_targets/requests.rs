//! A stream of requests is parsed the same however it is cut, and nothing panics.
//! Run with `cargo +nightly fuzz run requests` in `tool/wire`.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::compare_requests(data));
