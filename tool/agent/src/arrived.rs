//! What a generator sent, until somebody takes it.

use std::collections::VecDeque;

use analysis::ticks::Tick;
use load::{RequestTotal, SLICE_US};

use crate::allowance::Exceeded;
use crate::protocol::{OwnUse, Prepared, Report, Started, in_one_line};

/// Slices may come this much faster than time passes, in all: those that waited at the far end.
const SLICES_AHEAD: u64 = 1_500;

/// The most that waits to be taken, as it came: minutes of large slices.
const WAITING_BYTES_MAX: usize = 32 << 20;

/// The longest reason for a failure that is shown.
const REASON_CHARS_MAX: usize = 400;

/// What came and was not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) prepared: Option<Prepared>,
    pub(crate) started: Option<Started>,
    pub(crate) totals: Option<Vec<RequestTotal>>,
    /// How full what its host gives it was at worst.
    pub(crate) own_use: OwnUse,
    /// Why it can make no load, or not any longer.
    pub(crate) failed: Option<String>,
    /// The number of what began last, and when by the far clock, microseconds.
    pub(crate) begun: Option<(u64, u64)>,
    /// The number of what finished last by itself, and when.
    pub(crate) finished: Option<(u64, u64)>,
    ticks: VecDeque<(u64, Tick)>,
    waiting_bytes: usize,
    slices: u64,
}

impl Arrived {
    /// Takes a report of so many bytes, this long after the stream began; gives it back if it is not about a load.
    pub(crate) fn add(
        &mut self,
        report: Report,
        bytes: usize,
        after_us: u64,
    ) -> Result<Option<Report>, Exceeded> {
        match report {
            Report::Prepared(prepared) => self.prepared = Some(prepared),
            Report::Started(started) => self.started = Some(started),
            Report::Begun(number, at_us) => self.begun = Some((number, at_us)),
            Report::Tick(number, tick) => {
                return self.add_tick(number, *tick, bytes, after_us).map(|()| None);
            }
            Report::Finished(number, at_us) => self.finished = Some((number, at_us)),
            Report::Totals(totals) => self.totals = Some(totals),
            Report::OwnUse(own) => self.own_use = std::mem::take(&mut self.own_use).fuller(own.believed()),
            Report::Failed(reason) => self.failed = Some(in_one_line(&reason, REASON_CHARS_MAX)),
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    fn add_tick(&mut self, number: u64, tick: Tick, bytes: usize, after_us: u64) -> Result<(), Exceeded> {
        self.slices += 1;
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        if self.slices > SLICES_AHEAD + after_us / SLICE_US || self.waiting_bytes > WAITING_BYTES_MAX {
            return Err(Exceeded);
        }
        self.ticks.push_back((number, tick));
        Ok(())
    }

    /// Takes all slices that came, each with the number of what it belongs to.
    pub(crate) fn take_ticks(&mut self) -> VecDeque<(u64, Tick)> {
        self.waiting_bytes = 0;
        std::mem::take(&mut self.ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OwnQuota;

    fn tick(number: u64) -> Report {
        Report::Tick(number, Box::default())
    }

    #[test]
    fn slices_wait_until_they_are_taken() {
        let mut arrived = Arrived::default();
        assert_eq!(arrived.add(tick(1), 9, 0), Ok(None));
        assert_eq!(arrived.add(tick(2), 9, 0), Ok(None));
        assert_eq!(arrived.take_ticks().into_iter().map(|(number, _)| number).collect::<Vec<_>>(), [1, 2]);
        assert!(arrived.take_ticks().is_empty());
        assert_eq!(arrived.add(Report::LeftOut(1), 9, 0), Ok(Some(Report::LeftOut(1))), "not about a load");
    }

    #[test]
    fn more_slices_than_time_has_is_too_much_and_so_are_too_many_bytes() {
        let mut flood = Arrived::default();
        let taken = (0..1_000_000).take_while(|_| {
            let added = flood.add(tick(1), 9, 2_000_000).is_ok();
            flood.take_ticks();
            added
        });
        assert_eq!(taken.count() as u64, SLICES_AHEAD + 100);
        let mut large = Arrived::default();
        let taken = (0..1_000).take_while(|_| large.add(tick(1), 1 << 20, 0).is_ok());
        assert_eq!(taken.count(), 32);
        let mut hour = Arrived::default();
        let honest = (0..180_000u64).all(|slice| {
            let added = hour.add(tick(1), 10_000, slice * SLICE_US).is_ok();
            hour.take_ticks();
            added
        });
        assert!(honest, "an hour of large slices");
    }

    #[test]
    fn of_what_its_host_gives_a_generator_the_fullest_is_kept() {
        let quota = |stopped| OwnUse { quota: Some(OwnQuota { cores: 2.0, stopped }), link: None };
        let mut arrived = Arrived::default();
        for stopped in [0.1, 0.4, f64::NAN, 0.2] {
            assert_eq!(arrived.add(Report::OwnUse(quota(stopped)), 9, 0), Ok(None));
        }
        assert_eq!(arrived.own_use, quota(0.4));
    }

    #[test]
    fn what_is_said_of_a_failure_is_made_fit_to_be_shown() {
        let mut arrived = Arrived::default();
        arrived.add(Report::Failed(format!("a\n\x1b[31m{}", "x".repeat(9_999))), 9, 0).unwrap();
        let shown = arrived.failed.unwrap();
        assert!(shown.starts_with("a  [31mxx") && shown.chars().count() == REASON_CHARS_MAX, "{shown}");
    }
}
