//! The central index, as a peer asks it.

mod contact;

use std::{
    net::SocketAddr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Request, Response, Upstream},
    server::HTTPS_ONLY,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

use self::contact::Contact;
use crate::{
    group::Group,
    insecure,
    seam::{Entry, Found, Index, IndexError, Query},
};

/// Most files in one request.
const BATCH: usize = 1000;
/// Longest answer, bytes.
const ANSWER_LEN_MAX: u64 = 32 * 1024 * 1024;
/// How long an answer may take to whether it is there.
const LOOK_WITHIN: Duration = Duration::from_secs(2);
/// Renewed so many times in the time that is given.
const RENEWALS: u64 = 3;

/// The central index. Its connections are kept, and shared by all threads.
#[derive(Debug)]
pub(crate) struct Central {
    to: Upstream,
    /// Where this peer can be reached.
    me: OnceLock<SocketAddr>,
    authorization: Option<Vec<u8>>,
    idle: Mutex<Vec<BlockingClient>>,
    life_s: AtomicU64,
    contact: Contact,
}

impl Central {
    pub(crate) fn new(to: Upstream, group: &Group) -> Self {
        let authorization = group.authorization();
        let (me, idle, life_s) = (OnceLock::new(), Mutex::default(), AtomicU64::new(30));
        Self { to, me, authorization, idle, life_s, contact: Contact::default() }
    }

    fn ask(&self, method: Method, target: &str, body: &[u8]) -> Result<Response, IndexError> {
        let answer = self.try_ask(method, target, body);
        self.contact.note(&answer);
        answer
    }

    fn try_ask(&self, method: Method, target: &str, body: &[u8]) -> Result<Response, IndexError> {
        let mut headers = vec![("Content-Type", &b"application/json"[..])];
        headers.extend(self.authorization.as_deref().map(|value| ("Authorization", value)));
        // Everything that is asked here may be asked twice.
        let request = Request::new(method, target).headers(&headers).body(body).repeatable();
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut caller = kept.unwrap_or_else(|| BlockingClient::new(self.to.clone(), options()));
        let answer = caller.send(&request).map_err(|error| self.unanswered(&error))?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(caller);
        match answer.status() {
            200..=299 => Ok(answer),
            404 => Err(IndexError::Forgotten { index: self.name() }),
            503 | 507 => Err(self.away(reason(&answer))),
            _ if answer.wants_tls() => Err(self.refused(format!(
                "{HTTPS_ONLY}: give --index https://{}, or --allow and its key where members are known by keys",
                self.name()
            ))),
            _ => Err(self.refused(advice(&answer))),
        }
    }

    fn post(&self, target: &str, mut body: Value) -> Result<Response, IndexError> {
        let me = self.me.get().ok_or_else(|| self.away("this peer does not listen yet".into()))?;
        if let Some(fields) = body.as_object_mut() {
            fields.insert("peer".into(), json!(me));
        }
        let answer = self.ask(Method::Post, target, body.to_string().as_bytes())?;
        if let Some(life_s) = serde_json::from_slice(answer.body())
            .ok()
            .and_then(|answer: Value| answer["expires_in_s"].as_u64())
        {
            self.life_s.store(life_s.max(1), Relaxed);
        }
        Ok(answer)
    }

    /// Sees whether it is there at all.
    fn look_now(&self) -> Result<(), IndexError> {
        let options = ClientOptions { timeout: LOOK_WITHIN, ..options() };
        let answer =
            BlockingClient::new(self.to.clone(), options).send(&Request::new(Method::Get, "/healthz"));
        match answer.map_err(|error| self.unanswered(&error))?.status() {
            200 => Ok(()),
            status => Err(self.away(format!("it answered with status {status}"))),
        }
    }

    fn unanswered(&self, error: &ClientError) -> IndexError {
        match error {
            ClientError::Insecure { source, .. } => self.refused(insecure::explain(source)),
            error => self.away(error.to_string()),
        }
    }

    fn away(&self, reason: String) -> IndexError {
        IndexError::Away { index: self.name(), reason }
    }

    fn refused(&self, reason: String) -> IndexError {
        IndexError::Refused { index: self.name(), reason }
    }

    fn name(&self) -> String {
        self.to.at().to_string()
    }
}

impl Index for Central {
    fn begin(&self, me: SocketAddr) {
        self.me.get_or_init(|| me);
    }

    fn register(&self, entries: &[Entry]) -> Result<(), IndexError> {
        if entries.is_empty() {
            return self.post("/register", json!({ "files": [] })).map(drop);
        }
        entries
            .chunks(BATCH)
            .try_for_each(|batch| self.post("/register", json!({ "files": batch })).map(drop))
    }

