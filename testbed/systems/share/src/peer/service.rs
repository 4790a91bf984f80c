//! A peer as a service of an engine, and its background work.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread::{self, JoinHandle},
};

use engine::service::{Connection, Factory};
use folder::Folder;
use http_io::{
    Method, Problem, Response,
    server::{Error, Exchange, Handler, Hosts, Http, HttpOptions},
};
use rustix::fs::{FlockOperation, flock};

use super::{
    announcing::Announcer,
    api::Api,
    browsers,
    central_index::CentralIndex,
    downloads::{Downloads, HttpSource},
    error::PeerError,
    health::PeerMonitor,
    metrics,
    options::{IndexChoice, Options},
    shared::{SharedFolder, hashing, outboards::Outboards},
};
use crate::{
    entry::Content,
    group::{
        Access, Authentication, Group, Members, check_body, is_address_of, open_hosts, unreachable_peer,
    },
    interfaces::Index,
};

/// The page at `/`.
const PAGE: &str = include_str!("page.html");
/// Placeholder in the page for whose secret it asks for.
const SECRET_OF: &str = "SECRET_OF";
/// Longest request body, bytes.
const BODY_LEN_MAX: u64 = 64 * 1024;

/// Makes a peer. Opens its folders, so that errors show before the server starts. Nothing is shared before
/// [`PeerFactory::begin`].
///
/// # Errors
/// When the shared folder or the state folder cannot be used.
pub fn factory(options: &Options) -> Result<PeerFactory, PeerError> {
    let group = Group::open(options.secret.as_deref(), options.members.clone())?;
    let folder = Folder::open(&options.share).map_err(|error| PeerError::share(&options.share, error))?;
    let lock = lock(options)?;
    let shared = Arc::new(SharedFolder::open(folder, &options.share, &options.state)?);
    let index: Arc<dyn Index> = match &options.index {
        IndexChoice::Central(server) => Arc::new(CentralIndex::new(server.clone(), &group)),
        IndexChoice::Other(index) => index.open(&options.state).map_err(PeerError::Index)?,
    };
    let by_key = group.members().map(Members::trust).transpose()?;
    let trust = by_key.or_else(|| options.trust.clone());
    let peers = Arc::new(PeerMonitor::new(Arc::new(HttpSource::new(&group, trust))));
    let unusable = |source| PeerError::State { path: options.state.clone(), source };
    let downloads =
        Downloads::new(Arc::clone(&index), Arc::clone(&peers) as _, Arc::clone(&shared)).map_err(unusable)?;
    let downloads = Arc::new(downloads);
    let api = Api::new(Arc::clone(&shared), Arc::clone(&index), Arc::clone(&downloads), peers);
    let peer = Peer {
        group,
        api,
        index,
        downloads,
        connections: Arc::clone(&options.connections),
        open_metrics: options.open_metrics,
        turned_away: AtomicU64::new(0),
        listening: OnceLock::new(),
        stopping: Arc::default(),
        announcer: Mutex::default(),
        _lock: lock,
    };
    Ok(PeerFactory { peer: Arc::new(peer) })
}

/// Makes a peer's services. All of them share one peer, so it cannot be spread over processes.
#[derive(Clone)]
pub struct PeerFactory {
    peer: Arc<Peer>,
}

struct Peer {
    group: Group,
    api: Api,
    index: Arc<dyn Index>,
    downloads: Arc<Downloads>,
    connections: Arc<engine::Counters>,
    /// Whether clients on other machines may see the metrics.
    open_metrics: bool,
    /// Number of requests from clients that are not members.
    turned_away: AtomicU64,
    /// Where it listens, if others reach it at another address.
    listening: OnceLock<SocketAddr>,
    stopping: Arc<AtomicBool>,
    announcer: Mutex<Option<JoinHandle<()>>>,
    /// The lock of the state folder, held while the peer lives.
    _lock: std::fs::File,
}

impl Peer {
    /// The page, which asks for the group's or the owner's secret.
    fn page(&self) -> Response {
        let whose = if self.group.members().is_some() { "owner" } else { "group" };
        http_io::page(&PAGE.replace(SECRET_OF, whose))
    }
}

