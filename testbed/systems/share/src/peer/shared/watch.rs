//! Watches the shared folder: for changes in it, and for another folder in its place.

use std::{
    fs, io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};

use crate::peer::error::PeerError;

/// Reports changes in the folders that were added (inotify(7)).
#[derive(Debug)]
pub(crate) struct Watch(OwnedFd);

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Adds a folder. Adding it twice is harmless.
    pub(crate) fn add(&self, folder: &Path) -> io::Result<()> {
        let flags = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        inotify::add_watch(&self.0, folder, flags)?;
        Ok(())
    }

    /// Waits for a change, but not longer than `patience`. Returns whether there was one.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let patience = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut ready, Some(&patience)), Ok(1..)) && self.discard()
    }

    /// Discards all pending events, and returns whether there were any. Their kind does not matter.
    fn discard(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut heard = false;
        loop {
            match reader.next() {
                Ok(_) => heard = true,
                Err(Errno::INTR) => {}
                Err(_) => return heard,
            }
        }
    }
}

/// Checks that the folder at a path is still the one that the peer was started with.
#[derive(Debug)]
pub(crate) struct RootCheck {
    path: PathBuf,
    /// Device and inode.
    place: (u64, u64),
    warning: Mutex<Option<String>>,
}

impl RootCheck {
    /// The folder at this path now.
    pub(crate) fn new(path: &Path) -> Result<Self, PeerError> {
        let place = place(path)
            .map_err(|error| PeerError::Unusable { share: path.to_owned(), reason: error.to_string() })?;
        Ok(Self { path: path.to_owned(), place, warning: Mutex::default() })
    }

    /// Whether the folder is still at its path. Logs once when it goes and once when it comes back.
    pub(crate) fn is_unchanged(&self) -> bool {
        let warning = self.check();
        let mut before = self.lock();
        match &warning {
            Some(now) if before.as_ref() != Some(now) => tracing::error!("{now}"),
            None if before.is_some() => tracing::warn!("{:?} is back and shared again", self.path),
            _ => {}
        }
        *before = warning;
        before.is_none()
    }

    /// Why nothing is shared, as of the last check.
    pub(crate) fn warning(&self) -> Option<String> {
        self.lock().clone()
    }

    fn check(&self) -> Option<String> {
        let what = match place(&self.path) {
            Ok(place) if place == self.place => return None,
            Ok(_) => "is another folder than this peer was started with (replaced, or something is mounted over it)".into(),
            Err(error) => format!("cannot be found ({error})"),
        };
        Some(format!(
            "{:?} {what}, so nothing is shared; put the folder back, or start the peer again",
            self.path
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        // No code panics while holding the lock.
        self.warning.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
