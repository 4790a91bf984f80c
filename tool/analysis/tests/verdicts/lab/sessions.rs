//! What the sessions of a database do.

use analysis::counters::DatabaseSample;

use super::STEP_US;

/// The sessions of a database that is watched.
#[derive(Clone, Copy)]
pub(in super::super) struct Sessions {
    /// The most that the server opens.
    pub(in super::super) most: u32,
    /// How many of those at work get on at a time; the others wait for a lock.
    pub(in super::super) get_on: u32,
    /// Waiting whatever the load, for somebody else's locks.
    pub(in super::super) others: u32,
    /// Whether the database adds up the time of waits.
    pub(in super::super) counts: bool,
}

impl Default for Sessions {
    /// Sixteen, none of which waits.
    fn default() -> Self {
        Self { most: 16, get_on: 16, others: 0, counts: true }
    }
}

/// What a database says five times a second while so many users ask for it.
pub(super) fn asked(sessions: Sessions, start: u64, users: u32) -> Vec<DatabaseSample> {
    let at_work = users.min(sessions.most);
    let waiting = u64::from(at_work.saturating_sub(sessions.get_on) + sessions.others);
    let sample = |number: u64| DatabaseSample {
        at_us: start + number * 200_000,
        waiting,
        at_work: u64::from(at_work + sessions.others),
        waited_us: sessions.counts.then_some(7_000_000 + number * 200_000 * waiting),
    };
    (0..=STEP_US / 200_000).map(sample).collect()
}
