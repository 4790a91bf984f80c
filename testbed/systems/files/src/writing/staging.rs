//! Where uploads lie until they are complete: a hidden folder below the root, so that a complete file can be moved to its
//! place atomically.
//!
//! A request that works on a part holds a lock on it, which the kernel releases when the process dies, however it dies. A
//! part without a lock is left over: it is removed at once or, if its upload can be resumed, when its time is over. What is
//! known of such an upload is kept in a record beside its part, so that it survives the process.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fsync, mkdirat, openat, renameat, unlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{
    access::permissions::{self, OpenFiles},
    writing::headers::Condition,
};

/// The name of the folder below the root. It is one of the reserved names.
const FOLDER: &str = ".nstar-uploads";
/// Random bytes in the name of a part, which cannot be guessed.
const ID_BYTES: usize = 16;

/// Who may read uploaded files on this machine, less the umask: the server's user and group, as files may be private.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP);

/// Extension of the file of a record.
const RECORD_ENDING: &str = ".json";
/// Further extension while a record is being written.
const UNFINISHED: &str = ".new";
/// Maximum length of a record that is read, bytes: a path, a user, two lists of tags.
const RECORD_LEN_MAX: u64 = 64 * 1024;

/// The folder of the parts.
#[derive(Debug, Clone)]
pub(crate) struct Staging(pub(crate) Arc<OpenFiles>);

/// The name of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartId(String);

/// The first bytes of a file, locked by the request that works on it. Removed when dropped, unless it was kept or moved.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) folder: OwnedFd,
    pub(crate) id: PartId,
    pub(crate) file: File,
    kept: AtomicBool,
}

impl PartId {
    /// A new name.
    fn random() -> io::Result<Self> {
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Parses a name. `None` if no part can have it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 2 * ID_BYTES && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Staging {
    /// Opens the folder, and creates it if it is missing.
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

    /// Creates an empty part.
    pub(crate) fn create(&self) -> io::Result<Part> {
        loop {
            let (folder, id) = (self.folder()?, PartId::random()?);
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = openat(&folder, id.as_str(), flags, MODE)?;
            // Before it was locked, it looked left over and may have been removed.
            if let Some(file) = lock(file)? {
                return Ok(Part { folder, id, file, kept: AtomicBool::new(false) });
            }
        }
    }

    /// Reopens a part. `None` if there is none; `WouldBlock` if another request works on it.
    pub(crate) fn reopen(&self, id: &PartId) -> io::Result<Option<Part>> {
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
        let locked = lock(file)?.ok_or(io::ErrorKind::WouldBlock)?;
        Ok(Some(Part { folder, id: id.clone(), file: locked, kept: AtomicBool::new(true) }))
    }

    /// Writes a record, and returns once it is on the disk, with its name and that of its part.
    pub(crate) fn secure(&self, folder: &OwnedFd, id: &PartId, record: &Record) -> io::Result<()> {
        record.write(folder, id)?;
        fsync(folder)?;
        // The name of the folder itself, which may be new.
        Ok(fsync(self.0.root().folder("")?)?)
    }

    /// Removes what is left over: uploads that cannot be resumed at once, others after `life`.
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

    /// The records of all uploads that can be resumed or were.
    pub(crate) fn records(&self) -> io::Result<Vec<(PartId, Record)>> {
        let folder = self.folder()?;
        let mut records = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let Some(id) = entry?.file_name().to_str().ok().and_then(Record::of_file) else { continue };
            records.extend(Record::read(&folder, &id)?.map(|record| (id, record)));
        }
        Ok(records)
    }

    fn sweep_part(&self, id: &PartId, life: Duration) -> io::Result<()> {
        match self.reopen(id) {
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

    /// Removes old records. A record outlives its part, to say how the upload ended.
    fn sweep_record(&self, folder: &OwnedFd, id: &PartId, life: Duration) {
        let alone = rustix::fs::statat(folder, id.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_err();
        if alone && Record::is_older(folder, id, life) {
            Record::remove(folder, id);
        }
    }
}

impl Part {
    /// Keeps the part when it is dropped, so that the upload can be resumed.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Relaxed);
    }

    /// Removes the part when it is dropped.
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

/// Locks a file. `None` if another request holds the lock or has removed the file.
fn lock(file: OwnedFd) -> io::Result<Option<File>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let file = File::from(file);
    let exists = std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) > 0;
    Ok(exists.then_some(file))
}

fn is_older(file: &File, life: Duration) -> bool {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| SystemTime::now().duration_since(modified).is_ok_and(|age| age >= life))
}

/// What is known of an upload that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The decoded path of the file.
    pub(crate) path: String,
    /// The user who uploads it. `None` without accounts.
    pub(crate) user: Option<String>,
    /// Its length if known, bytes.
    pub(crate) length: Option<u64>,
    /// The condition for moving the file to its place.
    pub(crate) condition: Condition,
    /// The length of the file once it is in its place, bytes. Then only the record is left.
    pub(crate) done: Option<u64>,
    /// What is known of the part itself.
    #[serde(default)]
    pub(crate) arrived: Arrived,
}

