//! Changes to files, made in batches and acknowledged only once they are on the disk.
//!
//! Complete uploads and deletions that arrive at the same time form a batch. The bytes of each file are synced before that,
//! by many writers at once, so that the file system's journal merges them. Each changed folder is synced once per batch.
//! While one batch is being synced, the next one gathers. Changes of a user whose usage file is held elsewhere wait for a later
//! batch, and hold up nobody else's.

use std::{
    collections::BTreeMap,
    fs::File,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Instant,
};

use engine::offload::Pool;
use folder::{Changed, FileState, Root, split};
use rustix::{
    fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
};

use crate::{
    access::permissions,
    refusal::Refusal,
    writing::{
        headers::Condition,
        staging::{Part, Staging},
        usage::{PATIENCE, RETRY, Usage},
    },
};

/// Maximum number of changes that wait. Beyond it, clients get 503.
const WAITING_MAX: usize = 16 * 1024;

/// A change to make.
#[derive(Debug)]
pub(crate) struct Change {
    /// The decoded path, without a slash at the end.
    pub(crate) path: String,
    /// The user whose usage it counts towards.
    pub(crate) owner: Option<String>,
    /// The condition for the change.
    pub(crate) condition: Condition,
    pub(crate) kind: Kind,
}

/// The kind of a change.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Move this part there.
    Put(Arc<Part>),
    /// Remove the file.
    Delete,
    /// Remove the folder if it is empty.
    DeleteFolder,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Whether there was a file before.
    pub(crate) replaced: bool,
    /// The entity tag of the new file.
    pub(crate) etag: Option<String>,
    /// Length of the new or removed file, bytes.
    pub(crate) bytes: u64,
}

/// Makes changes.
pub(crate) struct Changes {
    staging: Staging,
    started: u64,
    /// Maximum number of files and folders of one user.
    entries_max: u64,
    waiting: Mutex<Vec<Arc<Ticket>>>,
    thread: Pool,
}

struct Ticket {
    change: Change,
    outcome: Mutex<Option<Result<Outcome, Refusal>>>,
}

impl Changes {
    pub(crate) fn new(staging: Staging, started: u64, entries_max: u64) -> Self {
        let thread = Pool::new("files-change", 1, WAITING_MAX);
        Self { staging, started, entries_max, waiting: Mutex::default(), thread }
    }

    /// Makes a change and returns once it is on the disk.
    pub(crate) async fn make(self: &Arc<Self>, change: Change) -> Result<Outcome, Refusal> {
        let ticket = Arc::new(Ticket { change, outcome: Mutex::default() });
        let deadline = Instant::now() + PATIENCE;
        lock(&self.waiting).push(Arc::clone(&ticket));
        loop {
            let (changes, own) = (Arc::clone(self), Arc::clone(&ticket));
            match self.thread.run(move || changes.make_waiting_for(&own, deadline)).await {
                Ok(Some(outcome)) => return outcome,
                // Somebody holds its user's usage file.
                Ok(None) => {}
                Err(error) => {
                    self.withdraw(&ticket);
                    return Err(error.into());
                }
            }
        }
    }

    /// Makes the changes that wait, and returns the outcome of one. `None` if that one has to wait further.
    ///
    /// There is one thread, which works in order: the change is in this batch or was in an earlier one.
    fn make_waiting_for(&self, own: &Arc<Ticket>, deadline: Instant) -> Option<Result<Outcome, Refusal>> {
        let some_wait = self.make_waiting();
        let outcome = lock(&own.outcome).take();
        if outcome.is_none() && (!some_wait || Instant::now() >= deadline) {
            self.withdraw(own);
            return Some(Err(Refusal::Busy));
        }
        outcome
    }

    fn withdraw(&self, ticket: &Arc<Ticket>) {
        lock(&self.waiting).retain(|other| !Arc::ptr_eq(other, ticket));
    }

