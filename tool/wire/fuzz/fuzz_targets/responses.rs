//! However a stream of responses is cut, the same is seen, and nothing panics.
//! Run with `cargo +nightly fuzz run responses` in `tool/wire`.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::compare_responses(data));
