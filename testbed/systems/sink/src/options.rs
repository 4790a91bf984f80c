//! Settings of the sink.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use http_io::server::Hosts;

/// The settings of a sink.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// What clients speak. Default HTTP.
    pub protocol: Protocol,
    /// Bytes per read. Default 64 KiB. Every read is a system call, so small chunks cost CPU time; large ones cost
    /// memory for each connection that is being read.
    pub chunk: NonZeroUsize,
    /// What to do with a body beyond counting it. Default nothing.
    pub verify: Verify,
    /// Maximum length of a body, bytes; longer ones get 413. Default no limit. The sink never holds a body, so this
    /// bounds only how long an upload takes.
    pub max_body: u64,
    /// How long to wait before each response, like a server that waits for something else. Default none.
    pub delay: Duration,
    /// The engine's connection counters, shown by `GET /metrics`: the same as in the engine's options. By default a set
    /// of its own, which stays at zero.
    pub connections: Arc<engine::Counters>,
    /// Whether clients on other machines may see the metrics. Default no.
    pub open_metrics: bool,
    /// The names to which the sink answers over HTTP. Unless they are any, which is the default, uploads that another site made a
    /// browser send are refused too.
    pub hosts: Hosts,
}

/// What clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// `POST /upload`.
    #[default]
    Http,
    /// Bytes until the client closes its side. The server sends nothing.
    Raw,
}

/// What to do with a body beyond counting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// Nothing.
    #[default]
    Nothing,
    /// Return its BLAKE3 hash, so that clients can check that every byte arrived unchanged. The hash is computed in the
    /// event loop as the body arrives: a chunk of 64 KiB takes some tens of microseconds.
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
            open_metrics: false,
            hosts: Hosts::default(),
        }
    }
}