    /// Makes the changes that wait. Returns whether some have to wait further.
    fn make_waiting(&self) -> bool {
        let mut batch = std::mem::take(&mut *lock(&self.waiting));
        // Nobody is there any more to be told of the others.
        batch.retain(|ticket| Arc::strong_count(ticket) > 1);
        if batch.is_empty() {
            return false;
        }
        let is_made = self.make_batch(&batch);
        batch.retain(|ticket| lock(&ticket.outcome).is_none());
        let held = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let mut waiting = lock(&self.waiting);
        // Before those that came meanwhile: changes of a user are made in their order.
        batch.append(&mut waiting);
        *waiting = batch;
        drop(waiting);
        if !is_made {
            // Each of them asks again at once, and all together so often.
            thread::sleep(RETRY / held.max(1));
        }
        held > 0
    }

    /// Makes the changes of a batch, except those of users whose usage files somebody holds. Returns whether there were any.
    fn make_batch(&self, batch: &[Arc<Ticket>]) -> bool {
        let mut by_owner: BTreeMap<Option<&str>, Vec<&Ticket>> = BTreeMap::new();
        for ticket in batch {
            by_owner.entry(ticket.change.owner.as_deref()).or_default().push(ticket);
        }
        let mut changed = Changed::default();
        let mut made = Vec::with_capacity(batch.len());
        for (owner, tickets) in by_owner {
            self.make_of(owner, &tickets, &mut changed, &mut made);
        }
        if made.is_empty() {
            return false;
        }
        self.staging.0.changed();
        let synced = changed.sync();
        for (ticket, outcome) in made {
            let failed = |error: &std::io::Error| Refusal::System(std::io::Error::from(error.kind()));
            let outcome = outcome.and_then(|outcome| match &synced {
                Ok(()) => Ok(outcome),
                Err(error) => Err(failed(error)),
            });
            *lock(&ticket.outcome) = Some(outcome);
        }
        true
    }

    /// Makes the changes that count towards one user, unless somebody holds the usage file.
    fn make_of<'t>(
        &self,
        owner: Option<&str>,
        tickets: &[&'t Ticket],
        changed: &mut Changed,
        made: &mut Vec<(&'t Ticket, Result<Outcome, Refusal>)>,
    ) {
        let usage = Usage::open_unless_held(&self.staging, owner, self.started).and_then(|usage| {
            usage.map(|mut usage| usage.begin().map(|()| usage).map_err(Refusal::from)).transpose()
        });
        let mut usage = match usage {
            Ok(Some(usage)) => usage,
            Ok(None) => return,
            Err(refusal) => {
                let failed = |ticket: &&'t Ticket| (*ticket, Err(Refusal::Busy));
                tracing::error!(?refusal, "a usage file cannot be opened");
                made.extend(tickets.iter().map(failed));
                return;
            }
        };
        made.extend(
            tickets.iter().map(|ticket| (*ticket, self.make_one(&ticket.change, &mut usage, changed))),
        );
        if let Err(error) = usage.finish() {
            tracing::warn!(%error, "a usage file cannot be written; it will be rebuilt");
        }
    }

    fn make_one(
        &self,
        change: &Change,
        usage: &mut Usage<'_>,
        changed: &mut Changed,
    ) -> Result<Outcome, Refusal> {
        match &change.kind {
            Kind::Put(part) => self.put(change, part, usage, changed),
            Kind::Delete => self.delete(change, AtFlags::empty(), usage, changed),
            Kind::DeleteFolder => self.delete(change, AtFlags::REMOVEDIR, usage, changed),
        }
    }

    fn put(
        &self,
        change: &Change,
        part: &Part,
        usage: &mut Usage<'_>,
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
        let entries = u64::from(there.is_none()) + missing(root, above)?;
        usage.check_entries(entries, self.entries_max)?;
        let folder = root.folder_made(above, changed)?;
        renameat(&part.folder, part.id.as_str(), &folder, name)?;
        part.keep();
        changed.note(folder);
        let state = FileState::of(&part.file.metadata()?);
        let removed = there.as_ref().map_or(0, |there| there.bytes);
        usage.record_put(&part.id, (removed, state.size()), entries);
        Ok(Outcome { replaced: there.is_some(), etag: Some(state.etag()), bytes: state.size() })
    }

    fn delete(
        &self,
        change: &Change,
        how: AtFlags,
        usage: &mut Usage<'_>,
        changed: &mut Changed,
    ) -> Result<Outcome, Refusal> {
        let (above, name) = split(&change.path);
        let folder = self.staging.0.root().folder(above)?;
        let there = look(&folder, name)?.ok_or(Refusal::NotFound)?;
        if there.is_folder && how.is_empty() {
            return Err(Refusal::Conflict("this is a folder: end its name with a slash to remove it"));
        }
        change.condition.check((!there.is_folder).then_some(there.etag.as_str()))?;
        unlinkat(&folder, name, how)?;
        changed.note(folder);
        usage.record_deleted(there.bytes);
        Ok(Outcome { replaced: true, etag: None, bytes: there.bytes })
    }
}

/// How many folders a path lacks. The folder of a user itself does not count.
fn missing(root: &Root, path: &str) -> Result<u64, Errno> {
    let mut below = path;
    let mut lacking = 0;
    while !below.is_empty() && !permissions::is_users_folder(below) {
        match root.folder(below) {
            Ok(_) => break,
            Err(Errno::NOENT) => lacking += 1,
            Err(error) => return Err(error),
        }
        below = split(below).0;
    }
    Ok(lacking)
}

/// What exists at a path now.
struct Existing {
    is_folder: bool,
    etag: String,
    /// What counts towards the quota: the length of a file, 0 for anything else.
    bytes: u64,
}

fn look(folder: &OwnedFd, name: &str) -> Result<Option<Existing>, Refusal> {
    // Looks at a link itself.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let metadata = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        other => File::from(other?).metadata()?,
    };
    let state = FileState::of(&metadata);
    let bytes = if metadata.is_file() { state.size() } else { 0 };
    Ok(Some(Existing { is_folder: metadata.is_dir(), etag: state.etag(), bytes }))
}

