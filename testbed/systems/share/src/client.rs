//! Client of a peer's own API, as the command line uses it: search, obtain, list, remove. Calls block.

use std::{net::SocketAddr, ops::Range, path::Path, time::Duration};

use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Insecurity, Response, Upstream},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    entry::{Content, Name, Query, SearchResult},
    group::{Group, GroupRequest, Signer},
    peer::Progress,
    query,
};

/// Longest response, bytes.
const ANSWER_LEN_MAX: u64 = 32 * 1024 * 1024;
/// Files per request for a list.
const PAGE: usize = 1000;
/// Longest time that a peer is asked to wait before it responds: shorter than the client's time-out.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A client of one peer.
#[derive(Debug)]
pub struct Client {
    caller: BlockingClient,
    signer: Signer,
}

/// A file that a peer shares.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListedFile {
    /// Path within the shared folder.
    pub path: String,
    /// Hash of its bytes.
    pub hash: Content,
    /// Length, bytes.
    pub size: u64,
}

/// Why a request to a peer failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The peer cannot be reached.
    #[error("the peer at {peer} cannot be asked: {reason}")]
    Unreachable {
        /// The peer's address.
        peer: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// There is no secure connection, or the peer is not the expected one.
    #[error("no secure connection to the peer at {peer}: {why}")]
    Insecure {
        /// The peer's address.
        peer: SocketAddr,
        /// The reason.
        why: Insecurity,
    },
    /// The peer speaks TLS only.
    #[error("the peer at {0} speaks HTTPS only")]
    WantsTls(SocketAddr),
    /// The peer refuses the request.
    #[error("{reason}")]
    Refused {
        /// The status of its response.
        status: u16,
        /// The reason it gave.
        reason: String,
    },
    /// The group's secret cannot be read.
    #[error(transparent)]
    Secret(#[from] store::SecretError),
}

impl Client {
    /// A client of the peer at `to`, with the group's secret from a file.
    ///
    /// # Errors
    /// When the secret cannot be read.
    pub fn new(to: impl Into<Upstream>, secret: Option<&Path>) -> Result<Self, RequestError> {
        let mut options = ClientOptions::default();
        options.limits.body_bytes = ANSWER_LEN_MAX;
        let signer = Group::open(secret, None)?.signer();
        Ok(Self { caller: BlockingClient::new(to, options), signer })
    }

    /// Searches the peer's index.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn search(&mut self, query: &Query) -> Result<Vec<SearchResult>, RequestError> {
        let answer = self.ask(Method::Get, &query::search_target(query), &[])?;
        query::parse_results(answer.body()).ok_or_else(|| self.garbled())
    }

    /// Lists the files that the peer shares.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn list(&mut self) -> Result<Vec<ListedFile>, RequestError> {
        #[derive(Deserialize)]
        struct Page {
            files: Vec<ListedFile>,
        }
        let mut all: Vec<ListedFile> = Vec::new();
        loop {
            let after = all.last().map_or("", |last| &last.path);
            let target = format!("/files?limit={PAGE}&after={}", encode(after));
            let answer = self.ask(Method::Get, &target, &[])?;
            let page: Page = self.understand(&answer)?;
            let last = page.files.len() < PAGE;
            all.extend(page.files);
            if last {
                return Ok(all);
            }
        }
    }

    /// Stops sharing a file. `content` is needed only if several files have this name.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn remove(&mut self, name: &Name, content: Option<Content>) -> Result<(), RequestError> {
        let hash = content.map(|content| format!("?hash={content}")).unwrap_or_default();
        self.ask(Method::Delete, &format!("/files/{}{hash}", encode(name.as_str())), &[]).map(drop)
    }

    /// Has the peer obtain content. The file gets this name, or one from the index if `name` is `None`.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn obtain(&mut self, content: Content, name: Option<&Name>) -> Result<Progress, RequestError> {
        self.begin(&json!({ "hash": content, "name": name }))
    }

    /// Like [`Self::obtain`], for content that the peer itself sent wrong: it hashes its own copy again, and obtains the
    /// content from others if the copy has changed.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn obtain_anew(&mut self, content: Content, name: Option<&Name>) -> Result<Progress, RequestError> {
        self.begin(&json!({ "hash": content, "name": name, "check": true }))
    }

    fn begin(&mut self, wanted: &Value) -> Result<Progress, RequestError> {
        let answer = self.ask(Method::Post, "/obtain", wanted.to_string().as_bytes())?;
        self.understand(&answer)
    }

    /// Waits until the peer has finished with some content, for at most `patience` or 5 s, and returns how far it is.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn progress(&mut self, content: Content, patience: Duration) -> Result<Progress, RequestError> {
        let wait_s = patience.min(WAIT_MAX).as_secs_f64();
        let answer = self.ask(Method::Get, &format!("/obtain/{content}?wait={wait_s}"), &[])?;
        self.understand(&answer)
    }

    /// Withdraws a request for some content. If nobody else wants it, the peer stops and keeps what it has received.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn cancel(&mut self, content: Content) -> Result<(), RequestError> {
        self.ask(Method::Delete, &format!("/obtain/{content}"), &[]).map(drop)
    }

    /// Reads bytes of content that the peer has.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn read(&mut self, content: Content, range: Range<u64>) -> Result<Vec<u8>, RequestError> {
        let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) else {
            return Ok(Vec::new());
        };
        let wanted = format!("bytes={}-{last}", range.start);
        let answer =
            self.send(Method::Get, &format!("/content/{content}"), &[("Range", wanted.as_bytes())], &[])?;
        Ok(answer.into_body())
    }

    fn ask(&mut self, method: Method, target: &str, body: &[u8]) -> Result<Response, RequestError> {
        self.send(method, target, &[("Content-Type", b"application/json")], body)
    }

    fn send(
        &mut self,
        method: Method,
        target: &str,
        headers: &[(&str, &[u8])],
        body: &[u8],
    ) -> Result<Response, RequestError> {
        // Every request here may be repeated safely.
        let request = GroupRequest { method, target, headers, body };
        let peer = self.caller.to();
        let answer = self.signer.send(&mut self.caller, request).map_err(|error| unanswered(peer, error))?;
        match answer.status() {
            200..=299 => Ok(answer),
            _ if answer.wants_tls() => Err(RequestError::WantsTls(peer)),
            status => Err(RequestError::Refused { status, reason: query::error_reason(&answer) }),
        }
    }

    fn understand<T: DeserializeOwned>(&self, answer: &Response) -> Result<T, RequestError> {
        serde_json::from_slice(answer.body()).map_err(|_| self.garbled())
    }

    fn garbled(&self) -> RequestError {
        let reason = "its answer cannot be understood; is it a peer of this version?".into();
        RequestError::Unreachable { peer: self.caller.to(), reason }
    }
}

fn unanswered(peer: SocketAddr, error: ClientError) -> RequestError {
    match error {
        ClientError::Insecure { source, .. } => RequestError::Insecure { peer, why: source },
        error => RequestError::Unreachable { peer, reason: error.to_string() },
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
