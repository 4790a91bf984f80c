//! The requests of a peer that need no file to be sent.

use std::{
    collections::HashMap,
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use engine::offload::Pool;
use http_io::{Fields, FieldsError, Response, decode_path};
use serde_json::json;

use super::{
    downloads::{CancelScope, DownloadRequest, Downloads},
    health::PeerMonitor,
    shared::SharedFolder,
};
use crate::{
    entry::{Content, Name},
    group::unreachable_peer,
    interfaces::{Index, IndexError},
    query::Parameters,
    refusal,
};

/// What is said of the shared folder to those who are not to know where it is.
const FOLDER_WRONG: &str =
    "the shared folder cannot be used as it should: who presents the group's secret or key is told why";
/// Most files in one response.
const LIST_MAX: usize = 1000;
/// Most downloads in one response.
const OBTAINING_MAX: usize = 100;
/// Threads that wait for the index, and how many requests may wait for one.
const ASKING: usize = 8;
const WAITING_MAX: usize = 256;
/// How long a file is not checked again because others doubt it, how many are remembered, and how long the pause is after
/// each, in multiples of the time it took: doubts must not keep the disk busy.
const DOUBT_LIFE: Duration = Duration::from_secs(600);
const DOUBTS_MAX: usize = 1000;
const REST_PER_CHECK: u32 = 9;
/// Threads that wait for downloads, and the longest wait.
const WAITING: usize = 64;
const WAIT_S_MAX: u32 = 30;

/// Answers a peer's requests.
pub(crate) struct Api {
    pub(crate) shared: Arc<SharedFolder>,
    index: Arc<dyn Index>,
    downloads: Arc<Downloads>,
    peers: Arc<PeerMonitor>,
    asking: Pool,
    waiting: Pool,
    removing: Pool,
    doubts: Arc<Mutex<Doubts>>,
}

/// Doubts of other peers about what this one sent, which cost the reading of a whole file.
#[derive(Debug, Default)]
struct Doubts {
    checked: HashMap<Content, Instant>,
    /// Whether a file is being checked.
    busy: bool,
    /// When the next may be.
    next: Option<Instant>,
}

fn locked(doubts: &Mutex<Doubts>) -> MutexGuard<'_, Doubts> {
    // No code panics while holding the lock.
    doubts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Doubts {
    /// Whether to check some content now.
    fn begin(&mut self, content: Content, now: Instant) -> bool {
        self.checked.retain(|_, at| now.saturating_duration_since(*at) < DOUBT_LIFE);
        let rests = self.next.is_some_and(|next| now < next);
        if self.busy || rests || self.checked.len() >= DOUBTS_MAX || self.checked.contains_key(&content) {
            return false;
        }
        self.checked.insert(content, now);
        self.busy = true;
        true
    }

    fn end(&mut self, took: Duration, now: Instant) {
        self.busy = false;
        self.next = now.checked_add(took.saturating_mul(REST_PER_CHECK));
    }
}

impl Api {
    pub(crate) fn new(
        shared: Arc<SharedFolder>,
        index: Arc<dyn Index>,
        downloads: Arc<Downloads>,
        peers: Arc<PeerMonitor>,
    ) -> Self {
        let asking = Pool::new("share-ask", ASKING, WAITING_MAX);
        let waiting = Pool::new("share-wait", WAITING, 0);
        let removing = Pool::new("share-remove", 1, WAITING_MAX);
        Self { shared, index, downloads, peers, asking, waiting, removing, doubts: Arc::default() }
    }

    /// Another peer says that what this one sent of some content is wrong: the file is hashed again, unless that was done
    /// lately. If it has changed, it is no longer offered as what it was.
    pub(crate) fn doubt(&self, content: Content) {
        if !locked(&self.doubts).begin(content, Instant::now()) {
            return;
        }
        let (shared, doubts) = (Arc::clone(&self.shared), Arc::clone(&self.doubts));
        let check = move || {
            let begun = Instant::now();
            shared.check(&content);
            locked(&doubts).end(begun.elapsed(), Instant::now());
        };
        if thread::Builder::new().name("share-check".into()).spawn(check).is_err() {
            locked(&self.doubts).end(Duration::ZERO, Instant::now());
        }
    }

    /// Answers a request.
    pub(crate) async fn answer(
        &self,
        method: &str,
        path: &str,
        query: Option<&str>,
        body: &[u8],
    ) -> Response {
        let answered = match (method, path) {
            ("GET" | "HEAD", "/files") => self.list(query),
            ("GET" | "HEAD", "/search") => self.search(query).await,
            ("GET" | "HEAD", "/peers") => self.peers(query),
            ("GET" | "HEAD", "/obtain") => self.obtained(query),
            ("POST", "/obtain") => self.begin(body),
            ("GET" | "HEAD", path) if path.starts_with("/obtain/") => self.progress(path, query).await,
            ("DELETE", path) if path.starts_with("/obtain/") => self.cancel(path, query),
            ("POST", "/register") => self.register(body).await,
            ("DELETE", path) if path.starts_with("/files/") => self.remove(path, query).await,
            (_, "/" | "/files" | "/search" | "/peers" | "/healthz" | "/metrics") => {
                Ok(Response::method_not_allowed("GET, HEAD"))
            }
            (_, "/obtain") => Ok(Response::method_not_allowed("GET, HEAD, POST")),
            (_, "/register") => Ok(Response::method_not_allowed("POST")),
            _ => Ok(refusal::new(404, "there is nothing of this name", "see /files, /search and /obtain")),
        };
        answered.unwrap_or_else(|error| refusal::of_fields(&error))
    }

    /// Reports that the peer runs, and what it cannot do now. Where it keeps its files is for members only.
    pub(crate) async fn health(&self, to_member: bool) -> Response {
        let index = Arc::clone(&self.index);
        // If too many requests wait already, the last known state is reported.
        let _ = self.asking.run(move || index.check()).await;
        let of_folder =
            self.shared.warning().map(|wrong| if to_member { wrong } else { FOLDER_WRONG.into() });
        let wrong = [of_folder, self.index.warning(), self.unreachable()];
        let wrong: String = wrong.into_iter().flatten().map(|wrong| wrong + "\n").collect();
        Response::new(200, "text/plain", http_io::health::text().to_owned() + &wrong)
    }

    /// A warning if others cannot reach this peer.
    fn unreachable(&self) -> Option<String> {
        unreachable_peer(self.downloads.own_address()?, self.index.address()?)
    }

    fn list(&self, query: Option<&str>) -> Result<Response, FieldsError> {
        let mut parameters = Parameters::read(query)?;
        let after = parameters.take("after").unwrap_or_default().into_owned();
        let limit = parameters.limit(LIST_MAX)?;
        parameters.finish("after and limit")?;
        let files = self.shared.catalogue.list(&after, limit);
        let shown: Vec<_> = files
            .iter()
            .map(|(path, entry)| {
                json!({ "path": path, "name": entry.name, "hash": entry.content, "size": entry.size })
            })
            .collect();
        Ok(Response::json(200, &json!({ "truncated": shown.len() == limit, "files": shown })))
    }

    async fn search(&self, query: Option<&str>) -> Result<Response, FieldsError> {
        let mut parameters = Parameters::read(query)?;
        let wanted = parameters.search()?;
        parameters.finish("name, words and hash")?;
        if let Some(found) = self.index.search_local(&wanted) {
            return Ok(Response::json(200, &json!({ "found": found })));
        }
        let index = Arc::clone(&self.index);
        let searched = self.asking.run(move || index.search(&wanted)).await;
        Ok(of_index(searched, |found| Response::json(200, &json!({ "found": found }))))
    }

    /// Registers one file, or all, again right now. Every file is also registered, and renewed, without this.
    async fn register(&self, body: &[u8]) -> Result<Response, FieldsError> {
        let mut fields = Fields::read(body)?;
        let name: Option<Name> =
            fields.maybe_text("name")?.map(|name| name.parse().map_err(wrong("name"))).transpose()?;
        fields.finish("name")?;
        let catalogue = &self.shared.catalogue;
        let entries: Vec<_> = match &name {
            Some(name) => catalogue.named(name).into_iter().map(|(_, shared)| shared.entry).collect(),
            None => catalogue.entries().into_iter().collect(),
        };
        if name.is_some() && entries.is_empty() {
            return Ok(not_shared());
        }
        let (index, count) = (Arc::clone(&self.index), entries.len());
        let registered = self.asking.run(move || index.register(&entries)).await;
        Ok(of_index(registered, |()| Response::json(200, &json!({ "registered": count }))))
    }

    /// How other peers have answered requests for content.
    fn peers(&self, query: Option<&str>) -> Result<Response, FieldsError> {
        Parameters::read(query)?.finish("none")?;
        let peers = self.peers.health(self.downloads.liars());
        Ok(Response::json(200, &json!({ "peers": peers })))
    }

    /// Current and past downloads, the latest first.
    fn obtained(&self, query: Option<&str>) -> Result<Response, FieldsError> {
        let mut parameters = Parameters::read(query)?;
        let limit = parameters.limit(OBTAINING_MAX)?;
        parameters.finish("limit")?;
        Ok(Response::json(200, &json!({ "obtaining": self.downloads.latest(limit) })))
    }

    fn begin(&self, body: &[u8]) -> Result<Response, FieldsError> {
        let mut fields = Fields::read(body)?;
        let content: Content = fields.text("hash")?.parse().map_err(wrong("hash"))?;
        let name: Option<Name> =
            fields.maybe_text("name")?.map(|name| name.parse().map_err(wrong("name"))).transpose()?;
        let check = fields.maybe_truth("check")?.unwrap_or(false);
        fields.finish("hash, name and check")?;
        Ok(match self.downloads.begin(DownloadRequest { content, name, check }) {
            Ok(progress) => Response::json(202, &progress).with("Location", format!("/obtain/{content}")),
            Err(busy) => refusal::new(503, &busy.to_string(), "ask again when one is done"),
        })
    }

    /// The progress of a download; with `wait`, once it has ended or that many seconds have passed.
    async fn progress(&self, path: &str, query: Option<&str>) -> Result<Response, FieldsError> {
        let content: Content = path.trim_start_matches("/obtain/").parse().map_err(wrong("hash"))?;
        let mut parameters = Parameters::read(query)?;
        let patience = parameters.wait(WAIT_S_MAX)?;
        parameters.finish("wait")?;
        let Some(progress) = self.downloads.get(&content) else {
            let hint = "POST /obtain {\"hash\"} asks for it";
            return Ok(refusal::new(404, "this was not asked for", hint));
        };
        if !patience.is_zero() {
            let progress = Arc::clone(&progress);
            // If too many requests wait already, this one returns at once and the client asks again.
            let _ = self.waiting.run(move || progress.wait(patience)).await;
        }
        let now = progress.lock().clone();
        Ok(Response::json(200, &now))
    }

    /// Withdraws one request for a download, or all with `for=all`. What was received is kept.
    fn cancel(&self, path: &str, query: Option<&str>) -> Result<Response, FieldsError> {
        let content: Content = path.trim_start_matches("/obtain/").parse().map_err(wrong("hash"))?;
        let mut parameters = Parameters::read(query)?;
        let whose = match parameters.take("for").as_deref() {
            None | Some("one") => CancelScope::One,
            Some("all") => CancelScope::All,
            Some(_) => return Err(FieldsError::field("for", "must be one or all")),
        };
        parameters.finish("for")?;
        Ok(match self.downloads.cancel(&content, whose) {
            true => Response::done(),
            false => refusal::new(404, "this is not being obtained", "GET /obtain lists what is and was"),
        })
    }

    /// Stops shared files of a name: all of them if they are the same.
    async fn remove(&self, path: &str, query: Option<&str>) -> Result<Response, FieldsError> {
        let encoded = path.trim_start_matches("/files/");
        let name = decode_path(encoded)
            .map_err(|error| FieldsError::field("name", format!("cannot be read: {error}")))?;
        let name: Name = name.parse().map_err(wrong("name"))?;
        let mut parameters = Parameters::read(query)?;
        let hash: Option<Content> =
            parameters.take("hash").map(|hash| hash.parse().map_err(wrong("hash"))).transpose()?;
        parameters.finish("hash")?;
        let mut named = self.shared.catalogue.named(&name);
        named.retain(|(_, shared)| hash.is_none_or(|hash| shared.entry.content == hash));
        let Some((_, first)) = named.first() else {
            return Ok(not_shared());
        };
        if named.iter().any(|(_, shared)| shared.entry.content != first.entry.content) {
            return Ok(refusal::new(
                409,
                "several files of this name are shared here",
                "say which with ?hash=HASH",
            ));
        }
        let shared = Arc::clone(&self.shared);
        // It waits for the disk, which a loop must not, and not for an index that may be away.
        let remove_all = move || named.iter().try_for_each(|(path, _)| shared.remove(path));
        Ok(match self.removing.run(remove_all).await {
            Ok(Ok(())) => Response::done(),
            Ok(Err(error)) => {
                refusal::new(507, &format!("it cannot be recorded: {error}"), "make room on the disk")
            }
            Err(error) => refusal::new(503, &error.to_string(), "ask again in a moment"),
        })
    }
}

/// The response to a request to the index.
fn of_index<T, E: Display>(
    said: Result<Result<T, IndexError>, E>,
    good: impl FnOnce(T) -> Response,
) -> Response {
    match said {
        Ok(Ok(value)) => good(value),
        Ok(Err(error @ IndexError::Refused { .. })) => {
            refusal::new(502, &error.to_string(), "check --index and --secret-file of this peer")
        }
        Ok(Err(error)) => refusal::new(503, &error.to_string(), "ask again when it is back"),
        Err(error) => refusal::new(503, &error.to_string(), "ask again in a moment"),
    }
}

fn not_shared() -> Response {
    refusal::new(404, "no file of this name is shared here", "GET /files lists what is")
}

fn wrong<E: ToString>(field: &'static str) -> impl Fn(E) -> FieldsError {
    move |error| FieldsError::field(field, error.to_string())
}
