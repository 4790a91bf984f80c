//! A peer as a service of an engine, and its work in the background.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
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
    server::{Error, Exchange, Handler, Http, HttpOptions},
};
use rustix::fs::{FlockOperation, flock};

use super::{
    announcing::Announcer,
    api::Api,
    browsers,
    central::Central,
    error::PeerError,
    hashing,
    health::Watched,
    metrics,
    obtaining::{HttpPeers, Obtaining},
    options::{Options, Which},
    outboards::Outboards,
    sharing::Sharing,
};
use crate::{
    confined::confined,
    content::Content,
    group::{Asker, For, Group},
    members::Members,
    seam::Index,
};

/// The page for people, as it is shown at `/`.
const PAGE: &str = include_str!("page.html");
/// What stands in it for whose secret is asked for.
const SECRET_OF: &str = "SECRET_OF";
/// Longest body taken in, bytes.
const BODY_LEN_MAX: u64 = 64 * 1024;

/// Makes a peer. Opens its folders, so that what is wrong with them shows before the server starts. Nothing is shared
/// before [`PeerFactory::begin`].
///
/// # Errors
/// When the folder cannot be shared, or the peer's own cannot be used.
pub fn factory(options: &Options) -> Result<PeerFactory, PeerError> {
    let group = Group::open(options.secret.as_deref(), options.members.clone())?;
    let folder = Folder::open(&options.share).map_err(|error| PeerError::share(&options.share, error))?;
    let lock = lock(options)?;
    let sharing = Arc::new(Sharing::open(folder, &options.share, &options.state)?);
    let index: Arc<dyn Index> = match &options.index {
        Which::Central(server) => Arc::new(Central::new(server.clone(), &group)),
        Which::Other(index) => index.open(&options.state).map_err(PeerError::Index)?,
    };
    let by_key = group.members().map(Members::trust).transpose()?;
    let trust = by_key.or_else(|| options.trust.clone());
    let peers = Arc::new(Watched::new(Arc::new(HttpPeers::new(&group, trust))));
    let unusable = |source| PeerError::State { path: options.state.clone(), source };
    let obtaining = Obtaining::new(Arc::clone(&index), Arc::clone(&peers) as _, Arc::clone(&sharing))
        .map_err(unusable)?;
    let obtaining = Arc::new(obtaining);
    let api = Api::new(Arc::clone(&sharing), Arc::clone(&index), Arc::clone(&obtaining), peers);
    let peer = Peer {
        group,
        api,
        index,
        obtaining,
        connections: Arc::clone(&options.connections),
        turned_away: AtomicU64::new(0),
        stopping: Arc::default(),
        announcer: Mutex::default(),
        _lock: lock,
    };
    Ok(PeerFactory { peer: Arc::new(peer) })
}

/// Makes a peer's services. All of them share what the peer is; it cannot be spread over processes.
#[derive(Clone)]
pub struct PeerFactory {
    peer: Arc<Peer>,
}

struct Peer {
    group: Group,
    api: Api,
    index: Arc<dyn Index>,
    obtaining: Arc<Obtaining>,
    connections: Arc<engine::Counters>,
    /// Requests of others than members.
    turned_away: AtomicU64,
    stopping: Arc<AtomicBool>,
    announcer: Mutex<Option<JoinHandle<()>>>,
    /// Held while the peer lives.
    _lock: std::fs::File,
}

impl Peer {
    /// The page, which asks for the secret of those who have it in common.
    fn page(&self) -> Response {
        let whose = if self.group.members().is_some() { "owner" } else { "group" };
        http_io::page(&PAGE.replace(SECRET_OF, whose))
    }
}

impl PeerFactory {
    /// Begins to share, and to tell the index, now that others can reach this peer at `me`.
    ///
    /// # Errors
    /// When the system refuses a thread, or to watch for changes.
    pub fn begin(&self, me: SocketAddr) -> Result<(), PeerError> {
        let Peer { index, obtaining, api, stopping, .. } = &*self.peer;
        index.begin(me);
        obtaining.me.get_or_init(|| me);
        if let Some(wrong) = index.asked_at().and_then(|index| confined(me, index)) {
            tracing::warn!("{wrong}");
        }
        let refused = |what| move |source| PeerError::System { what, source };
        api.sharing.start().map_err(refused("to watch its folder"))?;
        let (index, sharing, stopping) = (Arc::clone(index), Arc::clone(&api.sharing), Arc::clone(stopping));
        let announcer = Announcer { index, sharing, stopping };
        let thread = thread::Builder::new().name("share-tell".into()).spawn(move || announcer.run());
        *self.announcer() = Some(thread.map_err(refused("a thread"))?);
        Ok(())
    }

