//! Changes to the files: made one batch at a time, and told only once they are on the disk.
//!
//! Uploads that are whole at the same time, and deletions, are put in their places together. Each file's bytes are on the
//! disk before (their writers have seen to that, many at once, so that the file system's journal joins them); each folder
//! that was changed is synced once for all of a batch. While one batch is being synced the next one gathers.

use std::{
    collections::BTreeMap,
    fs::File,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
};

use engine::offload::Pool;
use folder::{Changed, FileState, split};
use rustix::{
    fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
};

use crate::writing::{
    condition::Condition,
    ledger::Book,
    refusal::Refusal,
    staging::{Part, Staging},
};

/// Most changes that wait; beyond them clients are told to come again.
const WAITING_MAX: usize = 16 * 1024;

/// What is to be changed.
#[derive(Debug)]
pub(crate) struct Change {
    /// Decoded, without a slash at its end.
    pub(crate) path: String,
    /// Whose book it is entered in.
    pub(crate) owner: Option<String>,
    /// What must hold.
    pub(crate) condition: Condition,
    pub(crate) kind: Kind,
}

/// How it is to be changed.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A file is put there.
    Put(Arc<Part>),
    /// The file is removed.
    Delete,
    /// The folder is removed, if it is empty.
    DeleteFolder,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Whether there was a file before.
    pub(crate) replaced: bool,
    /// Of the new file.
    pub(crate) etag: Option<String>,
    /// Length of the new file, or of the one removed, bytes.
    pub(crate) bytes: u64,
}

/// Makes the changes.
pub(crate) struct Changes {
    staging: Staging,
    started: u64,
    waiting: Mutex<Vec<Arc<Ticket>>>,
    thread: Pool,
}

struct Ticket {
    change: Change,
    outcome: Mutex<Option<Result<Outcome, Refusal>>>,
}

impl Changes {
    pub(crate) fn new(staging: Staging, started: u64) -> Self {
        let thread = Pool::new("files-change", 1, WAITING_MAX);
        Self { staging, started, waiting: Mutex::default(), thread }
    }

