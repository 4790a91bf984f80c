//! However a stream of requests is cut, the same is seen, and nothing panics.
//! Run with `cargo +nightly fuzz run requests` in `tool/wire`.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::compare_requests(data));
