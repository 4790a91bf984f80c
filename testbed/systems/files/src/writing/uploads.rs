//! What all uploads of a process share.
//!
//! Uploads can be resumed as in draft-ietf-httpbis-resumable-upload: a client that sends `Upload-Complete` gets the location
//! of its upload (`Location`), asks there how much has arrived (`HEAD`), and continues there (`PATCH`).

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use engine::offload::Pool;

use crate::{
    access::{identity::Caller, permissions::OpenFiles},
    options::{UploadOptions, Uploaders},
    refusal::Refusal,
    writing::{
        changes::{Change, Changes, Outcome},
        staging::{self, Staging},
        usage::Usage,
    },
};

/// Threads that write to the disk. They mostly wait.
const WRITERS: usize = 16;
/// Maximum number of pieces that wait to be written. Each belongs to another upload.
const WAITING_MAX: usize = 16 * 1024;
/// Minimum time between two removals of leftovers.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// What the workers of a process share for uploads.
pub(crate) struct Uploads {
    pub(crate) settings: UploadOptions,
    pub(super) staging: Staging,
    changes: Arc<Changes>,
    pub(super) writers: Pool,
    /// Identifies this start of the server.
    pub(super) started: u64,
    /// Identifies this start of the machine.
    pub(super) boot: String,
    swept: Mutex<Instant>,
}

impl Uploads {
    /// Removes what an earlier server left over.
    pub(crate) fn new(settings: UploadOptions, files: &Arc<OpenFiles>) -> io::Result<Self> {
        let staging = Staging(Arc::clone(files));
        let mut started = [0; 8];
        getrandom::fill(&mut started).map_err(io::Error::other)?;
        // Zero stands for usage that was never counted.
        let started = u64::from_ne_bytes(started) | 1;
        if let Err(error) = staging.sweep(settings.life) {
            tracing::warn!(%error, "leftovers of uploads cannot be removed");
        }
        let changes = Arc::new(Changes::new(staging.clone(), started, settings.entries_max));
        let writers = Pool::new("files-write", WRITERS, WAITING_MAX);
        let (boot, swept) = (staging::boot(), Mutex::new(Instant::now()));
        Ok(Self { settings, staging, changes, writers, started, boot, swept })
    }

    /// Makes a change and returns once it is on the disk.
    pub(crate) async fn change(&self, change: Change) -> Result<Outcome, Refusal> {
        self.changes.make(change).await
    }

    /// Space that a user takes, including uploads in progress, bytes.
    pub(crate) async fn used(self: &Arc<Self>, owner: String) -> Result<u64, Refusal> {
        let uploads = Arc::clone(self);
        self.run(move || Ok(Usage::open(&uploads.staging, Some(&owner), uploads.started)?.used())).await
    }

    /// Whether a caller may upload at all.
    pub(crate) fn accepts_from(&self, caller: &Caller) -> bool {
        match (self.settings.of, caller) {
            (Uploaders::Nobody, _) | (Uploaders::Users, Caller::Anyone) => false,
            (Uploaders::Users | Uploaders::Everybody, _) => true,
        }
    }

    /// Runs a job that may wait for the disk on a thread that may block.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.writers.run(job).await?
    }

    /// Removes leftovers, unless that was done recently.
    pub(super) fn sweep_if_due(&self) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.elapsed() < SWEEP_EVERY.min(self.settings.life) {
            return;
        }
        *swept = Instant::now();
        drop(swept);
        if let Err(error) = self.staging.sweep(self.settings.life) {
            tracing::warn!(%error, "leftovers of uploads cannot be removed");
        }
    }
}
