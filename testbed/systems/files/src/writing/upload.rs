//! Uploads: what a request brings is taken in beside the files, and put in its place when it is whole.
//!
//! Resumable as the IETF's draft-ietf-httpbis-resumable-upload has it: a client that names `Upload-Complete` is told where
//! its upload lies (`Location`), asks there how far it came (`HEAD`), and goes on there (`PATCH`).

mod begun;
mod fields;
mod receiving;

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use engine::offload::Pool;

pub(crate) use self::{
    begun::{Begun, Plan},
    fields::Fields,
};
use crate::{
    access::caller::Caller,
    options::{Uploaders, Uploads as Settings},
    reading::OpenFiles,
    writing::{
        changes::{Change, Changes, Outcome},
        ledger::Book,
        record::Record,
        refusal::Refusal,
        staging::{PartId, Staging},
    },
};

/// Threads that write to the disk. They wait for it more than they compute.
const WRITERS: usize = 16;
/// Most pieces that wait to be written; each belongs to another upload.
const WAITING_MAX: usize = 16 * 1024;
/// Left-overs are looked for no more often than this.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// What the workers of a process share to take files in.
pub(crate) struct Uploads {
    pub(crate) settings: Settings,
    staging: Staging,
    changes: Arc<Changes>,
    writers: Pool,
    /// Tells this start of the server from others.
    started: u64,
    swept: Mutex<Instant>,
}

impl Uploads {
    /// Sweeps away what an earlier server left over.
    pub(crate) fn new(settings: Settings, files: &Arc<OpenFiles>) -> io::Result<Self> {
        let staging = Staging(Arc::clone(files));
        let mut started = [0; 8];
        getrandom::fill(&mut started).map_err(io::Error::other)?;
        // Zero is that of a book nobody has counted.
        let started = u64::from_ne_bytes(started) | 1;
        if let Err(error) = staging.sweep(settings.life) {
            tracing::warn!(%error, "what is left over of uploads cannot be removed");
        }
        let changes = Arc::new(Changes::new(staging.clone(), started));
        let writers = Pool::new("files-write", WRITERS, WAITING_MAX);
        Ok(Self { settings, staging, changes, writers, started, swept: Mutex::new(Instant::now()) })
    }

    /// Begins an upload: everything that can be known beforehand is refused here.
    pub(crate) async fn begin(self: &Arc<Self>, plan: Plan) -> Result<Begun, Refusal> {
        let uploads = Arc::clone(self);
        self.run(move || Begun::new(&uploads, plan)).await
    }

    /// Takes up an upload that was begun before.
    pub(crate) async fn take_up(
        self: &Arc<Self>,
        id: PartId,
        record: Record,
        quota: Option<u64>,
    ) -> Result<Begun, Refusal> {
        let uploads = Arc::clone(self);
        self.run(move || Begun::again(&uploads, &id, record, quota)).await
    }

    /// What is known of an upload that can be resumed, and how far it came, bytes.
    pub(crate) async fn look(self: &Arc<Self>, id: PartId) -> Result<(Record, u64), Refusal> {
        let uploads = Arc::clone(self);
        self.run(move || begun::look(&uploads.staging, &id)).await
    }

    /// Puts a change where it belongs, and returns once it is on the disk.
    pub(crate) async fn change(&self, change: Change) -> Result<Outcome, Refusal> {
        self.changes.make(change).await
    }

    /// What a user keeps, uploads under way included, bytes.
    pub(crate) async fn used(self: &Arc<Self>, owner: String) -> Result<u64, Refusal> {
        let uploads = Arc::clone(self);
        self.run(move || Ok(Book::open(&uploads.staging, Some(&owner), uploads.started)?.used())).await
    }

    /// Whether uploads of somebody are taken at all.
    pub(crate) fn takes_from(&self, caller: &Caller) -> bool {
        match (self.settings.of, caller) {
            (Uploaders::Nobody, _) | (Uploaders::Users, Caller::Anyone) => false,
            (Uploaders::Users | Uploaders::Everybody, _) => true,
        }
    }

    /// Runs what may wait for the disk on a thread that may wait.
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.writers.run(job).await?
    }

    /// Sweeps left-overs away if that was not done lately.
    fn sweep_now_and_then(&self) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.elapsed() < SWEEP_EVERY.min(self.settings.life) {
            return;
        }
        *swept = Instant::now();
        drop(swept);
        if let Err(error) = self.staging.sweep(self.settings.life) {
            tracing::warn!(%error, "what is left over of uploads cannot be removed");
        }
    }
}
