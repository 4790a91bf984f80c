//! Fetches content from other peers over HTTP.

use std::{
    collections::HashMap,
    net::SocketAddr,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Response, Trust, Upstream},
};

use crate::{
    entry::Content,
    group::{self, Group, GroupRequest, Signer},
    interfaces::{ContentSource, FetchError},
    peer::shared::hashing::outboard_len,
    query,
};

/// Time-out of a response: this, and a second for this many bytes.
const TIMEOUT: Duration = Duration::from_secs(2);
const BYTES_PER_S: u64 = 64 * 1024;
/// Longest time-out for a range of content: other peers may be able to send it.
const PIECE_TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// Outboards are fetched in pieces of this length, bytes, so that a slow peer is noticed however long the outboard is said
/// to be.
const OUTBOARD_PIECE: u64 = 256 * 1024;
/// Longest error response, bytes.
const REFUSAL_LEN_MAX: u64 = 16 * 1024;
/// Most peers to keep connections to, and most connections to each.
const PEERS_MAX: usize = 64;
const IDLE_MAX: usize = 8;

/// Other peers, asked over HTTP.
#[derive(Debug)]
pub(crate) struct HttpSource {
    signer: Signer,
    /// TLS settings. `None`: not encrypted.
    trust: Option<Trust>,
    idle: Mutex<HashMap<SocketAddr, Vec<BlockingClient>>>,
}

/// A range of something with a claimed length, in bytes, and the time-out.
struct RangeRequest {
    range: Range<u64>,
    of: u64,
    timeout: Duration,
}

impl HttpSource {
    pub(crate) fn new(group: &Group, trust: Option<Trust>) -> Self {
        Self { signer: group.signer(), trust, idle: Mutex::default() }
    }

    /// Sends a request, over a kept connection if there is one.
    fn get(&self, from: SocketAddr, target: &str, wanted: &RangeRequest) -> Result<Vec<u8>, FetchError> {
        let Some(last) = wanted.range.end.checked_sub(1) else { return Ok(Vec::new()) };
        let kept = self.idle().get_mut(&from).and_then(Vec::pop);
        let mut caller = match kept {
            Some(kept) => kept,
            None => BlockingClient::new(self.server(from)?, ClientOptions::default()),
        };
        caller.expect(wanted.timeout, wanted.length().max(REFUSAL_LEN_MAX));
        let range = format!("bytes={}-{last}", wanted.range.start);
        let headers = &[("Range", range.as_bytes())];
        let request = GroupRequest { method: Method::Get, target, headers, body: b"" };
        let answer = self.signer.send(&mut caller, request).map_err(away)?;
        self.keep(caller);
        match answer.status() {
            200 | 206 => {
                wanted.check_length(&answer)?;
                Ok(answer.into_body())
            }
            _ => Err(refused(&answer)),
        }
    }

    fn server(&self, at: SocketAddr) -> Result<Upstream, FetchError> {
        let Some(trust) = &self.trust else { return Ok(at.into()) };
        let peer = trust.peer(&at.ip().to_string());
        peer.map(|peer| Upstream::secure(at, peer)).map_err(|error| FetchError::Refused(error.to_string()))
    }

    fn keep(&self, caller: BlockingClient) {
        let mut idle = self.idle();
        if idle.len() >= PEERS_MAX && !idle.contains_key(&caller.to()) {
            idle.clear();
        }
        let kept = idle.entry(caller.to()).or_default();
        if kept.len() < IDLE_MAX {
            kept.push(caller);
        }
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<SocketAddr, Vec<BlockingClient>>> {
        // No code panics while holding the lock.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RangeRequest {
    fn length(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Checks that the peer states the claimed length, if it states one. Who is right shows when the bytes come.
    fn check_length(&self, answer: &Response) -> Result<(), FetchError> {
        let whole =
            answer.header("Content-Range").and_then(|value| str::from_utf8(value).ok()?.rsplit_once('/'));
        match whole.and_then(|(_, length)| length.parse::<u64>().ok()) {
            Some(length) if length != self.of => {
                Err(FetchError::Refused(format!("what it has of this is {length} bytes, not {}", self.of)))
            }
            _ => Ok(()),
        }
    }
}

impl ContentSource for HttpSource {
    fn outboard(&self, from: SocketAddr, content: &Content, length: u64) -> Result<Vec<u8>, FetchError> {
        let (target, of) = (format!("/content/{content}/outboard"), outboard_len(length));
        let mut outboard = Vec::new();
        for start in (0..of).step_by(OUTBOARD_PIECE as usize) {
            let range = start..of.min(start + OUTBOARD_PIECE);
            let request = RangeRequest { timeout: timeout(OUTBOARD_PIECE), range, of };
            let piece = self.get(from, &target, &request)?;
            if piece.len() as u64 != request.length() {
                return Err(FetchError::Refused("it has hashes of a file of another length".into()));
            }
            outboard.extend(piece);
        }
        Ok(outboard)
    }

    fn bytes(
        &self,
        from: SocketAddr,
        content: &Content,
        length: u64,
        range: Range<u64>,
    ) -> Result<Vec<u8>, FetchError> {
        let timeout = timeout(range.end.saturating_sub(range.start)).min(PIECE_TIMEOUT_MAX);
        self.get(from, &format!("/content/{content}"), &RangeRequest { range, of: length, timeout })
    }

    fn tell_wrong(&self, whom: SocketAddr, content: &Content) {
        let Ok(server) = self.server(whom) else { return };
        let mut caller = BlockingClient::new(server, ClientOptions::default());
        caller.expect(TIMEOUT, REFUSAL_LEN_MAX);
        let target = format!("/content/{content}/wrong");
        let request = GroupRequest { method: Method::Post, target: &target, headers: &[], body: b"" };
        // A liar does not listen, and a peer of an older version does not understand.
        let _ = self.signer.send(&mut caller, request);
    }
}

fn away(error: ClientError) -> FetchError {
    match error {
        ClientError::TimedOut => FetchError::TooSlow,
        ClientError::Response(_) => FetchError::Refused("its answer cannot be read".into()),
        ClientError::Insecure { source, .. } => FetchError::Refused(group::explain_insecurity(&source)),
        other => FetchError::Unreachable(other.to_string()),
    }
}

fn refused(answer: &Response) -> FetchError {
    let why = group::wants_tls(answer);
    FetchError::Refused(why.unwrap_or_else(|| match answer.status() {
        401 => "it is of another group".into(),
        403 => query::error_reason(answer),
        404 => "it no longer has this".into(),
        status => format!("it answered with status {status}"),
    }))
}

fn timeout(length: u64) -> Duration {
    TIMEOUT + Duration::from_secs_f64(length as f64 / BYTES_PER_S as f64)
}
