//! The upload sink of S5: accepts any upload and keeps nothing.
//!
//! | request | response |
//! |---|---|
//! | `POST /upload`, of any length, chunked too | 200 with `bytes`, and `blake3` if hashing is on; 413 over the limit |
//! | `GET /healthz`, `GET /metrics` | 200 |
//!
//! With [`Protocol::Raw`] there is no HTTP at all: clients send bytes until they close their side.
//!
//! The service looks at a body where the kernel put it, [`Options::chunk`] bytes at a time, and then forgets it. It makes
//! no copy, and its memory does not depend on the length of the body.

pub mod command;
mod options;
mod service;
mod upload;

pub use self::{
    options::{Options, Protocol, Verify},
    service::{SinkFactory, SinkHandler, SinkService, factory},
    upload::Totals,
};
