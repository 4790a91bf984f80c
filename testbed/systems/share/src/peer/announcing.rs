//! Keeps the index up to date with the catalogue.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use super::shared::SharedFolder;
use crate::{
    entry::Entry,
    interfaces::{Index, IndexError},
};

/// Changes within this time are announced together.
const GATHER: Duration = Duration::from_millis(30);
/// First and longest back-off while the index is unavailable.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// Files per request.
const BATCH: usize = 1000;

/// Registers the catalogue's files in the index.
pub(crate) struct Announcer {
    pub(crate) index: Arc<dyn Index>,
    pub(crate) shared: Arc<SharedFolder>,
    pub(crate) stopping: Arc<AtomicBool>,
}

/// What has been announced to the index.
#[derive(Debug, Default)]
struct Announced {
    /// Whether the index knows this peer, and nothing from an earlier run.
    joined: bool,
    entries: HashSet<Entry>,
    renewed: Option<Instant>,
}

impl Announcer {
    /// Runs until the peer stops, and then deregisters everything.
    pub(crate) fn run(&self) {
        let (mut announced, mut version, mut back_off, mut unavailable) =
            (Announced::default(), 0, BACK_OFF.0, false);
        while !self.stopping.load(SeqCst) {
            let wait = match self.announce(&mut announced) {
                Ok(()) => {
                    if std::mem::take(&mut unavailable) {
                        tracing::warn!("the index is back; this peer's files are registered");
                    }
                    back_off = BACK_OFF.0;
                    self.index.renew_interval()
                }
                Err(IndexError::Forgotten { .. }) => {
                    announced = Announced::default();
                    Duration::ZERO
                }
                Err(error) => {
                    if !std::mem::replace(&mut unavailable, true) {
                        tracing::warn!(
                            "{error}; trying again, and sharing meanwhile with peers that know this one"
                        );
                    }
                    thread::sleep(back_off);
                    back_off = (back_off * 2).min(BACK_OFF.1);
                    Duration::ZERO
                }
            };
            version = self.shared.catalogue.wait_for_change(version, wait);
            thread::sleep(GATHER);
        }
        if announced.joined
            && let Err(error) = self.index.leave()
        {
            tracing::debug!(%error, "the index was not told that this peer leaves; its files expire there");
        }
    }

    /// Announces what has changed, and renews the rest when it is due.
    fn announce(&self, announced: &mut Announced) -> Result<(), IndexError> {
        let now = self.shared.catalogue.entries();
        if !announced.joined {
            // Files from an earlier run of this peer may no longer exist.
            self.index.leave()?;
            self.index.register(&[])?;
            announced.joined = true;
        }
        let gone: Vec<_> = announced.entries.difference(&now).cloned().collect();
        for batch in gone.chunks(BATCH) {
            self.index.deregister(batch)?;
            for entry in batch {
                announced.entries.remove(entry);
            }
            announced.renewed = Some(Instant::now());
        }
        let new: Vec<_> = now.difference(&announced.entries).cloned().collect();
        for batch in new.chunks(BATCH) {
            self.index.register(batch)?;
            announced.entries.extend(batch.iter().cloned());
            announced.renewed = Some(Instant::now());
        }
        if announced.renewed.is_none_or(|at| at.elapsed() >= self.index.renew_interval()) {
            self.index.renew()?;
            announced.renewed = Some(Instant::now());
        }
        Ok(())
    }
}
