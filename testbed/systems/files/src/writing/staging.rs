//! Where uploads lie until they are whole: a folder below the root that nobody sees, so that a file that is complete can
//! be moved to its place at one stroke.
//!
//! Whoever works at a part holds a lock on it, which the kernel releases when the process dies, however it dies. A part
//! that nobody holds is left over: swept away at once, or, if it was to be resumable, when its time is over.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, mkdirat, openat, unlinkat},
    io::Errno,
};

use crate::{reading::OpenFiles, writing::record::Record};

/// The folder's name, below the root. It begins as all names do that are the server's own.
const FOLDER: &str = ".nstar-uploads";
/// Bytes of randomness in a part's name: nobody guesses another's.
const ID_BYTES: usize = 16;

/// The folder of the parts.
#[derive(Debug, Clone)]
pub(crate) struct Staging(pub(crate) Arc<OpenFiles>);

/// The name of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartId(String);

/// The beginning of a file, held by whoever works at it. Dropped, it is gone, unless it was kept or moved.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) folder: OwnedFd,
    pub(crate) id: PartId,
    pub(crate) file: File,
    kept: AtomicBool,
}

impl PartId {
    /// A name nobody has had.
    fn random() -> io::Result<Self> {
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The name, if it can be one of a part.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 2 * ID_BYTES && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Staging {
    /// The folder, made if it is missing.
    pub(crate) fn folder(&self) -> Result<OwnedFd, Errno> {
        match self.existing() {
            Err(Errno::NOENT) => match mkdirat(self.0.root().folder("")?, FOLDER, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => self.existing(),
                Err(error) => Err(error),
            },
            other => other,
        }
    }

    fn existing(&self) -> Result<OwnedFd, Errno> {
        self.0.root().folder(FOLDER)
    }

    /// A new part, empty.
    pub(crate) fn create(&self) -> io::Result<Part> {
        loop {
            let (folder, id) = (self.folder()?, PartId::random()?);
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
            let file = openat(&folder, id.as_str(), flags, mode)?;
            // Before it was held, it looked like one left over and may have been swept away.
            if let Some(file) = hold(file)? {
                return Ok(Part { folder, id, file, kept: AtomicBool::new(false) });
            }
        }
    }

    /// Takes a part up again. `None` when there is none; `WouldBlock` when somebody else works at it.
    pub(crate) fn take_up(&self, id: &PartId) -> io::Result<Option<Part>> {
        let folder = match self.existing() {
            Err(Errno::NOENT) => return Ok(None),
            other => other?,
        };
        let file = match openat(
            &folder,
            id.as_str(),
            OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        ) {
            Err(Errno::NOENT) => return Ok(None),
            other => other?,
        };
        let held = hold(file)?.ok_or(io::ErrorKind::WouldBlock)?;
        Ok(Some(Part { folder, id: id.clone(), file: held, kept: AtomicBool::new(true) }))
    }

    /// Removes what was left over: at once what cannot be resumed, after `life` what could.
    pub(crate) fn sweep(&self, life: Duration) -> io::Result<()> {
        let folder = match self.existing() {
            Err(Errno::NOENT) => return Ok(()),
            other => other?,
        };
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if let Some(id) = PartId::parse(name) {
                self.sweep_part(&id, life)?;
            } else if let Some(id) = Record::of_file(name) {
                self.sweep_record(&folder, &id, life);
            }
        }
        Ok(())
    }

    fn sweep_part(&self, id: &PartId, life: Duration) -> io::Result<()> {
        match self.take_up(id) {
            Ok(Some(part)) => {
                if !Record::exists(&part.folder, id) || is_older(&part.file, life) {
                    part.discard();
                }
                Ok(())
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// A record outlives its part, to tell how the upload ended.
    fn sweep_record(&self, folder: &OwnedFd, id: &PartId, life: Duration) {
        let alone = rustix::fs::statat(folder, id.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_err();
        if alone && Record::is_older(folder, id, life) {
            Record::remove(folder, id);
        }
    }
}

impl Part {
    /// From now on it stays when it is dropped, to be taken up again.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Relaxed);
    }

    /// From now on it goes when it is dropped.
    pub(crate) fn discard(&self) {
        self.kept.store(false, Relaxed);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.kept.load(Relaxed) {
            Record::remove(&self.folder, &self.id);
            let _ = unlinkat(&self.folder, self.id.as_str(), AtFlags::empty());
        }
    }
}

/// The file, locked, unless somebody else holds it or has removed it.
fn hold(file: OwnedFd) -> io::Result<Option<File>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let file = File::from(file);
    let there = std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) > 0;
    Ok(there.then_some(file))
}

fn is_older(file: &File, life: Duration) -> bool {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| SystemTime::now().duration_since(modified).is_ok_and(|age| age >= life))
}
