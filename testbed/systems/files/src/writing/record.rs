//! What is known of an upload that can be resumed: kept beside its part, so that it outlives the server's process.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::writing::{condition::Condition, staging::PartId};

const ENDING: &str = ".json";
/// Ending of one being written.
const UNFINISHED: &str = ".new";
/// The longest that is read: a path, a user, two lists of tags.
const LEN_MAX: u64 = 64 * 1024;

/// What is known of an upload that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Where the file is to be, decoded.
    pub(crate) path: String,
    /// Who uploads it; none where there are no accounts.
    pub(crate) user: Option<String>,
    /// Its length, if it was announced, bytes.
    pub(crate) length: Option<u64>,
    /// What must hold when it is put in its place.
    pub(crate) condition: Condition,
    /// Its length, once it is in its place, bytes: only the record is left then.
    pub(crate) done: Option<u64>,
}

impl Record {
    /// Reads the record of a part. What cannot be read as one counts as missing.
    pub(crate) fn read(folder: &OwnedFd, id: &PartId) -> io::Result<Option<Self>> {
        let file = match open(folder, id) {
            Err(Errno::NOENT) => return Ok(None),
            other => File::from(other?),
        };
        let mut text = Vec::new();
        file.take(LEN_MAX).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, folder: impl AsFd, id: &PartId) -> io::Result<()> {
        let unfinished = format!("{}{UNFINISHED}", name(id));
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(&folder, &unfinished, flags, Mode::RUSR | Mode::WUSR)?;
        File::from(file).write_all(&serde_json::to_vec(self)?)?;
        Ok(renameat(&folder, &unfinished, &folder, name(id))?)
    }

    pub(crate) fn exists(folder: &OwnedFd, id: &PartId) -> bool {
        open(folder, id).is_ok()
    }

    /// Whether it was last written so long ago, or cannot be read.
    pub(crate) fn is_older(folder: &OwnedFd, id: &PartId, life: Duration) -> bool {
        let metadata =
            open(folder, id).map(File::from).map_err(io::Error::from).and_then(|file| file.metadata());
        let written = metadata.and_then(|metadata| metadata.modified());
        written.map_or(true, |at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= life))
    }

    /// Removes it, if it is there.
    pub(crate) fn remove(folder: &OwnedFd, id: &PartId) {
        for name in [name(id), format!("{}{UNFINISHED}", name(id))] {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }

    /// Of which part the file of this name is the record.
    pub(crate) fn of_file(name: &str) -> Option<PartId> {
        let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
        PartId::parse(name.strip_suffix(ENDING)?)
    }
}

fn name(id: &PartId) -> String {
    format!("{}{ENDING}", id.as_str())
}

fn open(folder: &OwnedFd, id: &PartId) -> Result<OwnedFd, Errno> {
    openat(folder, name(id), OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
}
