//! One upload in progress: its part, the space reserved for it, and how it ends.

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

use crate::{
    access::permissions,
    refusal::Refusal,
    writing::{
        changes::{Change, Kind, Outcome},
        staging::{Arrived, Part, PartId, Record},
        uploads::Uploads,
        usage::Usage,
    },
};

/// Space reserved at a time for an upload of unknown length, bytes.
const RESERVE_STEP: u64 = 8 * 1024 * 1024;

/// An upload to start.
#[derive(Debug)]
pub(crate) struct NewUpload {
    /// Its record.
    pub(crate) record: Record,
    /// Whether it can be resumed.
    pub(crate) resumable: bool,
    /// The quota that applies, bytes.
    pub(crate) quota: Option<u64>,
}

/// An upload in progress. Removed when dropped, unless it can be resumed.
#[derive(Debug, Clone)]
pub(crate) struct Upload(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    part: Arc<Part>,
    record: Record,
    resumable: bool,
    budget: Option<Budget>,
}

/// Space reserved for an upload of a user.
#[derive(Debug)]
struct Budget {
    owner: String,
    quota: u64,
    reserved: AtomicU64,
}

impl Upload {
    /// Starts an upload. Refuses everything that can be known to fail.
    pub(super) async fn begin(uploads: &Arc<Uploads>, new: NewUpload) -> Result<Self, Refusal> {
        let shared = Arc::clone(uploads);
        uploads.run(move || Self::begin_blocking(&shared, new)).await
    }

    fn begin_blocking(uploads: &Uploads, new: NewUpload) -> Result<Self, Refusal> {
        uploads.sweep_if_due();
        check_condition(uploads, &new.record)?;
        let part = uploads.staging.create()?;
        check_space(uploads, &part, new.record.length.unwrap_or(0))?;
        let upload = Self::with(part, new.record, new.resumable, new.quota);
        upload.reserve(uploads, 0)?;
        if upload.0.resumable {
            if let Some(user) = upload.0.record.accountable() {
                Usage::open(&uploads.staging, Some(user), uploads.started)?.keep(&upload.0.part.id)?;
            }
            upload.record_of(uploads, 0).write(&upload.0.part.folder, &upload.0.part.id)?;
            upload.0.part.keep();
        }
        Ok(upload)
    }

    /// Resumes an upload.
    pub(super) async fn resume(
        uploads: &Arc<Uploads>,
        id: PartId,
        record: Record,
        quota: Option<u64>,
    ) -> Result<Self, Refusal> {
        let shared = Arc::clone(uploads);
        uploads.run(move || Self::resume_blocking(&shared, &id, record, quota)).await
    }

    fn resume_blocking(
        uploads: &Uploads,
        id: &PartId,
        record: Record,
        quota: Option<u64>,
    ) -> Result<Self, Refusal> {
        let part = match uploads.staging.reopen(id) {
            Ok(part) => part.ok_or(Refusal::NotFound)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Refusal::Locked),
            Err(error) => return Err(error.into()),
        };
        // Another request may have gone on since the record was read.
        let arrived = Record::read(&part.folder, id)?.map_or(record.arrived, |now| now.arrived);
        let record = Record { arrived, ..record };
        let received = record.arrived.of(part.file.metadata()?.len(), &uploads.boot);
        // Removes what a power failure may have left without its bytes, so that nobody takes it for them.
        part.file.set_len(received)?;
        check_space(uploads, &part, record.length.unwrap_or(received).saturating_sub(received))?;
        let synced = received.min(record.arrived.synced);
        let upload = Self::with(part, record, true, quota);
        upload.record_of(uploads, synced).write(&upload.0.part.folder, id)?;
        upload.reserve(uploads, received)?;
        Ok(upload)
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

    /// Whether it can be resumed.
    pub(crate) fn is_resumable(&self) -> bool {
        self.0.resumable
    }

    pub(crate) fn record(&self) -> &Record {
        &self.0.record
    }

    /// How much has arrived, bytes.
    pub(crate) fn received(&self) -> Result<u64, Refusal> {
        Ok(self.0.part.file.metadata()?.len())
    }

    /// Removes it even if it could be resumed.
    pub(crate) fn discard(&self) {
        self.0.part.discard();
    }

    /// Writes bytes at an offset on a thread that may block. Returns the buffer.
    pub(super) fn write(
        &self,
        uploads: &Arc<Uploads>,
        at: u64,
        bytes: Vec<u8>,
    ) -> engine::offload::Run<Result<Vec<u8>, Refusal>> {
        let (upload, shared) = (self.clone(), Arc::clone(uploads));
        uploads.writers.run(move || {
            let written = check_space(&shared, &upload.0.part, bytes.len() as u64)
                .and_then(|()| upload.reserve(&shared, at.saturating_add(bytes.len() as u64)))
                .and_then(|()| Ok(upload.0.part.file.write_all_at(&bytes, at)?));
            if let Err(Refusal::DiskFull | Refusal::Quota { .. }) = &written {
                // It cannot be finished, so it should not take space from uploads that can.
                upload.discard();
            }
            written.map(|()| bytes)
        })
    }

