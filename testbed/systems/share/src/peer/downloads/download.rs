//! The state of one download, shared by the thread that makes it and those that ask about it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::entry::{Content, Name};

/// The progress of a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Hash of the content.
    pub hash: Content,
    /// Name of the file, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Its state.
    pub state: DownloadState,
    /// Length, bytes; 0 while it is not known.
    pub size: u64,
    /// How many of them have been received and verified.
    pub bytes: u64,
    /// Path within the shared folder, once it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What each peer has contributed.
    pub sources: BTreeMap<SocketAddr, SourceProgress>,
}

/// The state of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DownloadState {
    /// Content is being received, or peers are being looked for.
    Running,
    /// The file is complete and verified.
    Done,
    /// The download ended without the file; what was received is kept.
    Failed,
}

/// What a peer has contributed to a download.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceProgress {
    /// Verified bytes.
    pub bytes: u64,
    /// Whether it sent wrong content. It is not asked again.
    pub lied: bool,
    /// What was last wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl Progress {
    pub(crate) fn new(hash: Content) -> Self {
        let (state, sources) = (DownloadState::Running, BTreeMap::new());
        Self { hash, name: None, state, size: 0, bytes: 0, path: None, error: None, sources }
    }

    /// The contribution of a peer, for updating.
    pub(crate) fn source(&mut self, peer: SocketAddr) -> &mut SourceProgress {
        self.sources.entry(peer).or_default()
    }
}

impl SourceProgress {
    /// Records that it sent wrong content.
    pub(crate) fn lie(&mut self, how: &str) {
        (self.lied, self.trouble) = (true, Some(how.into()));
    }
}

/// A download.
#[derive(Debug)]
pub(crate) struct Download {
    progress: Mutex<Progress>,
    pub(crate) begun: Instant,
    over: Condvar,
    /// How many requests there are for it. Changes only while `progress` is locked, so that no request joins a download that
    /// has just ended.
    requests: AtomicUsize,
    /// Whether there was no request left, if only for a moment: the download then stops, and checks whether one has come.
    cancelled: AtomicBool,
}

/// Which requests to withdraw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelScope {
    /// One request.
    One,
    /// All requests.
    All,
}

impl Download {
    /// A new download with one request.
    pub(crate) fn new(hash: Content) -> Self {
        Self {
            progress: Mutex::new(Progress::new(hash)),
            begun: Instant::now(),
            over: Condvar::new(),
            requests: AtomicUsize::new(1),
            cancelled: AtomicBool::new(false),
        }
    }

    /// The progress, for reading or updating.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Progress> {
        // No code panics while holding the lock.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the download, with the file's path or the reason for the failure.
    pub(crate) fn finish(&self, outcome: Result<String, String>) {
        let mut progress = self.lock();
        match outcome {
            Ok(path) => (progress.path, progress.state) = (Some(path), DownloadState::Done),
            Err(why) => (progress.error, progress.state) = (Some(why), DownloadState::Failed),
        }
        drop(progress);
        self.over.notify_all();
    }

    /// Adds a request. Returns `false` if the download has ended.
    pub(crate) fn add_request(&self) -> bool {
        let progress = self.lock();
        let running = progress.state == DownloadState::Running;
        self.requests.fetch_add(usize::from(running), SeqCst);
        running
    }

    /// Withdraws requests. Returns `false` if the download has ended.
    pub(crate) fn withdraw(&self, scope: CancelScope) -> bool {
        let progress = self.lock();
        let running = progress.state == DownloadState::Running;
        if running {
            let left = match scope {
                CancelScope::One => self.requests.load(SeqCst).saturating_sub(1),
                CancelScope::All => 0,
            };
            self.requests.store(left, SeqCst);
            self.cancelled.fetch_or(left == 0, SeqCst);
        }
        running
    }

    /// Ends the download as failed. Returns `false`, and leaves it running, if it was cancelled but a new request has come
    /// meanwhile: it has to be run again.
    pub(crate) fn fail(&self, why: &str) -> bool {
        let mut progress = self.lock();
        if self.cancelled.swap(false, SeqCst) && self.requests.load(SeqCst) > 0 {
            return false;
        }
        (progress.error, progress.state) = (Some(why.into()), DownloadState::Failed);
        drop(progress);
        self.over.notify_all();
        true
    }

    /// Whether it has to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(SeqCst)
    }

    /// Waits until the download has ended, but not longer than `patience`.
    pub(crate) fn wait(&self, patience: Duration) {
        let running = |progress: &mut Progress| progress.state == DownloadState::Running;
        // The caller looks at the state again, whatever ended the wait.
        drop(self.over.wait_timeout_while(self.lock(), patience, running));
    }
}
