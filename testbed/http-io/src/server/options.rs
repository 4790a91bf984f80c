//! The time-outs and limits of a server.

use std::time::Duration;

use engine::service::Pace;
use wire::Limits;

use super::{hosts::Hosts, proxies::Proxies};

/// The time-outs and limits of a server, common to all its connections.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// How long a connection may stay idle between requests. Default 60 s. Each idle one holds a file descriptor.
    pub idle_timeout: Duration,
    /// How long a request head may take from its first byte. Default 10 s; then 408.
    pub head_timeout: Duration,
    /// How long a client may take to send [`progress_bytes`](Self::progress_bytes) of a body. Default 30 s; then 408.
    pub body_timeout: Duration,
    /// How long a client may take to accept [`progress_bytes`](Self::progress_bytes) of a response. Default 30 s; then it is
    /// cut off.
    pub write_timeout: Duration,
    /// How many bytes must move within a body or write time-out. Default 256 KiB: clients slower than about 8 KiB/s are cut
    /// off.
    pub progress_bytes: u64,
    /// How long to wait until a client notices that the server closes the connection. Default 1 s.
    pub linger_timeout: Duration,
    /// How many unwanted bytes are read so that a client sees the response rather than a reset, and how long an unread
    /// body may be for the connection to be kept. Default 256 KiB.
    pub drain_bytes: u64,
    /// How many bytes of responses to pipelined requests are gathered before they are sent. Default 64 KiB.
    pub gather_bytes: usize,
    /// The proxies whose `Forwarded` and `X-Forwarded-For` are trusted. Default: none.
    pub proxies: Proxies,
    /// The names to which the server answers. Unless they are any, which is the default, requests that may change something
    /// must not come from another site either.
    pub hosts: Hosts,
    /// Whether clients on other machines may see the metrics. Default no.
    pub open_metrics: bool,
    /// Whether clients connect over TLS. Default no.
    pub encrypted: bool,
    /// Sizes within a message. `body_bytes` is the longest request body unless the handler sets another limit; default
    /// 1 MiB here.
    pub limits: Limits,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(60),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            progress_bytes: 256 * 1024,
            linger_timeout: Duration::from_secs(1),
            drain_bytes: 256 * 1024,
            gather_bytes: 64 * 1024,
            proxies: Proxies::default(),
            hosts: Hosts::default(),
            open_metrics: false,
            encrypted: false,
            limits: Limits { body_bytes: 1024 * 1024, ..Limits::default() },
        }
    }
}

impl HttpOptions {
    /// The defaults, trusting these proxies.
    pub fn behind(proxies: &Proxies) -> Self {
        Self { proxies: proxies.clone(), ..Self::default() }
    }

    /// The least that a client must take of a response.
    pub(crate) fn pace(&self) -> Pace {
        Pace { bytes: self.progress_bytes, within: self.write_timeout }
    }
}
