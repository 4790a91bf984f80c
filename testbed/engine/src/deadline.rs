//! Until when the calls of a connection wait.

use std::{cell::Cell, time::Duration};

use crate::{
    clock::{self, Micros, NEVER},
    service::Pace,
};

/// The deadline of a connection, which moves on while its peer keeps the pace.
#[derive(Debug)]
pub(crate) struct Deadline {
    at: Cell<Micros>,
    pace: Option<Pace>,
    /// Bytes sent since the deadline was set or moved on.
    sent: Cell<u64>,
}

impl Deadline {
    pub(crate) const fn none() -> Self {
        Self { at: Cell::new(NEVER), pace: None, sent: Cell::new(0) }
    }

    /// When a call fails.
    pub(crate) fn at(&self) -> Micros {
        self.at.get()
    }

    pub(crate) fn set(&mut self, after: Option<Duration>) {
        self.pace = None;
        self.at.set(after.map_or(NEVER, clock::deadline));
    }

    pub(crate) fn set_at(&mut self, at: Micros) {
        self.pace = None;
        self.at.set(at);
    }

    pub(crate) fn set_pace(&mut self, pace: Pace) {
        self.pace = Some(pace);
        self.sent.set(0);
        self.at.set(clock::deadline(pace.within));
    }

    /// Notes that the peer took bytes.
    pub(crate) fn note_sent(&self, bytes: u64) {
        let Some(pace) = self.pace else { return };
        self.sent.set(self.sent.get().saturating_add(bytes));
        if self.sent.get() >= pace.bytes {
            self.sent.set(0);
            self.at.set(clock::deadline(pace.within));
        }
    }

    /// How many bytes a call may send at most that does not return before it has sent them all.
    pub(crate) fn sent_at_most(&self) -> u64 {
        self.pace.map_or(u64::MAX, |pace| pace.bytes.max(1))
    }
}

/// How often at least a call returns within the time of a pace, so that bytes are noted soon after they were sent.
const CALLS_MIN: u32 = 8;

impl Deadline {
    /// How long a call may block at most.
    pub(crate) fn blocks_at_most(&self) -> Micros {
        self.pace.map_or(NEVER, |pace| clock::after(0, pace.within / CALLS_MIN).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_on_only_while_the_pace_is_kept() {
        let mut deadline = Deadline::none();
        assert_eq!((deadline.at(), deadline.sent_at_most()), (NEVER, u64::MAX));
        deadline.set_pace(Pace { bytes: 100, within: Duration::from_millis(500) });
        let first = deadline.at();
        std::thread::sleep(Duration::from_millis(2));
        deadline.note_sent(99);
        assert_eq!(deadline.at(), first);
        deadline.note_sent(1);
        let second = deadline.at();
        assert!(second > first);
        std::thread::sleep(Duration::from_millis(2));
        deadline.note_sent(99);
        assert_eq!(deadline.at(), second, "bytes count once");
        deadline.set(None);
        deadline.note_sent(1_000);
        assert_eq!(deadline.at(), NEVER);
    }
}
