//! An upload that was begun: its part, what was set aside for it, and how it ends.

use std::{
    io,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use folder::{FindError, OpenError, Opened};
use rustix::fs::{AtFlags, fstatvfs, statat};

use super::Uploads;
use crate::{
    access::permissions,
    writing::{
        changes::{Change, Kind, Outcome},
        ledger::Book,
        record::Record,
        refusal::Refusal,
        staging::{Part, PartId, Staging},
    },
};

/// What is set aside at a time for an upload whose length is not known, bytes.
const STEP: u64 = 8 * 1024 * 1024;

/// What is to be uploaded.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What its record holds.
    pub(crate) record: Record,
    /// Whether it can be resumed.
    pub(crate) resumable: bool,
    /// What the user may keep, bytes.
    pub(crate) quota: Option<u64>,
}

/// An upload that was begun. Dropped, it is gone, unless it is resumable.
#[derive(Debug, Clone)]
pub(crate) struct Begun(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    part: Arc<Part>,
    record: Record,
    resumable: bool,
    budget: Option<Budget>,
}

/// What was set aside for an upload in its owner's book.
#[derive(Debug)]
struct Budget {
    owner: String,
    quota: u64,
    reserved: AtomicU64,
}

impl Begun {
    /// Begins an upload.
    pub(super) fn new(uploads: &Uploads, plan: Plan) -> Result<Self, Refusal> {
        uploads.sweep_now_and_then();
        check_place(uploads, &plan.record)?;
        let part = uploads.staging.create()?;
        check_room(&part, plan.record.length.unwrap_or(0))?;
        let begun = Self::with(part, plan.record, plan.resumable, plan.quota);
        begun.reserve(uploads, 0)?;
        if begun.0.resumable {
            begun.0.record.write(&begun.0.part.folder, &begun.0.part.id)?;
            begun.0.part.keep();
        }
        Ok(begun)
    }

