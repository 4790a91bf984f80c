//! A file as it is sent: its header rendered beforehand, and the bytes of a small one.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::SystemTime,
};

use http_io::server::{Prepared, Reply};

use crate::{
    access::permissions::Place,
    reading::{media_type, open_files::Check, selection::Validators},
    tree::identity::Identity,
};

/// Up to this length a file's bytes are read at once, kept in memory, and go out with the header in one write.
const SMALL_LEN_MAX: u64 = 32 * 1024;
/// Up to this length they come into memory when the file is asked for again: sending them from there takes less time
/// than `sendfile`, reading them for one request takes more. A longer file is always sent by the kernel from its page
/// cache. Where the limit lies was measured: see docs/performance.md.
const MEMORY_LEN_MAX: u64 = 256 * 1024;
/// What a kept descriptor counts as against the memory for files.
const DESCRIPTOR_WEIGHT: u32 = 64 * 1024;
/// The policy under which a browser runs nothing of what it shows: users upload files, and a script in one of them would
/// act as whoever looks at it.
pub(crate) const INERT: &str = "sandbox";
/// How often a file that changes while it is read is read again.
const READS_MAX: usize = 3;

/// A file as it is sent.
#[derive(Debug)]
pub(crate) struct Representation {
    /// Which state of which file this is.
    pub(crate) identity: Identity,
    /// The header of an answer with the whole file.
    pub(crate) whole: Prepared,
    /// Its bytes, or where they are.
    pub(crate) content: Content,
    /// Its media type.
    pub(crate) media_type: &'static str,
    /// What decides who may read it.
    pub(crate) place: Place,
    etag: String,
    last_modified: String,
    settled: bool,
    checked_at_ms: AtomicU64,
    checked_changes: AtomicU64,
    asked_again: AtomicBool,
}

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum Content {
    /// All of them.
    Bytes(Box<[u8]>),
    /// They stay in the file.
    File(Arc<File>),
}

impl Representation {
    /// Reads a small file, or keeps a large one open.
    pub(crate) fn new(path: &str, file: File, identity: Identity, now: Check) -> io::Result<Self> {
        let (identity, content) = content(file, identity)?;
        let etag = identity.etag();
        let last_modified = identity.last_modified().unwrap_or_default();
        let media_type = media_type::of(path);
        let whole = Prepared::new(200, identity.size)
            .header("Content-Type", media_type)
            .and_then(|head| head.header("ETag", &etag))
            .and_then(|head| head.header("Accept-Ranges", "bytes"))
            .and_then(|head| head.header("X-Content-Type-Options", "nosniff"));
        let whole = match media_type::is_active(media_type) {
            true => whole.and_then(|head| head.header("Content-Security-Policy", INERT)),
            false => whole,
        };
        let whole = match last_modified.is_empty() {
            true => whole,
            false => whole.and_then(|head| head.header("Last-Modified", &last_modified)),
        };
        Ok(Self {
            identity,
            whole: whole.map_err(io::Error::other)?,
            content,
            media_type,
            place: Place::default(),
            etag,
            last_modified,
            settled: identity.is_settled(SystemTime::now()),
            checked_at_ms: AtomicU64::new(now.at_ms),
            checked_changes: AtomicU64::new(now.changes),
            asked_again: AtomicBool::new(false),
        })
    }

    /// The same, at a place that decides who may read it.
    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// The same with its bytes in memory, for a file that is asked for again and is not too long for that.
    /// Tried once: a file that changes is soon found out and looked at anew.
    pub(crate) fn brought_near(&self) -> Option<Self> {
        let Content::File(file) = &self.content else { return None };
        if self.identity.size > MEMORY_LEN_MAX || self.asked_again.swap(true, Relaxed) {
            return None;
        }
        let bytes = read_whole(file, &self.identity).ok().flatten()?;
        Some(Self {
            identity: self.identity,
            whole: self.whole.clone(),
            content: Content::Bytes(bytes),
            media_type: self.media_type,
            place: self.place.clone(),
            etag: self.etag.clone(),
            last_modified: self.last_modified.clone(),
            settled: self.settled,
            checked_at_ms: AtomicU64::new(self.checked_at_ms.load(Relaxed)),
            checked_changes: AtomicU64::new(self.checked_changes.load(Relaxed)),
            asked_again: AtomicBool::new(true),
        })
    }

    /// Whether it may be kept: another change would show.
    pub(crate) fn may_be_kept(&self) -> bool {
        self.settled
    }

    /// Whether it was compared with the file less than `every_ms` ago, and nothing was changed here since.
    pub(crate) fn is_fresh(&self, now: Check, every_ms: u64) -> bool {
        let young = now.at_ms.saturating_sub(self.checked_at_ms.load(Relaxed)) < every_ms;
        young && self.checked_changes.load(Relaxed) == now.changes
    }

    /// Notes that it was compared with the file and is still the same.
    pub(crate) fn checked(&self, now: Check) {
        self.checked_at_ms.store(now.at_ms, Relaxed);
        self.checked_changes.store(now.changes, Relaxed);
    }

    /// What it costs to keep.
    pub(crate) fn weight(&self) -> u32 {
        match &self.content {
            Content::Bytes(bytes) => u32::try_from(bytes.len() + 1024).unwrap_or(u32::MAX),
            Content::File(_) => DESCRIPTOR_WEIGHT,
        }
    }

    /// What conditions are compared with.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            etag: &self.etag,
            last_modified: &self.last_modified,
            modified_s: self.identity.modified_s(),
            size: self.identity.size,
        }
    }

    /// Adds the fields that name this state of the file.
    pub(crate) fn name_state<'x, 'c, C: engine::service::Connection>(
        &self,
        reply: Reply<'x, 'c, C>,
    ) -> Reply<'x, 'c, C> {
        let reply = reply.header("ETag", &self.etag);
        if self.last_modified.is_empty() { reply } else { reply.header("Last-Modified", &self.last_modified) }
    }
}

fn content(file: File, mut identity: Identity) -> io::Result<(Identity, Content)> {
    for _ in 0..READS_MAX {
        if identity.size > SMALL_LEN_MAX {
            return Ok((identity, Content::File(Arc::new(file))));
        }
        if let Some(bytes) = read_whole(&file, &identity)? {
            return Ok((identity, Content::Bytes(bytes)));
        }
        identity = Identity::of(&file.metadata()?);
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "the file changes faster than it can be read"))
}

/// All bytes of the file in this state; none if it changed meanwhile.
fn read_whole(file: &File, identity: &Identity) -> io::Result<Option<Box<[u8]>>> {
    let bytes = read(file, identity.size)?;
    let unchanged = identity.is_of(&file.metadata()?) && bytes.len() as u64 == identity.size;
    Ok(unchanged.then(|| bytes.into()))
}

/// At most `length` bytes from the start: fewer where the file has become shorter.
fn read(file: &File, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
