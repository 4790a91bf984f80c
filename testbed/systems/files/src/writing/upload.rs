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
/// The part of the disk's inodes that is kept free: one in this many.
const INODES_KEPT_SHARE: u64 = 100;

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
        check_inodes(&part)?;
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
        let part = reopen(uploads, id)?;
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
            let room = check_space(&shared, &upload.0.part, bytes.len() as u64)
                .and_then(|()| upload.reserve(&shared, at.saturating_add(bytes.len() as u64)));
            if let Err(Refusal::DiskFull | Refusal::Quota { .. }) = &room {
                // It cannot be finished, so it should not take space from uploads that can.
                upload.discard();
            }
            room?;
            // Nobody knows what of it was written.
            upload.0.part.file.write_all_at(&bytes, at).inspect_err(|_| upload.discard())?;
            Ok(bytes)
        })
    }

    /// Syncs the file. Returns how many bytes are on the disk. Where that fails, the upload cannot be resumed: the kernel tells
    /// of a failure once, and would then sync the file without the bytes that were lost.
    pub(super) async fn sync(&self, uploads: &Arc<Uploads>) -> Result<u64, Refusal> {
        let upload = self.clone();
        let sync = move || {
            upload.0.part.file.sync_data().inspect_err(|_| upload.discard())?;
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

/// Removes an upload that can be resumed, also where the disk is too full to go on with it.
pub(super) async fn abandon(uploads: &Arc<Uploads>, id: PartId) -> Result<(), Refusal> {
    let shared = Arc::clone(uploads);
    let abandon = move || {
        reopen(&shared, &id)?.discard();
        Ok(())
    };
    uploads.run(abandon).await
}

fn reopen(uploads: &Uploads, id: &PartId) -> Result<Part, Refusal> {
    match uploads.staging.reopen(id) {
        Ok(part) => part.ok_or(Refusal::NotFound),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Refusal::Locked),
        Err(error) => Err(error.into()),
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
    let has_space = serve::has_space(&part.file, bytes, uploads.settings.keep_free_bytes)?;
    if has_space { Ok(()) } else { Err(Refusal::DiskFull) }
}

/// Refuses a new file if the disk has few inodes left.
fn check_inodes(part: &Part) -> Result<(), Refusal> {
    let disk = fstatvfs(&part.file)?;
    if lacks_inodes(disk.f_files, disk.f_favail) { Err(Refusal::DiskFull) } else { Ok(()) }
}

/// Whether so few inodes are free that new files are refused. File systems without a fixed number of them have 0 in all.
fn lacks_inodes(all: u64, free: u64) -> bool {
    free < all / INODES_KEPT_SHARE
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::Duration};

    use engine::block_on;
    use folder::Root;
    use rustix::fs::{Mode, OFlags, openat};

    use super::*;
    use crate::{
        access::permissions::{OpenFiles, Permissions},
        options::UploadOptions,
        writing::headers::Condition,
    };

    /// An upload that can be resumed, and whose file can be neither written nor synced.
    fn failing(uploads: &Uploads) -> Upload {
        let mut part = uploads.staging.create().unwrap();
        part.keep();
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        part.file = File::from(openat(&part.folder, part.id.as_str(), flags, Mode::empty()).unwrap());
        let record = Record::new("a".to_owned(), None, None, Condition::default());
        record.write(&part.folder, &part.id).unwrap();
        Upload::with(part, record, true, None)
    }

    #[test]
    fn an_upload_whose_bytes_may_be_lost_cannot_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let files = Arc::new(OpenFiles::new(root, Permissions::default(), Duration::ZERO, 0));
        let settings = UploadOptions { keep_free_bytes: Some(0), ..UploadOptions::default() };
        let uploads = Arc::new(Uploads::new(settings, &files).unwrap());
        let sync = |upload: &Upload| block_on(upload.sync(&uploads)).is_err();
        let write = |upload: &Upload| block_on(upload.write(&uploads, 0, vec![1])).unwrap().is_err();
        let is_gone_after = |fails: &dyn Fn(&Upload) -> bool| {
            let upload = failing(&uploads);
            let id = upload.id().clone();
            assert!(fails(&upload));
            drop(upload);
            let has_record = Record::exists(&uploads.staging.folder().unwrap(), &id);
            uploads.staging.reopen(&id).unwrap().is_none() && !has_record
        };
        assert!(is_gone_after(&sync), "it could not be synced");
        assert!(is_gone_after(&write), "it could not be written");
    }

    #[test]
    fn new_files_are_refused_before_the_last_inodes_are_taken() {
        assert!(lacks_inodes(1_000_000, 9_999) && !lacks_inodes(1_000_000, 10_000));
        assert!(!lacks_inodes(0, 0), "where they are not counted");
    }
}