    /// Syncs the file. Returns how many bytes are on the disk.
    pub(super) async fn sync(&self, uploads: &Arc<Uploads>) -> Result<u64, Refusal> {
        let upload = self.clone();
        let sync = move || {
            upload.0.part.file.sync_data()?;
            upload.received()
        };
        uploads.run(sync).await
    }

    /// Returns once the upload can be resumed after so many bytes, which are on the disk, even after a power failure.
    pub(super) async fn secure(&self, uploads: &Arc<Uploads>, received: u64) -> Result<(), Refusal> {
        let (upload, shared) = (self.clone(), Arc::clone(uploads));
        let secure = move || {
            let part = &upload.0.part;
            Ok(shared.staging.secure(&part.folder, &part.id, &upload.record_of(&shared, received))?)
        };
        uploads.run(secure).await
    }

    /// Its record, once so many bytes are on the disk.
    fn record_of(&self, uploads: &Uploads, synced: u64) -> Record {
        Record { arrived: Arrived::synced(synced, &uploads.boot), ..self.0.record.clone() }
    }

    /// Moves the file to its place, once its bytes are on the disk.
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
            // It would be refused again.
            Err(Refusal::Precondition | Refusal::Conflict(_)) => self.discard(),
            _ => {}
        }
        outcome
    }

    /// Records that it is finished, for a client that lost the response.
    async fn note_done(&self, uploads: &Arc<Uploads>, bytes: u64) {
        let upload = self.clone();
        let record = Record { done: Some(bytes), ..self.0.record.clone() };
        let shared = Arc::clone(uploads);
        let noted = uploads.run(move || {
            record.write(&upload.0.part.folder, &upload.0.part.id)?;
            let Some(user) = record.accountable() else { return Ok(()) };
            Ok(Usage::open(&shared.staging, Some(user), shared.started)?.remember(&upload.0.part.id)?)
        });
        let noted = noted.await;
        if let Err(refusal) = noted {
            tracing::warn!(?refusal, "the end of an upload cannot be recorded");
        }
    }

    /// Reserves space for a length of `needed` bytes so far.
    fn reserve(&self, uploads: &Uploads, needed: u64) -> Result<(), Refusal> {
        let Some(budget) = &self.0.budget else { return Ok(()) };
        let needed = needed.max(self.0.record.length.unwrap_or(0));
        if needed <= budget.reserved.load(Relaxed) {
            return Ok(());
        }
        let mut usage = Usage::open(&uploads.staging, Some(&budget.owner), uploads.started)?;
        let ahead =
            if self.0.record.length.is_some() { needed } else { needed.next_multiple_of(RESERVE_STEP) };
        let (id, quota) = (&self.0.part.id, budget.quota);
        let reserved = match usage.reserve(id, ahead, quota) {
            Err(Refusal::Quota { .. }) => usage.reserve(id, needed, quota).map(|()| needed),
            other => other.map(|()| ahead),
        };
        budget.reserved.store(reserved?, Relaxed);
        Ok(())
    }
}

/// The record of an upload that can be resumed, and how much has arrived, bytes.
pub(super) async fn look(uploads: &Arc<Uploads>, id: PartId) -> Result<(Record, u64), Refusal> {
    let shared = Arc::clone(uploads);
    uploads.run(move || look_blocking(&shared, &id)).await
}

fn look_blocking(uploads: &Uploads, id: &PartId) -> Result<(Record, u64), Refusal> {
    let folder = uploads.staging.folder()?;
    let record = Record::read(&folder, id)?.ok_or(Refusal::NotFound)?;
    if let Some(bytes) = record.done {
        return Ok((record, bytes));
    }
    let length = statat(&folder, id.as_str(), AtFlags::SYMLINK_NOFOLLOW)?.st_size;
    let received = record.arrived.of(u64::try_from(length).unwrap_or(0), &uploads.boot);
    Ok((record, received))
}

/// Refuses early what would be refused once the upload is complete.
fn check_condition(uploads: &Uploads, record: &Record) -> Result<(), Refusal> {
    let existing = match uploads.staging.0.root().open_beneath(&record.path).map_err(FindError::Open) {
        Ok(Opened::File(_, identity)) => Some(identity.etag()),
        Ok(Opened::Directory) => return Err(Refusal::Conflict("there is a folder of this name")),
        Err(FindError::Open(OpenError::System(error))) => return Err(error.into()),
        Err(_) => None,
    };
    record.condition.check(existing.as_deref())
}

/// Refuses so many more bytes if the disk has no space for them beside what is kept free.
fn check_space(uploads: &Uploads, part: &Part, bytes: u64) -> Result<(), Refusal> {
    let disk = fstatvfs(&part.file)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let kept = uploads.settings.keep_free(disk.f_blocks.saturating_mul(disk.f_frsize));
    if bytes.saturating_add(kept) > free { Err(Refusal::DiskFull) } else { Ok(()) }
}
