//! Downloads content from other peers into the shared folder: verified, or not at all.
//!
//! This file queues and lists downloads. `transfer` finds peers for one of them, `fetch` fetches from several peers at
//! once what `assignments` gives to each; `install` moves complete files into the shared
//! folder.

mod assignments;
mod download;
mod fetch;
mod http_source;
mod install;
mod transfer;

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    fs, io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
};

pub use self::download::{DownloadState, Progress, SourceProgress};
pub(crate) use self::{download::CancelScope, http_source::HttpSource};
use self::{
    download::Download,
    install::Installer,
    transfer::{CANCELLED, Endpoints, Transfer},
};
use super::shared::SharedFolder;
use crate::{
    entry::{Content, Name},
    interfaces::{ContentSource, Index},
};

/// Most downloads at once, and most that wait for their turn.
const RUNNING_MAX: usize = 16;
const WAITING_MAX: usize = 10_000;
/// Most downloads to remember, not counting those that have not ended.
const REMEMBERED_MAX: usize = 20_000;

/// Current and past downloads.
pub(crate) struct Downloads {
    ends: Endpoints,
    installer: Installer,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    all: HashMap<Content, Arc<Download>>,
    waiting: VecDeque<QueuedDownload>,
    /// Number of threads that download.
    running: usize,
}

/// A request for a download.
#[derive(Debug)]
pub(crate) struct DownloadRequest {
    pub(crate) content: Content,
    /// The name for the file, if given.
    pub(crate) name: Option<Name>,
    /// Whether this peer's own copy is in doubt, and to be hashed again first.
    pub(crate) check: bool,
}

struct QueuedDownload {
    request: DownloadRequest,
    download: Arc<Download>,
}

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{WAITING_MAX} files wait to be obtained already")]
pub(crate) struct QueueFull;

impl Downloads {
    pub(crate) fn new(
        index: Arc<dyn Index>,
        source: Arc<dyn ContentSource>,
        shared: Arc<SharedFolder>,
    ) -> io::Result<Self> {
        let partials = shared.partials();
        fs::create_dir_all(&partials)?;
        let installer = Installer::new(Arc::clone(&shared));
        let ends = Endpoints { index, source, shared, own_address: OnceLock::new(), partials };
        Ok(Self { ends, installer, queue: Mutex::default() })
    }

    /// Sets the address at which other peers reach this one. Only the first call counts.
    pub(crate) fn set_own_address(&self, address: SocketAddr) {
        self.ends.own_address.get_or_init(|| address);
    }

    /// The address at which other peers reach this one.
    pub(crate) fn own_address(&self) -> Option<SocketAddr> {
        self.ends.own_address.get().copied()
    }

    /// Starts a download, unless one is under way or the content is already here, and returns its progress. Each call
    /// counts as one request, until [`Self::cancel`] withdraws it.
    pub(crate) fn begin(self: &Arc<Self>, request: DownloadRequest) -> Result<Progress, QueueFull> {
        let (content, mut queue) = (request.content, self.queue());
        if let Some(begun) = queue.all.get(&content) {
            let running = begun.add_request();
            let begun = begun.lock();
            let here =
                begun.state == DownloadState::Done && self.ends.shared.catalogue.find(&content).is_some();
            if running || here && !request.check {
                return Ok(begun.clone());
            }
        }
        if queue.waiting.len() >= WAITING_MAX {
            return Err(QueueFull);
        }
        if queue.all.len() >= REMEMBERED_MAX {
            queue.all.retain(|_, download| download.lock().state == DownloadState::Running);
        }
        let download = Arc::new(Download::new(content));
        let begun = download.lock().clone();
        queue.all.insert(content, Arc::clone(&download));
        queue.waiting.push_back(QueuedDownload { request, download });
        self.start_thread(&mut queue)?;
        Ok(begun)
    }

    /// Withdraws one request for a download, or all. Returns `false` if it is not under way. Without any request left the
    /// download stops, but not before the bytes that are being received have been written.
    pub(crate) fn cancel(&self, content: &Content, scope: CancelScope) -> bool {
        let mut queue = self.queue();
        let Some(download) = queue.all.get(content).filter(|download| download.withdraw(scope)).cloned()
        else {
            return false;
        };
        let waiting = queue.waiting.len();
        queue.waiting.retain(|queued| queued.request.content != *content || !download.is_cancelled());
        if queue.waiting.len() < waiting {
            download.finish(Err(CANCELLED.into()));
        }
        true
    }

    /// The download of some content.
    pub(crate) fn get(&self, content: &Content) -> Option<Arc<Download>> {
        self.queue().all.get(content).cloned()
    }

    /// Up to `limit` downloads: those that have not ended, then the latest.
    pub(crate) fn latest(&self, limit: usize) -> Vec<Progress> {
        let mut all: Vec<_> = self.all();
        all.sort_by_cached_key(|download| {
            Reverse((download.lock().state == DownloadState::Running, download.begun))
        });
        all.iter().take(limit).map(|download| download.lock().clone()).collect()
    }

    /// The peers that are remembered to have sent wrong content, and what was wrong with it.
    pub(crate) fn liars(&self) -> HashMap<SocketAddr, String> {
        let mut liars = HashMap::new();
        for download in self.all() {
            let progress = download.lock();
            let lied = progress.sources.iter().filter(|(_, source)| source.lied);
            liars.extend(lied.map(|(&peer, source)| (peer, source.trouble.clone().unwrap_or_default())));
        }
        liars
    }

    fn all(&self) -> Vec<Arc<Download>> {
        self.queue().all.values().cloned().collect()
    }

    fn start_thread(self: &Arc<Self>, queue: &mut Queue) -> Result<(), QueueFull> {
        if queue.running == RUNNING_MAX {
            return Ok(());
        }
        let downloads = Arc::clone(self);
        let started = thread::Builder::new()
            .name("share-obtain".into())
            .spawn(move || while downloads.next().map(|queued| downloads.run(queued)).is_some() {});
        match started {
            Ok(_) => queue.running += 1,
            Err(_) if queue.running > 0 => {}
            Err(_) => {
                if let Some(queued) = queue.waiting.pop_back() {
                    queue.all.remove(&queued.request.content);
                }
                return Err(QueueFull);
            }
        }
        Ok(())
    }

    /// The next download. After `None` the thread has to end.
    fn next(&self) -> Option<QueuedDownload> {
        let mut queue = self.queue();
        let next = queue.waiting.pop_front();
        queue.running -= usize::from(next.is_none());
        next
    }

    fn run(&self, queued: QueuedDownload) {
        let QueuedDownload { request: DownloadRequest { content, name, check }, download } = queued;
        if check {
            self.ends.shared.check(&content);
        }
        if let Some((path, shared)) = self.ends.shared.catalogue.find(&content) {
            let size = shared.entry.size;
            (download.lock().size, download.lock().bytes) = (size, size);
            download.lock().name = Some(shared.entry.name);
            return download.finish(Ok(path));
        }
        let transfer = Transfer { ends: &self.ends, download: &download, content, name: name.as_ref() };
        loop {
            match transfer.run() {
                Ok(complete) => return self.installer.install(complete),
                Err(why) if download.fail(&why) => return,
                Err(_) => {}
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code panics while holding the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
