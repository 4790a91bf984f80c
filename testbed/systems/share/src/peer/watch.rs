//! Hears of changes in folders (inotify(7)), so that they need not be looked for all the time.

use std::{io, mem::MaybeUninit, os::fd::OwnedFd, path::Path, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};

/// Hears of changes in the folders that were added.
#[derive(Debug)]
pub(crate) struct Watch(OwnedFd);

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Listens to a folder; again is as good as once.
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

    /// Waits for a change, or so long; whether there was one.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let patience = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut ready, Some(&patience)), Ok(1..)) && self.forget()
    }

    /// Reads away what was heard; whether there was anything. What exactly it was does not matter.
    fn forget(&self) -> bool {
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