impl PeerFactory {
    /// Says where the peer listens, if others reach it at another address than that.
    pub fn listens_on(&self, address: SocketAddr) {
        self.peer.listening.get_or_init(|| address);
    }

    /// Starts to share and to announce files, now that others can reach this peer at `own_address`.
    ///
    /// # Errors
    /// When a thread cannot be started, or the folder cannot be watched.
    pub fn begin(&self, own_address: SocketAddr) -> Result<(), PeerError> {
        let Peer { index, downloads, api, stopping, .. } = &*self.peer;
        index.start(own_address);
        downloads.set_own_address(own_address);
        if let Some(wrong) = index.address().and_then(|index| unreachable_peer(own_address, index)) {
            tracing::warn!("{wrong}");
        }
        let refused = |what| move |source| PeerError::System { what, source };
        api.shared.start().map_err(refused("to watch its folder"))?;
        let (index, shared, stopping) = (Arc::clone(index), Arc::clone(&api.shared), Arc::clone(stopping));
        let announcer = Announcer { index, shared, stopping };
        let thread = thread::Builder::new().name("share-tell".into()).spawn(move || announcer.run());
        *self.announcer() = Some(thread.map_err(refused("a thread"))?);
        Ok(())
    }

    /// Stops shared, and deregisters everything.
    pub fn end(&self) {
        self.peer.api.shared.stop();
        self.peer.stopping.store(true, SeqCst);
        self.peer.api.shared.catalogue.notify();
        if let Some(thread) = self.announcer().take() {
            // The thread logs its errors.
            let _ = thread.join();
        }
    }

    fn announcer(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        // No code panics while holding the lock.
        self.peer.announcer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PeerFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerFactory").field("share", &self.peer.api.shared.root).finish_non_exhaustive()
    }
}

impl Factory for PeerFactory {
    type Service<C: Connection> = Http<PeerHandler>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let hosts = match self.peer.group.is_open() {
            true => open_hosts(),
            false => Hosts::default(),
        };
        let open_metrics = self.peer.open_metrics;
        let options = HttpOptions { hosts, open_metrics, ..HttpOptions::default() };
        Ok(Http::new(PeerHandler { peer: Arc::clone(&self.peer) }, options))
    }
}

/// Answers the requests of one worker.
pub struct PeerHandler {
    peer: Arc<Peer>,
}

impl<C: Connection> Handler<C> for PeerHandler {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let answered = self.answer(exchange).await;
        let status = match &answered {
            Err(Error::Problem(problem)) => problem.status(),
            _ => exchange.status().unwrap_or(0),
        };
        tracing::info!(
            target: "access",
            peer = %exchange.peer(), method = exchange.method_text(), path = exchange.path(), status,
        );
        answered
    }

    fn failed(&self, peer: SocketAddr, error: &Error) {
        tracing::debug!(target: "access", %peer, %error, "request failed");
    }
}