/// Locks a mutex. Its contents are consistent at every step, so a panic of another thread does no harm.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use engine::block_on;

    use super::*;
    use crate::access::permissions::{OpenFiles, Permissions};

    /// Changes in an empty folder.
    fn changes(folder: &Path) -> Arc<Changes> {
        let root = Root::open(folder).unwrap();
        let files = OpenFiles::new(root, Permissions::default(), Duration::ZERO, 0);
        Arc::new(Changes::new(Staging(Arc::new(files)), 1, 1_000))
    }

    fn change(changes: &Arc<Changes>, path: &str, kind: Kind) -> Result<Outcome, Refusal> {
        let owner = permissions::owner(path).map(str::to_owned);
        let condition = Condition::default();
        block_on(changes.make(Change { path: path.to_owned(), owner, condition, kind }))
    }

    fn put(changes: &Arc<Changes>, path: &str) -> Result<Outcome, Refusal> {
        let part = changes.staging.create().unwrap();
        change(changes, path, Kind::Put(Arc::new(part)))
    }

    /// Long enough for a change to be tried, and tried again.
    fn a_moment() {
        thread::sleep(Duration::from_millis(50));
    }

    #[test]
    fn a_user_whose_usage_file_is_held_holds_up_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let changes = changes(folder.path());
        let held = Usage::open(&changes.staging, Some("ann"), 1).unwrap();
        thread::scope(|scope| {
            let hers = scope.spawn(|| put(&changes, "users/ann/a"));
            a_moment();
            let began = Instant::now();
            for name in ["a", "b", "c", "d", "e"] {
                put(&changes, &format!("users/bob/{name}")).unwrap();
            }
            let took = began.elapsed();
            drop(held);
            hers.join().unwrap().unwrap();
            assert!(took < PATIENCE / 2, "{took:?}");
        });
        let held = Usage::open(&changes.staging, Some("ann"), 1).unwrap();
        assert!(matches!(put(&changes, "users/ann/b"), Err(Refusal::Busy)), "but not forever");
        assert!(lock(&changes.waiting).is_empty(), "nor is it made after that");
        drop(held);
    }

    #[test]
    fn changes_that_had_to_wait_for_a_usage_file_are_made_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let changes = changes(folder.path());
        let held = Usage::open(&changes.staging, Some("ann"), 1).unwrap();
        thread::scope(|scope| {
            let first = scope.spawn(|| put(&changes, "users/ann/a"));
            a_moment();
            let second = scope.spawn(|| change(&changes, "users/ann/a", Kind::Delete));
            a_moment();
            drop(held);
            assert!(!first.join().unwrap().unwrap().replaced);
            second.join().unwrap().unwrap();
        });
        assert!(!folder.path().join("users/ann/a").exists());
    }
}