    /// Shares no more, and takes back what the index knows of this peer.
    pub fn end(&self) {
        self.peer.api.sharing.stop();
        self.peer.stopping.store(true, SeqCst);
        self.peer.api.sharing.catalogue.tell();
        if let Some(thread) = self.announcer().take() {
            // It logs what goes wrong.
            let _ = thread.join();
        }
    }

    fn announcer(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        // Nothing panics while it is held.
        self.peer.announcer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PeerFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerFactory").field("share", &self.peer.api.sharing.root).finish_non_exhaustive()
    }
}

impl Factory for PeerFactory {
    type Service<C: Connection> = Http<PeerHandler>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        Ok(Http::new(PeerHandler { peer: Arc::clone(&self.peer) }, HttpOptions::default()))
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
                let Peer { api, index, connections, turned_away, .. } = &*self.peer;
                let counts = (api.sharing.catalogue.len(), turned_away.load(Relaxed));
                metrics::answer(counts, index, connections).send(exchange)
            }
            path if path.starts_with("/content/") && reads => self.send(exchange).await,
            path if path.starts_with("/content/") => Err(Problem::new(405, "content is only read").into()),
            _ => self.ask(exchange).await,
        }
    }

    /// Refuses who may not ask for this. What is for anyone, and the page, which holds nothing, need no secret.
    fn check<C: Connection>(&self, exchange: &Exchange<'_, C>) -> Result<(), Problem> {
        let group = &self.peer.group;
        if matches!(exchange.path(), "/healthz" | "/metrics") {
            return Ok(());
        }
        if group.is_open() {
            browsers::check_name(exchange)?;
        }
        browsers::check(exchange)?;
        let what = match exchange.path() {
            "/" => return Ok(()),
            path if path.starts_with("/content/") => For::Members,
            _ => For::Owner,
        };
        let admitted = group.admit(&Asker::of(exchange), what);
        if admitted.is_err() {
            self.peer.turned_away.fetch_add(1, Relaxed);
        }
        admitted
    }

    async fn ask<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let method = exchange.method_text().to_owned();
        let (path, query) = (exchange.path().to_owned(), exchange.query().map(str::to_owned));
        let body = exchange.read_body(BODY_LEN_MAX).await?.to_owned();
        self.peer.api.answer(&method, &path, query.as_deref(), &body).await.send(exchange)
    }

    /// `/content/HASH`, as the file server sends files, and `/content/HASH/outboard`.
    async fn send<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let rest = exchange.path().trim_start_matches("/content/");
        let (hash, of_hashes) = match rest.strip_suffix("/outboard") {
            Some(hash) => (hash, true),
            None => (rest, false),
        };
        let content: Content =
            hash.parse().map_err(|_| Problem::new(404, "content is named by its BLAKE3 hash"))?;
        let gone = || Problem::new(404, "this content is not shared here").hint("search for it again");
        let sharing = &self.peer.api.sharing;
        let (path, shared) = sharing.catalogue.find(&content).ok_or_else(gone)?;
        if of_hashes && hashing::outboard_len(shared.entry.size) == 0 {
            return exchange.respond(200).body("application/octet-stream", b"");
        }
        let sent = match of_hashes {
            true => sharing.state.send(exchange, &Outboards::path(&content), None).await?,
            false => sharing.folder.send(exchange, &path, Some(shared.identity)).await?,
        };
        if sent { Ok(()) } else { Err(gone().into()) }
    }
}

/// Makes the peer's own folder, and sure that no other peer works there and that files can be moved from it into the folder.
fn lock(options: &Options) -> Result<std::fs::File, PeerError> {
    use std::os::unix::fs::MetadataExt;
    let state = &options.state;
    let unusable = |source| PeerError::State { path: state.clone(), source };
    std::fs::create_dir_all(state).map_err(unusable)?;
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
