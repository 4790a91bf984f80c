//! Peers as sources of content, over HTTP.

use std::{
    collections::HashMap,
    net::SocketAddr,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Request, Response, Trust, Upstream},
};

use super::super::hashing::outboard_len;
use crate::{
    content::Content,
    group::Group,
    insecure,
    peer::central,
    seam::{Obtain, ObtainError},
};

/// How long a peer may take for one answer: so long, and a second for so many bytes. One that takes longer is too slow to
/// wait for.
const PATIENCE: Duration = Duration::from_secs(2);
const BYTES_PER_S: u64 = 64 * 1024;
/// The same for a piece, at most: there are others who may give it.
const PIECE_PATIENCE_MAX: Duration = Duration::from_secs(10);
/// Outboards are asked for by so many bytes: one that is slow is left, however much it is said to have.
const OUTBOARD_PIECE: u64 = 256 * 1024;
/// Longest answer that says why there is none, bytes.
const REFUSAL_LEN_MAX: u64 = 16 * 1024;
/// Peers to which connections are kept, and how many to each.
const PEERS_MAX: usize = 64;
const IDLE_MAX: usize = 8;

/// Peers that serve content by HTTP.
#[derive(Debug)]
pub(crate) struct HttpPeers {
    authorization: Option<Vec<u8>>,
    /// None: unencrypted.
    trust: Option<Trust>,
    idle: Mutex<HashMap<SocketAddr, Vec<BlockingClient>>>,
}

/// What is asked for: a range of something that is said to be so long, bytes, and how long it may take.
struct Wanted {
    range: Range<u64>,
    of: u64,
    patience: Duration,
}

impl HttpPeers {
    pub(crate) fn new(group: &Group, trust: Option<Trust>) -> Self {
        Self { authorization: group.authorization(), trust, idle: Mutex::default() }
    }

    /// Asks over a connection that is kept.
    fn get(&self, from: SocketAddr, target: &str, wanted: &Wanted) -> Result<Vec<u8>, ObtainError> {
        let Some(last) = wanted.range.end.checked_sub(1) else { return Ok(Vec::new()) };
        let kept = self.idle().get_mut(&from).and_then(Vec::pop);
        let mut caller = match kept {
            Some(kept) => kept,
            None => BlockingClient::new(self.server(from)?, ClientOptions::default()),
        };
        caller.expect(wanted.patience, wanted.length().max(REFUSAL_LEN_MAX));
        let range = format!("bytes={}-{last}", wanted.range.start);
        let mut headers = vec![("Range", range.as_bytes())];
        headers.extend(self.authorization.as_deref().map(|value| ("Authorization", value)));
        let answer = caller.send(&Request::new(Method::Get, target).headers(&headers)).map_err(away)?;
        self.keep(caller);
        match answer.status() {
            200 | 206 => {
                wanted.check_length(&answer)?;
                Ok(answer.into_body())
            }
            _ => Err(refused(&answer)),
        }
    }

    fn server(&self, at: SocketAddr) -> Result<Upstream, ObtainError> {
        let Some(trust) = &self.trust else { return Ok(at.into()) };
        let peer = trust.peer(&at.ip().to_string());
        peer.map(|peer| Upstream::secure(at, peer)).map_err(|error| ObtainError::Refused(error.to_string()))
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
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wanted {
    fn length(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// That the peer says the same length of the whole, if it says one. Who is right shows when the bytes come.
    fn check_length(&self, answer: &Response) -> Result<(), ObtainError> {
        let whole =
            answer.header("Content-Range").and_then(|value| str::from_utf8(value).ok()?.rsplit_once('/'));
        match whole.and_then(|(_, length)| length.parse::<u64>().ok()) {
            Some(length) if length != self.of => {
                Err(ObtainError::Refused(format!("what it has of this is {length} bytes, not {}", self.of)))
            }
            _ => Ok(()),
        }
    }
}

impl Obtain for HttpPeers {
    fn outboard(&self, from: SocketAddr, content: &Content, length: u64) -> Result<Vec<u8>, ObtainError> {
        let (target, of) = (format!("/content/{content}/outboard"), outboard_len(length));
        let mut outboard = Vec::new();
        for start in (0..of).step_by(OUTBOARD_PIECE as usize) {
            let range = start..of.min(start + OUTBOARD_PIECE);
            let wanted = Wanted { patience: patience(OUTBOARD_PIECE), range, of };
            let piece = self.get(from, &target, &wanted)?;
            if piece.len() as u64 != wanted.length() {
                return Err(ObtainError::Refused("it has hashes of a file of another length".into()));
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
    ) -> Result<Vec<u8>, ObtainError> {
        let patience = patience(range.end.saturating_sub(range.start)).min(PIECE_PATIENCE_MAX);
        self.get(from, &format!("/content/{content}"), &Wanted { range, of: length, patience })
    }
}

fn away(error: ClientError) -> ObtainError {
    match error {
        ClientError::TimedOut => ObtainError::Slow,
        ClientError::Response(_) => ObtainError::Refused("its answer cannot be read".into()),
        ClientError::Insecure { source, .. } => ObtainError::Refused(insecure::explain(&source)),
        other => ObtainError::Away(other.to_string()),
    }
}

fn refused(answer: &Response) -> ObtainError {
    let why = insecure::wants_tls(answer);
    ObtainError::Refused(why.unwrap_or_else(|| match answer.status() {
        401 => "it is of another group".into(),
        403 => central::reason(answer),
        404 => "it no longer has this".into(),
        status => format!("it answered with status {status}"),
    }))
}

fn patience(length: u64) -> Duration {
    PATIENCE + Duration::from_secs_f64(length as f64 / BYTES_PER_S as f64)
}
