//! What the sink is started with.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

/// The settings of a sink.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// What clients speak. Default HTTP.
    pub protocol: Protocol,
    /// Bytes read at a time. Default 64 KiB. Every read is a system call, so small chunks cost processor time; large
    /// ones cost memory for each connection that is being read.
    pub chunk: NonZeroUsize,
    /// What is made of a body beyond counting it. Default nothing.
    pub verify: Verify,
    /// Longest body accepted, bytes; 413 beyond. Default no limit. Bodies are never held, so this bounds time only.
    pub max_body: u64,
    /// How long to wait before each upload is answered, as a server does that waits for something else. Default none.
    pub delay: Duration,
    /// What the engine counts of the server's connections, to be shown by `GET /metrics`: the same as in the engine's
    /// options. Default: its own, that stays at zero.
    pub connections: Arc<engine::Counters>,
}

/// What clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// `POST /upload`.
    #[default]
    Http,
    /// Bytes until the client closes its side. Nothing is answered.
    Raw,
}

/// What is made of a body beyond counting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// Nothing.
    #[default]
    Nothing,
    /// Its BLAKE3 hash is in the answer, so that a client can tell that every byte came as it was sent. It is computed
    /// chunk by chunk as the body comes, in the loop: a chunk of 64 KiB takes some tens of microseconds.
    Blake3,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
            chunk: NonZeroUsize::new(64 << 10).unwrap_or(NonZeroUsize::MIN),
            verify: Verify::default(),
            max_body: u64::MAX,
            delay: Duration::ZERO,
            connections: Arc::default(),
        }
    }
}
