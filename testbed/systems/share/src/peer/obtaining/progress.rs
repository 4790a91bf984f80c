//! How far obtaining some content has come, for whoever asks.

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

use crate::{content::Content, name::Name};

/// How it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What it is named.
    pub hash: Content,
    /// What it is called, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// How it stands.
    pub state: State,
    /// Its length, bytes; 0 while that is not known.
    pub size: u64,
    /// Of those, how many are here and right.
    pub bytes: u64,
    /// Where it is in the shared folder, once it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What each peer gave.
    pub sources: BTreeMap<SocketAddr, Source>,
}

/// How it stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is coming, or peers that have it are looked for.
    Running,
    /// It is here, and all of it is right.
    Done,
    /// It was given up; what came is kept.
    Failed,
}

/// What a peer gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Right bytes.
    pub bytes: u64,
    /// Whether it sent bytes that are not the content's. It is asked for nothing more.
    pub lied: bool,
    /// What was wrong with it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl Progress {
    pub(crate) fn new(hash: Content) -> Self {
        let (state, sources) = (State::Running, BTreeMap::new());
        Self { hash, name: None, state, size: 0, bytes: 0, path: None, error: None, sources }
    }

    /// What a peer gave, to be added to.
    pub(crate) fn source(&mut self, peer: SocketAddr) -> &mut Source {
        self.sources.entry(peer).or_default()
    }
}

impl Source {
    /// It sent what is not the content.
    pub(crate) fn lie(&mut self, how: &str) {
        (self.lied, self.trouble) = (true, Some(how.into()));
    }
}

/// Progress that one thread makes and others look at.
#[derive(Debug)]
pub(crate) struct Tracked {
    progress: Mutex<Progress>,
    pub(crate) begun: Instant,
    over: Condvar,
    /// How many want it. Changes while the progress is locked only, so that nobody comes to want what just is over.
    wanted: AtomicUsize,
    /// Nobody wanted it, if only for a moment: whoever obtains it stops, and then looks whether somebody does again.
    cancelled: AtomicBool,
}

/// Whose wish for some content is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// That of one of those who asked.
    One,
    /// That of all who asked.
    All,
}

impl Tracked {
    /// Of content that is begun to be obtained, for one who wants it.
    pub(crate) fn new(hash: Content) -> Self {
        Self {
            progress: Mutex::new(Progress::new(hash)),
            begun: Instant::now(),
            over: Condvar::new(),
            wanted: AtomicUsize::new(1),
            cancelled: AtomicBool::new(false),
        }
    }

    /// The progress, to be looked at or changed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Progress> {
        // Nothing panics while it is held.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is over: the content is at this path, or was given up.
    pub(crate) fn finish(&self, outcome: Result<String, String>) {
        let mut progress = self.lock();
        match outcome {
            Ok(path) => (progress.path, progress.state) = (Some(path), State::Done),
            Err(why) => (progress.error, progress.state) = (Some(why), State::Failed),
        }
        drop(progress);
        self.over.notify_all();
    }

    /// One more wants it; whether it was not over yet.
    pub(crate) fn want(&self) -> bool {
        let progress = self.lock();
        let running = progress.state == State::Running;
        self.wanted.fetch_add(usize::from(running), SeqCst);
        running
    }

    /// Somebody wants it no longer, or nobody does; whether it was not over yet.
    pub(crate) fn unwant(&self, whose: Whose) -> bool {
        let progress = self.lock();
        let running = progress.state == State::Running;
        if running {
            let left = match whose {
                Whose::One => self.wanted.load(SeqCst).saturating_sub(1),
                Whose::All => 0,
            };
            self.wanted.store(left, SeqCst);
            self.cancelled.fetch_or(left == 0, SeqCst);
        }
        running
    }

    /// It could not be had, or was cancelled; whether it is over with that. It is not where somebody came to want it while
    /// it was being given up: it is to be begun anew.
    pub(crate) fn give_up(&self, why: &str) -> bool {
        let mut progress = self.lock();
        if self.cancelled.swap(false, SeqCst) && self.wanted.load(SeqCst) > 0 {
            return false;
        }
        (progress.error, progress.state) = (Some(why.into()), State::Failed);
        drop(progress);
        self.over.notify_all();
        true
    }

    /// Whether it is to be given up.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(SeqCst)
    }

    /// Waits until it is over, or so long.
    pub(crate) fn wait(&self, patience: Duration) {
        let running = |progress: &mut Progress| progress.state == State::Running;
        // Which of them it was, whoever asks again sees.
        drop(self.over.wait_timeout_while(self.lock(), patience, running));
    }
}
