//! The shared folder as it was when the peer started: what lies at its path may become another.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::error::PeerError;

/// Which folder is shared.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    /// Device and inode.
    place: (u64, u64),
    trouble: Mutex<Option<String>>,
}

impl Root {
    /// The folder that is at this path now.
    pub(crate) fn at(path: &Path) -> Result<Self, PeerError> {
        let place = place(path)
            .map_err(|error| PeerError::Unusable { share: path.to_owned(), reason: error.to_string() })?;
        Ok(Self { path: path.to_owned(), place, trouble: Mutex::default() })
    }

    /// Whether the same folder is still at its path. That it is not, and that it is again, is logged once.
    pub(crate) fn is_there(&self) -> bool {
        let trouble = self.look();
        let mut before = self.lock();
        match &trouble {
            Some(now) if before.as_ref() != Some(now) => tracing::error!("{now}"),
            None if before.is_some() => tracing::warn!("{:?} is back and shared again", self.path),
            _ => {}
        }
        *before = trouble;
        before.is_none()
    }

    /// Why nothing is shared, as of when it was looked last.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.lock().clone()
    }

    fn look(&self) -> Option<String> {
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
        // Nothing panics while it is held.
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
