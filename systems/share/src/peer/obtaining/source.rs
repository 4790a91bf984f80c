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
    client::{Caller, ClientError, ClientOptions, Request},
};

use super::super::hashing::outboard_len;
use crate::{
    content::Content,
    group::Group,
    seam::{Obtain, ObtainError},
};

/// How long a peer may take for one answer: one that takes longer is too slow to wait for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for an outboard, which comes in one piece: so long, and a second for so many bytes.
const OUTBOARD_PATIENCE: Duration = Duration::from_secs(3);
const OUTBOARD_BYTES_PER_S: u64 = 64 * 1024;
/// Longest outboard taken in, bytes: that of content of 64 GiB.
const OUTBOARD_LEN_MAX: u64 = 256 * 1024 * 1024;
/// Most bytes that are asked for at once, and some more for errors.
const PIECE_LEN_MAX: u64 = 8 * 1024 * 1024;
/// Connections kept to one peer.
const IDLE_MAX: usize = 4;

/// Peers that serve content by HTTP.
#[derive(Debug)]
pub(crate) struct HttpPeers {
    authorization: Option<Vec<u8>>,
    idle: Mutex<HashMap<SocketAddr, Vec<Caller>>>,
}

impl HttpPeers {
    pub(crate) fn new(group: &Group) -> Self {
        Self { authorization: group.authorization(), idle: Mutex::default() }
    }

    /// Bytes of some content, over a connection that is kept.
    fn piece(&self, from: SocketAddr, target: &str, range: &str) -> Result<(u16, Vec<u8>), ObtainError> {
        let kept = self.idle().get_mut(&from).and_then(Vec::pop);
        let mut caller = kept.unwrap_or_else(|| Caller::new(from, options(PATIENCE, PIECE_LEN_MAX)));
        let answer = self.get(&mut caller, target, &[("Range", range.as_bytes())])?;
        let mut idle = self.idle();
        let kept = idle.entry(from).or_default();
        if kept.len() < IDLE_MAX {
            kept.push(caller);
        }
        Ok(answer)
    }

    fn get(
        &self,
        caller: &mut Caller,
        target: &str,
        headers: &[(&str, &[u8])],
    ) -> Result<(u16, Vec<u8>), ObtainError> {
        let mut headers = headers.to_vec();
        headers.extend(self.authorization.as_deref().map(|value| ("Authorization", value)));
        let answer = caller.send(&Request::new(Method::Get, target).headers(&headers)).map_err(away)?;
        Ok((answer.status(), answer.into_body()))
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<SocketAddr, Vec<Caller>>> {
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Obtain for HttpPeers {
    fn outboard(&self, from: SocketAddr, content: &Content, length: u64) -> Result<Vec<u8>, ObtainError> {
        let length = outboard_len(length);
        if length > OUTBOARD_LEN_MAX {
            return Err(ObtainError::Refused("files beyond 64 GiB are not taken".into()));
        }
        let patience = OUTBOARD_PATIENCE + Duration::from_secs(length / OUTBOARD_BYTES_PER_S);
        let mut caller = Caller::new(from, options(patience, length));
        match self.get(&mut caller, &format!("/content/{content}/outboard"), &[])? {
            (200, body) => Ok(body),
            (status, _) => Err(refused(status)),
        }
    }

    fn bytes(&self, from: SocketAddr, content: &Content, range: Range<u64>) -> Result<Vec<u8>, ObtainError> {
        let Some(last) = range.end.checked_sub(1) else { return Ok(Vec::new()) };
        let wanted = format!("bytes={}-{last}", range.start);
        match self.piece(from, &format!("/content/{content}"), &wanted)? {
            (200 | 206, body) => Ok(body),
            (status, _) => Err(refused(status)),
        }
    }
}

fn away(error: ClientError) -> ObtainError {
    match error {
        ClientError::TimedOut => ObtainError::Away("it is too slow".into()),
        ClientError::Answer(_) => ObtainError::Refused("its answer cannot be read".into()),
        other => ObtainError::Away(other.to_string()),
    }
}

fn refused(status: u16) -> ObtainError {
    ObtainError::Refused(match status {
        401 => "it is of another group".into(),
        404 => "it no longer has this".into(),
        status => format!("it answered with status {status}"),
    })
}

fn options(timeout: Duration, body_len_max: u64) -> ClientOptions {
    let mut options = ClientOptions { timeout, ..ClientOptions::default() };
    options.limits.body_bytes = body_len_max;
    options
}