    fn deregister(&self, entries: &[Entry]) -> Result<(), IndexError> {
        entries.chunks(BATCH).try_for_each(|batch| {
            let files: Vec<_> =
                batch.iter().map(|entry| json!({ "name": entry.name, "hash": entry.content })).collect();
            self.post("/deregister", json!({ "files": files })).map(drop)
        })
    }

    fn leave(&self) -> Result<(), IndexError> {
        self.post("/deregister", json!({ "all": true })).map(drop)
    }

    fn renew(&self) -> Result<(), IndexError> {
        self.post("/renew", json!({})).map(drop)
    }

    fn renew_every(&self) -> Duration {
        Duration::from_secs(self.life_s.load(Relaxed)) / u32::try_from(RENEWALS).unwrap_or(1)
    }

    fn search(&self, query: &Query) -> Result<Vec<Found>, IndexError> {
        let (field, value) = match query {
            Query::Name(name) => ("name", name.to_string()),
            Query::Words(words) => ("words", words.join(" ")),
            Query::Content(content) => ("hash", content.to_string()),
        };
        let target = format!("/search?{field}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC));
        let answer = self.ask(Method::Get, &target, &[])?;
        read(answer.body()).ok_or_else(|| self.away("its answer cannot be understood".into()))
    }

    fn asked_at(&self) -> Option<SocketAddr> {
        Some(self.to.at())
    }

    fn look(&self) {
        if self.contact.is_due() {
            self.contact.note_look(&self.look_now());
        }
    }

    fn trouble(&self) -> Option<String> {
        self.contact.trouble()
    }
}

/// An answer to a search, not believed yet.
#[derive(Deserialize)]
struct Answer {
    found: Vec<Unchecked>,
}

#[derive(Deserialize)]
struct Unchecked {
    name: String,
    hash: String,
    size: u64,
    peers: Vec<SocketAddr>,
}

/// Reads an answer to a search; files whose name or content are none, or that nobody can have, are left out.
pub(crate) fn read(body: &[u8]) -> Option<Vec<Found>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    let checked = |file: Unchecked| {
        let entry =
            Entry { name: file.name.parse().ok()?, content: file.hash.parse().ok()?, size: file.size };
        entry.is_obtainable().then_some(Found { entry, peers: file.peers })
    };
    Some(answer.found.into_iter().filter_map(checked).collect())
}

/// Why it refused, in its words.
pub(crate) fn reason(answer: &Response) -> String {
    let body: Option<Value> = serde_json::from_slice(answer.body()).ok();
    let said = body.as_ref().and_then(|body| body["error"].as_str());
    said.map_or_else(|| format!("it answered with status {}", answer.status()), str::to_owned)
}

/// The same, and what to do about it.
fn advice(answer: &Response) -> String {
    let body: Option<Value> = serde_json::from_slice(answer.body()).ok();
    let hint = body.as_ref().and_then(|body| body["hint"].as_str());
    hint.map_or_else(|| reason(answer), |hint| format!("{}; {hint}", reason(answer)))
}

fn options() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.limits.body_bytes = ANSWER_LEN_MAX;
    options
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::content::Content;

    #[test]
    fn names_that_lead_elsewhere_are_left_out_of_answers() {
        let hash = Content::of(b"x");
        let file = |name: &str| json!({"name": name, "hash": hash, "size": 1, "peers": ["127.0.0.1:1"]});
        let answer = json!({"found": [file("../../etc/passwd"), file("a"), file(".bashrc"), file("/x")]});
        let found = read(answer.to_string().as_bytes()).unwrap();
        assert_eq!(found.iter().map(|found| found.entry.name.as_str()).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn files_of_a_size_that_none_can_have_are_left_out_of_answers() {
        let hash = Content::of(b"x");
        let file = |size: u64| json!({"name": "a", "hash": hash, "size": size, "peers": ["127.0.0.1:1"]});
        let sizes = [0, 1, Entry::SIZE_MAX, Entry::SIZE_MAX + 1, i64::MAX as u64, u64::MAX];
        let found = read(json!({"found": sizes.map(file)}).to_string().as_bytes()).unwrap();
        assert_eq!(found.iter().map(|found| found.entry.size).collect::<Vec<_>>(), [1, Entry::SIZE_MAX]);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(body in "\\PC{0,60}|[\\[\\]{}\":,a-z0-9]{0,60}") {
            let _ = read(body.as_bytes());
        }
    }
}
