//! Asking a peer, as the command line does: search, obtain, list, remove. Calls block.

use std::{net::SocketAddr, ops::Range, path::Path, time::Duration};

use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Insecurity, Request, Response, Upstream},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    content::Content,
    group::Group,
    name::Name,
    peer::{Progress, central},
    seam::{Found, Query},
};

/// Longest answer, bytes.
const ANSWER_LEN_MAX: u64 = 32 * 1024 * 1024;
/// Files asked for in one request.
const PAGE: usize = 1000;
/// Longest that a peer is asked to wait: less than its answer is waited for.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A peer that is asked.
#[derive(Debug)]
pub struct Client {
    caller: BlockingClient,
    authorization: Option<Vec<u8>>,
}

/// A file that a peer shares.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listed {
    /// Where it is in the shared folder.
    pub path: String,
    /// What is in it.
    pub hash: Content,
    /// Its length, bytes.
    pub size: u64,
}

/// Why a peer does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It cannot be reached.
    #[error("the peer at {peer} cannot be asked: {reason}")]
    Away {
        /// Which.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
    /// It cannot be spoken with in private, or is not the one it should be.
    #[error("no secure connection to the peer at {peer}: {why}")]
    Insecure {
        /// Which.
        peer: SocketAddr,
        /// Why.
        why: Insecurity,
    },
    /// It speaks over TLS only.
    #[error("the peer at {0} speaks HTTPS only")]
    WantsTls(SocketAddr),
    /// It refuses.
    #[error("{reason}")]
    Refused {
        /// The status it answered with.
        status: u16,
        /// Why, in its words.
        reason: String,
    },
    /// The group's secret cannot be had.
    #[error(transparent)]
    Secret(#[from] store::SecretError),
}

impl Client {
    /// Asks the peer `to`, as a member of the group whose secret is in the file.
    ///
    /// # Errors
    /// When the secret cannot be read.
    pub fn new(to: impl Into<Upstream>, secret: Option<&Path>) -> Result<Self, AskError> {
        let mut options = ClientOptions::default();
        options.limits.body_bytes = ANSWER_LEN_MAX;
        let authorization = Group::open(secret, None)?.authorization();
        Ok(Self { caller: BlockingClient::new(to, options), authorization })
    }

    /// Finds files in the peer's index.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn search(&mut self, query: &Query) -> Result<Vec<Found>, AskError> {
        let (field, value) = match query {
            Query::Name(name) => ("name", name.to_string()),
            Query::Words(words) => ("words", words.join(" ")),
            Query::Content(content) => ("hash", content.to_string()),
        };
        let answer = self.ask(Method::Get, &format!("/search?{field}={}", encode(&value)), &[])?;
        central::read(answer.body()).ok_or_else(|| self.garbled())
    }

    /// What the peer shares.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn list(&mut self) -> Result<Vec<Listed>, AskError> {
        #[derive(Deserialize)]
        struct Page {
            files: Vec<Listed>,
        }
        let mut all: Vec<Listed> = Vec::new();
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

    /// Takes a file out of the peer's sharing; its content need only be told where there are several of the name.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn remove(&mut self, name: &Name, content: Option<Content>) -> Result<(), AskError> {
        let hash = content.map(|content| format!("?hash={content}")).unwrap_or_default();
        self.ask(Method::Delete, &format!("/files/{}{hash}", encode(name.as_str())), &[]).map(drop)
    }

    /// Has the peer obtain some content, under a name of its own choice where none is given.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn obtain(&mut self, content: Content, name: Option<&Name>) -> Result<Progress, AskError> {
        self.begin(&json!({ "hash": content, "name": name }))
    }

    /// The same of content that came wrong from the peer itself: it hashes again what it has of it first, and has it from
    /// others where that is not it any more.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn obtain_anew(&mut self, content: Content, name: Option<&Name>) -> Result<Progress, AskError> {
        self.begin(&json!({ "hash": content, "name": name, "check": true }))
    }

    fn begin(&mut self, wanted: &Value) -> Result<Progress, AskError> {
        let answer = self.ask(Method::Post, "/obtain", wanted.to_string().as_bytes())?;
        self.understand(&answer)
    }

    /// How far the peer has come with some content, when that is over or so long has passed, at most 5 s.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn progress(&mut self, content: Content, patience: Duration) -> Result<Progress, AskError> {
        let wait_s = patience.min(WAIT_MAX).as_secs_f64();
        let answer = self.ask(Method::Get, &format!("/obtain/{content}?wait={wait_s}"), &[])?;
        self.understand(&answer)
    }

    /// Takes back that the peer is to obtain some content; it gives it up where nobody else wants it, and keeps what came.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn cancel(&mut self, content: Content) -> Result<(), AskError> {
        self.ask(Method::Delete, &format!("/obtain/{content}"), &[]).map(drop)
    }

    /// Bytes of content that the peer has.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn read(&mut self, content: Content, range: Range<u64>) -> Result<Vec<u8>, AskError> {
        let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) else {
            return Ok(Vec::new());
        };
        let wanted = format!("bytes={}-{last}", range.start);
        let answer =
            self.send(Method::Get, &format!("/content/{content}"), &[("Range", wanted.as_bytes())], &[])?;
        Ok(answer.into_body())
    }

    fn ask(&mut self, method: Method, target: &str, body: &[u8]) -> Result<Response, AskError> {
        self.send(method, target, &[("Content-Type", b"application/json")], body)
    }

    fn send(
        &mut self,
        method: Method,
        target: &str,
        headers: &[(&str, &[u8])],
        body: &[u8],
    ) -> Result<Response, AskError> {
        let mut headers = headers.to_vec();
        headers.extend(self.authorization.as_deref().map(|value| ("Authorization", value)));
        // Everything that is asked here may be asked twice.
        let request = Request::new(method, target).headers(&headers).body(body).repeatable();
        let peer = self.caller.to();
        let answer = self.caller.send(&request).map_err(|error| unanswered(peer, error))?;
        match answer.status() {
            200..=299 => Ok(answer),
            _ if answer.wants_tls() => Err(AskError::WantsTls(peer)),
            status => Err(AskError::Refused { status, reason: central::reason(&answer) }),
        }
    }

    fn understand<T: DeserializeOwned>(&self, answer: &Response) -> Result<T, AskError> {
        serde_json::from_slice(answer.body()).map_err(|_| self.garbled())
    }

    fn garbled(&self) -> AskError {
        let reason = "its answer cannot be understood; is it a peer of this version?".into();
        AskError::Away { peer: self.caller.to(), reason }
    }
}

fn unanswered(peer: SocketAddr, error: ClientError) -> AskError {
    match error {
        ClientError::Insecure { source, .. } => AskError::Insecure { peer, why: source },
        error => AskError::Away { peer, reason: error.to_string() },
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