    /// Takes up an upload that was begun before.
    pub(super) fn again(
        uploads: &Uploads,
        id: &PartId,
        record: Record,
        quota: Option<u64>,
    ) -> Result<Self, Refusal> {
        let part = match uploads.staging.take_up(id) {
            Ok(part) => part.ok_or(Refusal::NotFound)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Refusal::Locked),
            Err(error) => return Err(error.into()),
        };
        let came = part.file.metadata()?.len();
        check_room(&part, record.length.unwrap_or(came).saturating_sub(came))?;
        record.write(&part.folder, id)?;
        let begun = Self::with(part, record, true, quota);
        begun.reserve(uploads, came)?;
        Ok(begun)
    }

    fn with(part: Part, record: Record, resumable: bool, quota: Option<u64>) -> Self {
        let owner = permissions::owner(&record.path).map(str::to_owned);
        let budget =
            owner.zip(quota).map(|(owner, quota)| Budget { owner, quota, reserved: AtomicU64::new(0) });
        Self(Arc::new(Inner { part: Arc::new(part), record, resumable, budget }))
    }

    pub(crate) fn id(&self) -> &PartId {
        &self.0.part.id
    }

    /// Whether it can be taken up again.
    pub(crate) fn is_resumable(&self) -> bool {
        self.0.resumable
    }

    pub(crate) fn record(&self) -> &Record {
        &self.0.record
    }

    /// How far it has come, bytes.
    pub(crate) fn came(&self) -> Result<u64, Refusal> {
        Ok(self.0.part.file.metadata()?.len())
    }

    /// Removes it, though it could be resumed.
    pub(crate) fn discard(&self) {
        self.0.part.discard();
    }

    /// Writes bytes at their place, on a thread that may wait, and gives the buffer back.
    pub(super) fn write(
        &self,
        uploads: &Arc<Uploads>,
        at: u64,
        bytes: Vec<u8>,
    ) -> engine::offload::Run<Result<Vec<u8>, Refusal>> {
        let (begun, uploads_too) = (self.clone(), Arc::clone(uploads));
        uploads.writers.run(move || {
            let written = begun
                .reserve(&uploads_too, at.saturating_add(bytes.len() as u64))
                .and_then(|()| Ok(begun.0.part.file.write_all_at(&bytes, at)?));
            if let Err(Refusal::DiskFull | Refusal::Quota { .. }) = &written {
                // What cannot be finished should not take the room of what can.
                begun.discard();
            }
            written.map(|()| bytes)
        })
    }

    /// Returns once all its bytes are on the disk; tells how many.
    pub(super) async fn sync(&self, uploads: &Arc<Uploads>) -> Result<u64, Refusal> {
        let begun = self.clone();
        let synced = move || {
            begun.0.part.file.sync_data()?;
            begun.came()
        };
        uploads.run(synced).await
    }

    /// Puts the file, whose bytes are on the disk, in its place.
    pub(crate) async fn finish(&self, uploads: &Arc<Uploads>) -> Result<Outcome, Refusal> {
        let record = &self.0.record;
        let outcome = uploads
            .change(Change {
                path: record.path.clone(),
                owner: permissions::owner(&record.path).map(str::to_owned),
                condition: record.condition.clone(),
                kind: Kind::Put(Arc::clone(&self.0.part)),
            })
            .await;
        match &outcome {
            Ok(outcome) if self.0.resumable => self.note_done(uploads, outcome.bytes).await,
            // Asked again it would be refused again.
            Err(Refusal::Precondition | Refusal::Conflict(_)) => self.discard(),
            _ => {}
        }
        outcome
    }

    /// Notes that it is finished, for a client that lost the answer.
    async fn note_done(&self, uploads: &Arc<Uploads>, bytes: u64) {
        let begun = self.clone();
        let record = Record { done: Some(bytes), ..self.0.record.clone() };
        let noted = uploads.run(move || Ok(record.write(&begun.0.part.folder, &begun.0.part.id)?)).await;
        if let Err(refusal) = noted {
            tracing::warn!(?refusal, "the end of an upload cannot be noted");
        }
    }

    /// Sets aside what is needed for a length of `needed` so far.
    fn reserve(&self, uploads: &Uploads, needed: u64) -> Result<(), Refusal> {
        let Some(budget) = &self.0.budget else { return Ok(()) };
        let needed = needed.max(self.0.record.length.unwrap_or(0));
        if needed <= budget.reserved.load(Relaxed) {
            return Ok(());
        }
        let mut book = Book::open(&uploads.staging, Some(&budget.owner), uploads.started)?;
        let ahead = if self.0.record.length.is_some() { needed } else { needed.next_multiple_of(STEP) };
        let (id, quota) = (&self.0.part.id, budget.quota);
        let reserved = match book.reserve(id, ahead, quota) {
            Err(Refusal::Quota { .. }) => book.reserve(id, needed, quota).map(|()| needed),
            other => other.map(|()| ahead),
        };
        budget.reserved.store(reserved?, Relaxed);
        Ok(())
    }
}

/// What is known of an upload that can be resumed, and how far it came.
pub(super) fn look(staging: &Staging, id: &PartId) -> Result<(Record, u64), Refusal> {
    let folder = staging.folder()?;
    let record = Record::read(&folder, id)?.ok_or(Refusal::NotFound)?;
    if let Some(bytes) = record.done {
        return Ok((record, bytes));
    }
    let came = statat(&folder, id.as_str(), AtFlags::SYMLINK_NOFOLLOW)?.st_size;
    Ok((record, u64::try_from(came).unwrap_or(0)))
}

/// Refuses early what would be refused when the file is whole.
fn check_place(uploads: &Uploads, record: &Record) -> Result<(), Refusal> {
    let there = match uploads.staging.0.root().open_beneath(&record.path).map_err(FindError::Open) {
        Ok(Opened::File(_, identity)) => Some(identity.etag()),
        Ok(Opened::Directory) => return Err(Refusal::Conflict("there is a folder of this name")),
        Err(FindError::Open(OpenError::System(error))) => return Err(error.into()),
        Err(_) => None,
    };
    record.condition.check(there.as_deref())
}

/// Refuses what the disk has no room for.
fn check_room(part: &Part, bytes: u64) -> Result<(), Refusal> {
    let disk = fstatvfs(&part.file)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if bytes > free { Err(Refusal::DiskFull) } else { Ok(()) }
}
