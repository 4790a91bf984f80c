//! A peer's client of the central index.

use std::{
    net::SocketAddr,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Request, Response, Upstream},
    server::HTTPS_ONLY,
};
use serde_json::{Value, json};

use crate::{
    entry::{Entry, Query, SearchResult},
    group::{self, Group, GroupRequest, Signer},
    interfaces::{Index, IndexError},
    query,
};

/// Most files in one request.
const BATCH: usize = 1000;
/// Longest response, bytes.
const ANSWER_LEN_MAX: u64 = 32 * 1024 * 1024;
/// Time-out of a health check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Renewals within the lifetime of a registration.
const RENEWALS: u64 = 3;
/// How long a result is valid.
const VALID_FOR: Duration = Duration::from_secs(2);

/// The central index. Its connections are kept, and shared by all threads.
#[derive(Debug)]
pub(crate) struct CentralIndex {
    to: Upstream,
    /// Where this peer can be reached.
    own_address: OnceLock<SocketAddr>,
    signer: Signer,
    idle: Mutex<Vec<BlockingClient>>,
    life_s: AtomicU64,
    availability: Availability,
}

impl CentralIndex {
    pub(crate) fn new(to: Upstream, group: &Group) -> Self {
        let signer = group.signer();
        let (own_address, idle, life_s) = (OnceLock::new(), Mutex::default(), AtomicU64::new(30));
        Self { to, own_address, signer, idle, life_s, availability: Availability::default() }
    }

    fn ask(&self, method: Method, target: &str, body: &[u8]) -> Result<Response, IndexError> {
        let answer = self.send(method, target, body);
        self.availability.record(&answer);
        answer
    }

    fn send(&self, method: Method, target: &str, body: &[u8]) -> Result<Response, IndexError> {
        // Every request here may be repeated safely.
        let headers = &[("Content-Type", &b"application/json"[..])];
        let request = GroupRequest { method, target, headers, body };
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut caller = kept.unwrap_or_else(|| BlockingClient::new(self.to.clone(), options()));
        let answer = self.signer.send(&mut caller, request).map_err(|error| self.unanswered(&error))?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(caller);
        match answer.status() {
            200..=299 => Ok(answer),
            404 => Err(IndexError::Forgotten { index: self.name() }),
            503 | 507 => Err(self.unavailable(query::error_reason(&answer))),
            _ if answer.wants_tls() => Err(self.refused(format!(
                "{HTTPS_ONLY}: give --index https://{}, or --allow and its key where members are known by keys",
                self.name()
            ))),
            _ => Err(self.refused(advice(&answer))),
        }
    }

    fn post(&self, target: &str, mut body: Value) -> Result<Response, IndexError> {
        let own_address =
            self.own_address.get().ok_or_else(|| self.unavailable("this peer does not listen yet".into()))?;
        if let Some(fields) = body.as_object_mut() {
            fields.insert("peer".into(), json!(own_address));
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

    /// Checks whether the index is there at all.
    fn check_now(&self) -> Result<(), IndexError> {
        let options = ClientOptions { timeout: CHECK_TIMEOUT, ..options() };
        let answer =
            BlockingClient::new(self.to.clone(), options).send(&Request::new(Method::Get, "/healthz"));
        match answer.map_err(|error| self.unanswered(&error))?.status() {
            200 => Ok(()),
            status => Err(self.unavailable(format!("it answered with status {status}"))),
        }
    }

    fn unanswered(&self, error: &ClientError) -> IndexError {
        match error {
            ClientError::Insecure { source, .. } => self.refused(group::explain_insecurity(source)),
            error => self.unavailable(error.to_string()),
        }
    }

    fn unavailable(&self, reason: String) -> IndexError {
        IndexError::Unavailable { index: self.name(), reason }
    }

    fn refused(&self, reason: String) -> IndexError {
        IndexError::Refused { index: self.name(), reason }
    }

    fn name(&self) -> String {
        self.to.at().to_string()
    }
}

impl Index for CentralIndex {
    fn start(&self, own_address: SocketAddr) {
        self.own_address.get_or_init(|| own_address);
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

    fn renew_interval(&self) -> Duration {
        Duration::from_secs(self.life_s.load(Relaxed)) / u32::try_from(RENEWALS).unwrap_or(1)
    }

    fn search(&self, query: &Query) -> Result<Vec<SearchResult>, IndexError> {
        let answer = self.ask(Method::Get, &query::search_target(query), &[])?;
        query::parse_results(answer.body())
            .ok_or_else(|| self.unavailable("its answer cannot be understood".into()))
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.to.at())
    }

    fn check(&self) {
        if self.availability.is_due() {
            self.availability.record_check(&self.check_now());
        }
    }

    fn warning(&self) -> Option<String> {
        self.availability.warning()
    }
}

/// The result of the last request.
#[derive(Debug, Default)]
struct Availability(Mutex<LastRequest>);

#[derive(Debug, Default)]
struct LastRequest {
    asked: Option<Instant>,
    warning: Option<String>,
    /// Whether it answers, but refuses this peer's requests.
    refuses: bool,
}

impl Availability {
    /// Records the result of a request.
    fn record<T>(&self, answer: &Result<T, IndexError>) {
        let mut last = self.lock();
        last.asked = Some(Instant::now());
        last.refuses = matches!(answer, Err(IndexError::Refused { .. }));
        last.warning = match answer {
            // It answers, and everything is about to be registered again.
            Ok(_) | Err(IndexError::Forgotten { .. }) => None,
            Err(error) => Some(error.to_string()),
        };
    }

    /// Records the result of a health check. An index that is healthy may still refuse this peer's requests, as it did last.
    fn record_check(&self, check: &Result<(), IndexError>) {
        if check.is_err() || !self.lock().refuses {
            self.record(check);
        }
    }

    /// Whether a health check is due. A caller that gets `true` must make it; others get `false` meanwhile.
    fn is_due(&self) -> bool {
        let mut last = self.lock();
        let due = last.asked.is_none_or(|asked| asked.elapsed() >= VALID_FOR);
        if due {
            last.asked = Some(Instant::now());
        }
        due
    }

    /// What was wrong at the last request.
    fn warning(&self) -> Option<String> {
        self.lock().warning.clone()
    }

    fn lock(&self) -> MutexGuard<'_, LastRequest> {
        // No code panics while holding the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason in an error response, and its hint.
fn advice(answer: &Response) -> String {
    let body: Option<Value> = serde_json::from_slice(answer.body()).ok();
    let hint = body.as_ref().and_then(|body| body["hint"].as_str());
    hint.map_or_else(
        || query::error_reason(answer),
        |hint| format!("{}; {hint}", query::error_reason(answer)),
    )
}

fn options() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.limits.body_bytes = ANSWER_LEN_MAX;
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_is_there_may_refuse_all_the_same() {
        let (availability, index, reason) = (Availability::default(), String::new, String::new);
        availability.record::<()>(&Err(IndexError::Refused { index: index(), reason: reason() }));
        availability.record_check(&Ok(()));
        assert!(availability.warning().is_some());
        availability.record(&Ok(()));
        assert_eq!(availability.warning(), None);
        availability.record::<()>(&Err(IndexError::Unavailable { index: index(), reason: reason() }));
        availability.record_check(&Ok(()));
        assert_eq!(availability.warning(), None);
    }
}
