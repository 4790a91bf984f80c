//! The upload sink of S5: takes whatever is sent, and keeps nothing.
//!
//! | request | answers |
//! |---|---|
//! | `POST /upload`, of any length, chunked too | 200 with `bytes`, and `blake3` where that was asked for; 413 past a limit |
//! | `GET /healthz`, `GET /metrics` | 200 |
//!
//! or, with [`Protocol::Raw`], no HTTP at all: bytes until the client closes its side.
//!
//! A body is looked at where the kernel has put it, a chunk of [`Options::chunk`] bytes at a time, and forgotten: no
//! copy is made of it, and memory does not depend on its length.

mod intake;
mod options;
mod raw;
mod service;
mod totals;

pub use self::{
    options::{Options, Protocol, Verify},
    service::{SinkFactory, SinkHandler, SinkService, factory},
    totals::Totals,
};