impl PeerHandler {
    async fn answer<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let reads = matches!(exchange.method(), Method::Get | Method::Head);
        self.check(exchange)?;
        match exchange.path() {
            "/" if reads => self.peer.page().send(exchange),
            "/metrics" if reads => {
                exchange.check_metrics()?;
                let Peer { api, index, connections, turned_away, .. } = &*self.peer;
                let counts = (api.shared.catalogue.len(), turned_away.load(Relaxed));
                metrics::answer(counts, index, connections).send(exchange)
            }
            "/healthz" if reads => {
                let is_member = self.peer.group.admit(&Authentication::of(exchange), Access::Member).is_ok();
                self.peer.api.health(is_member).await.send(exchange)
            }
            path if path.starts_with("/content/") && reads => self.send(exchange).await,
            path if path.ends_with("/wrong") && exchange.method() == Method::Post => self.doubt(exchange),
            path if path.starts_with("/content/") => Err(Problem::new(405, "content is only read").into()),
            _ => self.ask(exchange).await,
        }
    }

    /// Checks whether the client may send this request. What is public, and the page, which contains nothing, need no secret.
    fn check<C: Connection>(&self, exchange: &Exchange<'_, C>) -> Result<(), Problem> {
        let group = &self.peer.group;
        if matches!(exchange.path(), "/healthz" | "/metrics") {
            return Ok(());
        }
        browsers::check(exchange)?;
        let what = match exchange.path() {
            "/" => return Ok(()),
            path if path.starts_with("/content/") => Access::Member,
            _ => Access::Owner,
        };
        let client = Authentication::of(exchange);
        let admitted = group.admit(&client, what).and_then(|()| self.check_address(&client));
        if admitted.is_err() && !group.wants_nonce(&client) {
            self.peer.turned_away.fetch_add(1, Relaxed);
        }
        admitted
    }

    /// Refuses a request that its client sent to another server, which passed it on to have what only members may.
    fn check_address(&self, client: &Authentication<'_>) -> Result<(), Problem> {
        let (own, listening) = (self.peer.downloads.own_address(), self.peer.listening.get().copied());
        match (client.sent_to(), own) {
            (Some(to), Some(own)) if !is_address_of(to, own, listening) => Err(Problem::new(
                403,
                format!("the client meant this request for {to}, which is not this peer"),
            )
            .hint("say with --advertise at which address others reach it")),
            _ => Ok(()),
        }
    }

    /// Answers `POST /content/HASH/wrong`, by which another peer says that it was sent other bytes.
    fn doubt<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let named = exchange.path().strip_prefix("/content/").and_then(|rest| rest.strip_suffix("/wrong"));
        let content: Option<Content> = named.and_then(|hash| hash.parse().ok());
        let api = &self.peer.api;
        let content = content.filter(|content| api.shared.catalogue.find(content).is_some());
        let content = content.ok_or_else(|| Problem::new(404, "this content is not shared here"))?;
        api.doubt(content);
        exchange.respond(202).empty()
    }

    async fn ask<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let method = exchange.method_text().to_owned();
        let (path, query) = (exchange.path().to_owned(), exchange.query().map(str::to_owned));
        let body = exchange.read_body(BODY_LEN_MAX).await?.to_owned();
        check_body(exchange.header("authorization"), &body)?;
        self.peer.api.answer(&method, &path, query.as_deref(), &body).await.send(exchange)
    }

    /// Answers `/content/HASH`, as the file server sends files, and `/content/HASH/outboard`.
    async fn send<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let rest = exchange.path().trim_start_matches("/content/");
        let (hash, of_hashes) = match rest.strip_suffix("/outboard") {
            Some(hash) => (hash, true),
            None => (rest, false),
        };
        let content: Content =
            hash.parse().map_err(|_| Problem::new(404, "content is named by its BLAKE3 hash"))?;
        let gone = || Problem::new(404, "this content is not shared here").hint("search for it again");
        let shared = &self.peer.api.shared;
        let (path, file) = shared.catalogue.find(&content).ok_or_else(gone)?;
        if of_hashes && hashing::outboard_len(file.entry.size) == 0 {
            return exchange.respond(200).body("application/octet-stream", b"");
        }
        let sent = match of_hashes {
            true => shared.state_folder.send(exchange, &Outboards::path(&content), None).await?,
            false => shared.folder.send(exchange, &path, Some(file.state)).await?,
        };
        if sent { Ok(()) } else { Err(gone().into()) }
    }
}

/// Creates and locks the state folder, and makes sure that files can be moved from it into the shared folder.
fn lock(options: &Options) -> Result<std::fs::File, PeerError> {
    use std::os::unix::fs::MetadataExt;
    let state = &options.state;
    let unusable = |source| PeerError::State { path: state.clone(), source };
    std::fs::create_dir_all(state).map_err(unusable)?;
    // Otherwise a power failure might lose a new folder with what was kept in it. Not every user may read the one above.
    let _ = std::fs::File::open(state.join("..")).and_then(|above| above.sync_all());
    let file = std::fs::File::create(state.join("lock")).map_err(unusable)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(PeerError::Taken { state: state.clone() }),
        Err(error) => return Err(unusable(error.into())),
    }
    let device = |path: &std::path::Path| std::fs::metadata(path).map(|found| found.dev());
    if device(&options.share).map_err(unusable)? != device(state).map_err(unusable)? {
        return Err(PeerError::Apart { state: state.clone(), share: options.share.clone() });
    }
    Ok(file)
}
