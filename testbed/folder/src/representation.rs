//! A file ready to be sent: its response header rendered in advance, and the bytes of a small one.

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

use http_io::server::{Prepared, ResponseWriter};

use crate::{file_state::FileState, media_type, selection::Validators};

/// A file of up to this length is read when it is opened, cached in memory, and sent with its header in one write.
const SMALL_LEN_MAX: u64 = 32 * 1024;
/// A file of up to this length is read into memory at its second request: sending it from there takes less time than
/// `sendfile`, but reading it for a single request takes more. Longer files always come from the kernel's page cache.
/// Measured: see docs/performance.md.
const MEMORY_LEN_MAX: u64 = 256 * 1024;
/// What a cached descriptor counts against the memory for files, bytes.
const DESCRIPTOR_WEIGHT: u32 = 64 * 1024;
/// The policy under which a browser runs nothing of what it shows: users upload files, and a script in one of them would
/// act with the rights of whoever views it.
pub(crate) const INERT: &str = "sandbox";
/// How often a file that changes while it is read is read again.
const READS_MAX: usize = 3;

/// When a file was compared with the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// Milliseconds since the server started.
    pub(crate) at_ms: u64,
    /// How many changes had been made.
    pub(crate) changes: u64,
}

/// A file ready to be sent.
#[derive(Debug)]
pub struct Representation<R> {
    /// Which state of which file this is.
    pub state: FileState,
    /// The rule of its path.
    pub rule: R,
    /// The header of a response with the whole file.
    pub(crate) whole: Prepared,
    pub(crate) content: Content,
    pub(crate) media_type: &'static str,
    etag: String,
    last_modified: String,
    settled: bool,
    checked_at_ms: AtomicU64,
    checked_changes: AtomicU64,
    requested_again: AtomicBool,
}

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum Content {
    /// In memory.
    Bytes(Box<[u8]>),
    /// On disk.
    File(Arc<File>),
}

impl<R> Representation<R> {
    /// Reads a small file, or keeps a large one open.
    pub(crate) fn new(path: &str, file: File, state: FileState, rule: R, now: Check) -> io::Result<Self> {
        let (state, content) = content(file, state)?;
        let etag = state.etag();
        let last_modified = state.last_modified().unwrap_or_default();
        let media_type = media_type::of(path);
        let whole = Prepared::new(200, state.size())
            .header("Content-Type", media_type)
            .and_then(|head| head.header("ETag", &etag))
            .and_then(|head| head.header("Accept-Ranges", "bytes"))
            .and_then(|head| head.header("X-Content-Type-Options", "nosniff"))
            .and_then(|head| head.header("Cross-Origin-Resource-Policy", "same-origin"));
        let whole = match media_type::is_active(media_type) {
            true => whole.and_then(|head| head.header("Content-Security-Policy", INERT)),
            false => whole,
        };
        let whole = match last_modified.is_empty() {
            true => whole,
            false => whole.and_then(|head| head.header("Last-Modified", &last_modified)),
        };
        Ok(Self {
            state,
            rule,
            whole: whole.map_err(io::Error::other)?,
            content,
            media_type,
            etag,
            last_modified,
            settled: state.is_settled(SystemTime::now()),
            checked_at_ms: AtomicU64::new(now.at_ms),
            checked_changes: AtomicU64::new(now.changes),
            requested_again: AtomicBool::new(false),
        })
    }

    /// The same file with its bytes in memory, if it is requested for the second time and short enough. Tried once: a
    /// file that changes is soon noticed and opened again.
    pub(crate) fn read_into_memory(&self) -> Option<Self>
    where
        R: Clone,
    {
        let Content::File(file) = &self.content else { return None };
        if self.state.size() > MEMORY_LEN_MAX || self.requested_again.swap(true, Relaxed) {
            return None;
        }
        let bytes = read_whole(file, &self.state).ok().flatten()?;
        Some(Self {
            state: self.state,
            rule: self.rule.clone(),
            whole: self.whole.clone(),
            content: Content::Bytes(bytes),
            media_type: self.media_type,
            etag: self.etag.clone(),
            last_modified: self.last_modified.clone(),
            settled: self.settled,
            checked_at_ms: AtomicU64::new(self.checked_at_ms.load(Relaxed)),
            checked_changes: AtomicU64::new(self.checked_changes.load(Relaxed)),
            requested_again: AtomicBool::new(true),
        })
    }

    /// Whether it may be cached: a further change would show in its [`FileState`].
    pub(crate) fn may_be_cached(&self) -> bool {
        self.settled
    }

    /// Whether it was compared with the file less than `every_ms` ago, and this server has changed nothing since.
    pub(crate) fn is_fresh(&self, now: Check, every_ms: u64) -> bool {
        let young = now.at_ms.saturating_sub(self.checked_at_ms.load(Relaxed)) < every_ms;
        young && self.checked_changes.load(Relaxed) == now.changes
    }

    /// Notes that it was compared with the file and is still the same.
    pub(crate) fn checked(&self, now: Check) {
        self.checked_at_ms.store(now.at_ms, Relaxed);
        self.checked_changes.store(now.changes, Relaxed);
    }

    /// What it counts against the memory for files, bytes.
    pub(crate) fn weight(&self) -> u32 {
        match &self.content {
            Content::Bytes(bytes) => u32::try_from(bytes.len() + 1024).unwrap_or(u32::MAX),
            Content::File(_) => DESCRIPTOR_WEIGHT,
        }
    }

    /// What a request's conditions are compared with.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            etag: &self.etag,
            last_modified: &self.last_modified,
            modified_s: self.state.modified_s(),
            size: self.state.size(),
        }
    }

    /// Adds the fields that name this state of the file: `ETag` and `Last-Modified`.
    pub(crate) fn name_state<'x, 'c, C: engine::service::Connection>(
        &self,
        response: ResponseWriter<'x, 'c, C>,
    ) -> ResponseWriter<'x, 'c, C> {
        let response = response.header("ETag", &self.etag);
        if self.last_modified.is_empty() {
            response
        } else {
            response.header("Last-Modified", &self.last_modified)
        }
    }
}

fn content(file: File, mut state: FileState) -> io::Result<(FileState, Content)> {
    for _ in 0..READS_MAX {
        if state.size() > SMALL_LEN_MAX {
            return Ok((state, Content::File(Arc::new(file))));
        }
        if let Some(bytes) = read_whole(&file, &state)? {
            return Ok((state, Content::Bytes(bytes)));
        }
        state = FileState::of(&file.metadata()?);
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "the file changes faster than it can be read"))
}

/// All bytes of the file in this state; `None` if it changed while it was read.
fn read_whole(file: &File, state: &FileState) -> io::Result<Option<Box<[u8]>>> {
    let bytes = read(file, state.size())?;
    let unchanged = state.is_of(&file.metadata()?) && bytes.len() as u64 == state.size();
    Ok(unchanged.then(|| bytes.into()))
}

/// The first `length` bytes; fewer if the file has become shorter.
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