/// How much of a part has arrived for certain.
///
/// After a power failure a part may have its length without all of its bytes. So what was not synced counts only until the
/// machine is started again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Arrived {
    /// How much was synced, bytes.
    pub(crate) synced: u64,
    /// The start of the machine in which the rest was written.
    boot: String,
}

impl Arrived {
    /// So many bytes that are on the disk.
    pub(crate) fn synced(bytes: u64, boot: &str) -> Self {
        Self { synced: bytes, boot: boot.to_owned() }
    }

    /// How much has arrived of a part of this length, bytes.
    pub(crate) fn of(&self, len: u64, boot: &str) -> u64 {
        if self.boot == boot && !boot.is_empty() { len } else { len.min(self.synced) }
    }
}

/// Identifies this start of the machine. Empty where that is not known.
pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

impl Record {
    /// The record of an upload of which nothing has arrived.
    pub(crate) fn new(path: String, user: Option<String>, length: Option<u64>, condition: Condition) -> Self {
        Self { path, user, length, condition, done: None, arrived: Arrived::default() }
    }

    /// The user whose space the upload takes: whose folder it is in, or else who sends it.
    pub(crate) fn accountable(&self) -> Option<&str> {
        permissions::owner(&self.path).or(self.user.as_deref())
    }

    /// Reads the record of a part. An invalid one counts as missing.
    pub(crate) fn read(folder: &OwnedFd, id: &PartId) -> io::Result<Option<Self>> {
        let file = match open(folder, id) {
            Err(Errno::NOENT) => return Ok(None),
            other => File::from(other?),
        };
        let mut text = Vec::new();
        file.take(RECORD_LEN_MAX).read_to_end(&mut text)?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Writes the record atomically: a power failure leaves it or the one before.
    pub(crate) fn write(&self, folder: impl AsFd, id: &PartId) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut file = File::from(openat(&folder, unfinished(id), flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_data()?;
        Ok(renameat(&folder, unfinished(id), &folder, name(id))?)
    }

    pub(crate) fn exists(folder: &OwnedFd, id: &PartId) -> bool {
        open(folder, id).is_ok()
    }

    /// Whether the record was last written this long ago, or cannot be read.
    pub(crate) fn is_older(folder: &OwnedFd, id: &PartId, life: Duration) -> bool {
        let metadata =
            open(folder, id).map(File::from).map_err(io::Error::from).and_then(|file| file.metadata());
        let written = metadata.and_then(|metadata| metadata.modified());
        written.map_or(true, |at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= life))
    }

    /// Removes the record if it exists.
    pub(crate) fn remove(folder: &OwnedFd, id: &PartId) {
        for name in [name(id), unfinished(id)] {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }

    /// The part whose record has this file name.
    pub(crate) fn of_file(name: &str) -> Option<PartId> {
        let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
        PartId::parse(name.strip_suffix(RECORD_ENDING)?)
    }
}

/// What the server would write in place of the record of an upload that holds this. `None` where it takes the record for
/// missing.
pub fn rewritten_record(text: &[u8]) -> Option<Vec<u8>> {
    serde_json::to_vec(&Record::parse(text)?).ok()
}

fn name(id: &PartId) -> String {
    format!("{}{RECORD_ENDING}", id.as_str())
}

fn unfinished(id: &PartId) -> String {
    format!("{}{UNFINISHED}", name(id))
}

fn open(folder: &OwnedFd, id: &PartId) -> Result<OwnedFd, Errno> {
    openat(folder, name(id), OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
}