    /// Makes a change, and returns once it is on the disk.
    pub(crate) async fn make(self: &Arc<Self>, change: Change) -> Result<Outcome, Refusal> {
        let ticket = Arc::new(Ticket { change, outcome: Mutex::default() });
        lock(&self.waiting).push(Arc::clone(&ticket));
        let (changes, own) = (Arc::clone(self), Arc::clone(&ticket));
        // One thread, in order: when this runs, the change was made in an earlier batch or is in this one.
        let made = self.thread.run(move || {
            changes.make_waiting();
            lock(&own.outcome).take()
        });
        match made.await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(Refusal::Busy),
            Err(error) => {
                lock(&self.waiting).retain(|other| !Arc::ptr_eq(other, &ticket));
                Err(error.into())
            }
        }
    }

    fn make_waiting(&self) {
        let batch = std::mem::take(&mut *lock(&self.waiting));
        if batch.is_empty() {
            return;
        }
        let mut by_owner: BTreeMap<Option<&str>, Vec<&Ticket>> = BTreeMap::new();
        for ticket in &batch {
            by_owner.entry(ticket.change.owner.as_deref()).or_default().push(ticket);
        }
        let mut changed = Changed::default();
        let mut made = Vec::with_capacity(batch.len());
        for (owner, tickets) in by_owner {
            self.make_of(owner, &tickets, &mut changed, &mut made);
        }
        self.staging.0.changed();
        let synced = changed.sync();
        for (ticket, outcome) in made {
            let unsure = |error: &std::io::Error| Refusal::System(std::io::Error::from(error.kind()));
            let outcome = outcome.and_then(|outcome| match &synced {
                Ok(()) => Ok(outcome),
                Err(error) => Err(unsure(error)),
            });
            *lock(&ticket.outcome) = Some(outcome);
        }
    }

    /// Makes the changes entered in one book.
    fn make_of<'t>(
        &self,
        owner: Option<&str>,
        tickets: &[&'t Ticket],
        changed: &mut Changed,
        made: &mut Vec<(&'t Ticket, Result<Outcome, Refusal>)>,
    ) {
        let book = Book::open(&self.staging, owner, self.started)
            .and_then(|mut book| book.begin().map(|()| book).map_err(Refusal::from));
        let mut book = match book {
            Ok(book) => book,
            Err(refusal) => {
                let failed = |ticket: &&'t Ticket| (*ticket, Err(Refusal::Busy));
                tracing::error!(?refusal, "the book of uploads cannot be opened");
                made.extend(tickets.iter().map(failed));
                return;
            }
        };
        made.extend(
            tickets.iter().map(|ticket| (*ticket, self.make_one(&ticket.change, &mut book, changed))),
        );
        if let Err(error) = book.finish() {
            tracing::warn!(%error, "the book of uploads cannot be written; it will be made anew");
        }
    }

    fn make_one(
        &self,
        change: &Change,
        book: &mut Book<'_>,
        changed: &mut Changed,
    ) -> Result<Outcome, Refusal> {
        match &change.kind {
            Kind::Put(part) => self.put(change, part, book, changed),
            Kind::Delete => self.delete(change, AtFlags::empty(), book, changed),
            Kind::DeleteFolder => self.delete(change, AtFlags::REMOVEDIR, book, changed),
        }
    }

    fn put(
        &self,
        change: &Change,
        part: &Part,
        book: &mut Book<'_>,
        changed: &mut Changed,
    ) -> Result<Outcome, Refusal> {
        let (above, name) = split(&change.path);
        let root = self.staging.0.root();
        let there = match root.folder(above) {
            Ok(folder) => look(&folder, name)?,
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        if there.as_ref().is_some_and(|there| there.is_folder) {
            return Err(Errno::ISDIR.into());
        }
        change.condition.check(there.as_ref().map(|there| there.etag.as_str()))?;
        let folder = root.folder_made(above, changed)?;
        renameat(&part.folder, part.id.as_str(), &folder, name)?;
        part.keep();
        changed.note(above, folder);
        let state = FileState::of(&part.file.metadata()?);
        book.enter(Some(&part.id), there.as_ref().map_or(0, |there| there.bytes), state.size());
        Ok(Outcome { replaced: there.is_some(), etag: Some(state.etag()), bytes: state.size() })
    }

    fn delete(
        &self,
        change: &Change,
        how: AtFlags,
        book: &mut Book<'_>,
        changed: &mut Changed,
    ) -> Result<Outcome, Refusal> {
        let (above, name) = split(&change.path);
        let folder = self.staging.0.root().folder(above)?;
        let there = look(&folder, name)?.ok_or(Refusal::NotFound)?;
        if there.is_folder && how.is_empty() {
            return Err(Refusal::Conflict("this is a folder: end its name in a slash to remove it"));
        }
        change.condition.check((!there.is_folder).then_some(there.etag.as_str()))?;
        unlinkat(&folder, name, how)?;
        changed.note(above, folder);
        book.enter(None, there.bytes, 0);
        Ok(Outcome { replaced: true, etag: None, bytes: there.bytes })
    }
}

/// What is at a place now.
struct There {
    is_folder: bool,
    etag: String,
    /// As the book counts it: the length of a file, nothing for anything else.
    bytes: u64,
}

fn look(folder: &OwnedFd, name: &str) -> Result<Option<There>, Refusal> {
    // A link is looked at itself.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let metadata = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        other => File::from(other?).metadata()?,
    };
    let state = FileState::of(&metadata);
    let bytes = if metadata.is_file() { state.size() } else { 0 };
    Ok(Some(There { is_folder: metadata.is_dir(), etag: state.etag(), bytes }))
}

/// What is under the locks is whole at every step, so a thread that panicked has spoilt nothing.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
