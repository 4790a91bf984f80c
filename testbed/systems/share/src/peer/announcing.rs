//! Tells the index what the catalogue holds, and goes on telling it.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use super::sharing::Sharing;
use crate::seam::{Entry, Index, IndexError};

/// Changes within so long are told together.
const GATHER: Duration = Duration::from_millis(30);
/// First and longest pause while the index is away.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// Files told in one request.
const BATCH: usize = 1000;

/// Keeps the index as the catalogue is.
pub(crate) struct Announcer {
    pub(crate) index: Arc<dyn Index>,
    pub(crate) sharing: Arc<Sharing>,
    pub(crate) stopping: Arc<AtomicBool>,
}

/// What the index knows of this peer.
#[derive(Debug, Default)]
struct Told {
    /// Whether it knows this peer at all, and nothing of it from before.
    joined: bool,
    entries: HashSet<Entry>,
    renewed: Option<Instant>,
}

impl Announcer {
    /// Until the peer stops: then everything is taken back.
    pub(crate) fn run(&self) {
        let (mut told, mut version, mut pause, mut away) = (Told::default(), 0, PAUSES.0, false);
        while !self.stopping.load(SeqCst) {
            let wait = match self.announce(&mut told) {
                Ok(()) => {
                    if std::mem::take(&mut away) {
                        tracing::warn!("the index is back; this peer's files are registered");
                    }
                    pause = PAUSES.0;
                    self.index.renew_every()
                }
                Err(IndexError::Forgotten { .. }) => {
                    told = Told::default();
                    Duration::ZERO
                }
                Err(error) => {
                    if !std::mem::replace(&mut away, true) {
                        tracing::warn!(
                            "{error}; trying again, and sharing meanwhile with those who know this peer"
                        );
                    }
                    thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES.1);
                    Duration::ZERO
                }
            };
            version = self.sharing.catalogue.await_change(version, wait);
            thread::sleep(GATHER);
        }
        if told.joined
            && let Err(error) = self.index.leave()
        {
            tracing::debug!(%error, "the index was not told that this peer leaves; its files expire there");
        }
    }

    /// Tells what has changed, and renews the rest when it is time.
    fn announce(&self, told: &mut Told) -> Result<(), IndexError> {
        let now = self.sharing.catalogue.entries();
        if !told.joined {
            // What an earlier life of this peer registered may no longer be there.
            self.index.leave()?;
            self.index.register(&[])?;
            told.joined = true;
        }
        let gone: Vec<_> = told.entries.difference(&now).cloned().collect();
        for batch in gone.chunks(BATCH) {
            self.index.deregister(batch)?;
            for entry in batch {
                told.entries.remove(entry);
            }
            told.renewed = Some(Instant::now());
        }
        let new: Vec<_> = now.difference(&told.entries).cloned().collect();
        for batch in new.chunks(BATCH) {
            self.index.register(batch)?;
            told.entries.extend(batch.iter().cloned());
            told.renewed = Some(Instant::now());
        }
        if told.renewed.is_none_or(|at| at.elapsed() >= self.index.renew_every()) {
            self.index.renew()?;
            told.renewed = Some(Instant::now());
        }
        Ok(())
    }
}
