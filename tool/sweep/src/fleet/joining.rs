//! Slices of several generators joined into ticks of one clock.
//!
//! Each generator cuts its time into slices by its own clock. A slice belongs to the nearest one of ours, and stays as far
//! from it as it was when what is measured began: slices of one generator then are in a row here as they are there, and none
//! is counted twice or lost. They lie half a slice beside ours at most.

use std::collections::VecDeque;
use std::sync::Arc;

use analysis::run::GeneratorLoss;
use analysis::ticks::{Counts, KINDS_APART, Tick};
use load::{Part, SLICE_US, joined};

/// What would lie so much later than now, or so much before what is measured began, microseconds, is made up.
pub(super) const ASTRAY_US: u64 = 1_000_000;

/// The most kinds of request in a slice: those that are told apart, and all others together.
const KINDS_MAX: usize = KINDS_APART as usize + 1;

/// The most values of response times that wait for the slices of other generators: as many as may wait at an agent's stream, which
/// takes 192 MiB once they are unpacked.
const WAITING_VALUES_MAX: usize = 12 << 20;

/// The slices of one generator since something began.
#[derive(Debug, Default)]
pub(super) struct Slices {
    /// When that was, by our clock.
    from_us: u64,
    /// With their numbers by our clock, ascending without gaps.
    waiting: VecDeque<(u64, Tick)>,
    /// How many values of response times they have.
    waiting_values: usize,
    /// Number here less number there, and the number there that comes next.
    place: Option<(i64, u64)>,
}

/// Why a slice was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// No generator sends it.
    MadeUp,
    /// More would wait than may.
    TooMany,
}

impl From<Refused> for GeneratorLoss {
    fn from(why: Refused) -> Self {
        match why {
            Refused::MadeUp => Self::Malformed,
            Refused::TooMany => Self::Flooded,
        }
    }
}

impl Slices {
    /// Those of what begins then by our clock.
    pub(super) fn since(from_us: u64) -> Self {
        Self { from_us, ..Self::default() }
    }

    /// Adds a slice. `near_us` is its start by our clock, as well as that is known.
    pub(super) fn add(&mut self, tick: Tick, near_us: u64, now_us: u64) -> Result<(), Refused> {
        let there = tick.start_us / SLICE_US;
        let nearest = near_us.saturating_add(SLICE_US / 2) / SLICE_US;
        let (shift, next) = *self.place.get_or_insert((nearest.cast_signed() - there.cast_signed(), there));
        let here = there.wrapping_add_signed(shift);
        let ends_us = here.saturating_mul(SLICE_US).saturating_add(SLICE_US);
        let is_whole = tick.length_us == SLICE_US && tick.start_us == there * SLICE_US;
        let is_astray =
            ends_us > now_us.saturating_add(ASTRAY_US) || ends_us.saturating_add(ASTRAY_US) < self.from_us;
        if there != next || !is_whole || is_astray || tick.by_kind.len() > KINDS_MAX {
            return Err(Refused::MadeUp);
        }
        self.waiting_values = self.waiting_values.saturating_add(values(&tick));
        if self.waiting_values > WAITING_VALUES_MAX {
            return Err(Refused::TooMany);
        }
        self.place = Some((shift, next + 1));
        self.waiting.push_back((here, tick));
        Ok(())
    }

    fn first(&self) -> Option<u64> {
        self.waiting.front().map(|(number, _)| *number)
    }

    /// Takes the first slice if its number is such.
    fn take_first_if(&mut self, is_such: impl Fn(u64) -> bool) -> Option<Tick> {
        let (_, tick) = self.waiting.pop_front_if(|(number, _)| is_such(*number))?;
        self.waiting_values = self.waiting_values.saturating_sub(values(&tick));
        Some(tick)
    }
}

/// How many values of response times a slice has: they are what it takes memory for.
fn values(tick: &Tick) -> usize {
    let of = |counts: &Counts| counts.values_us.len();
    let kinds = tick.by_kind.iter().map(|kind| of(&kind.response_times) + of(&kind.timed_out));
    of(&tick.response_times) + of(&tick.timed_out) + kinds.sum::<usize>()
}

/// Whose slices they are.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) name: Arc<str>,
    pub(super) users: u32,
}

/// Where joined slices begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Once all generators have begun, for what has no first request.
    Together,
    /// With the first of any, for what counts every request.
    First,
}

/// Joins the slices of all generators.
#[derive(Debug)]
pub(super) struct Joining {
    start: Start,
    /// The first number that counts, once every generator has sent one.
    from: Option<u64>,
}

impl Joining {
    pub(super) fn new(start: Start) -> Self {
        Self { start, from: None }
    }

    /// The next tick, once every generator has delivered its part.
    pub(super) fn next(&mut self, all: &mut [(Owner, &mut Slices)]) -> Option<Tick> {
        let firsts = || all.iter().map(|(_, slices)| slices.first());
        if self.from.is_none() {
            let firsts: Vec<u64> = firsts().collect::<Option<_>>()?;
            self.from = match self.start {
                Start::Together => firsts.into_iter().max(),
                Start::First => firsts.into_iter().min(),
            };
        }
        let from = self.from?;
        for (_, slices) in all.iter_mut() {
            while slices.take_first_if(|number| number < from).is_some() {}
        }
        let firsts: Vec<u64> = all.iter().map(|(_, slices)| slices.first()).collect::<Option<_>>()?;
        let number = firsts.into_iter().min()?;
        let parts = all.iter_mut().filter_map(|(owner, slices)| {
            let tick = slices.take_first_if(|first| first == number)?;
            Some(Part { name: Arc::clone(&owner.name), users: owner.users, tick })
        });
        let parts = parts.collect();
        Some(joined(number * SLICE_US, parts))
    }
}

#[cfg(test)]
mod tests {
    use analysis::ticks::KindTick;

    use super::Refused::{MadeUp, TooMany};
    use super::*;

    const FAR_FUTURE: u64 = 1 << 60;

    fn slice(number: u64, completed: u64) -> Tick {
        Tick { start_us: number * SLICE_US, length_us: SLICE_US, completed, ..Tick::default() }
    }

    /// Slices of a generator whose clock is ahead by so much.
    fn slices(ahead_us: u64, numbers: std::ops::Range<u64>) -> Slices {
        let mut slices = Slices::default();
        for number in numbers {
            let tick = slice(number, 1);
            let near_us = tick.start_us - ahead_us;
            slices.add(tick, near_us, FAR_FUTURE).unwrap();
        }
        slices
    }

    fn joined_from(start: Start, mut all: Vec<Slices>) -> Vec<(u64, u64)> {
        let mut joining = Joining::new(start);
        let mut found = Vec::new();
        loop {
            let owner = || Owner { name: "g".into(), users: 1 };
            let mut owned: Vec<_> = all.iter_mut().map(|slices| (owner(), slices)).collect();
            let Some(tick) = joining.next(&mut owned) else { return found };
            found.push((tick.start_us / SLICE_US, tick.completed));
        }
    }

    #[test]
    fn slices_of_different_clocks_come_together_by_ours() {
        // One clock is ahead by 100 slices and nearly half of one.
        let all = || vec![slices(0, 7..12), slices(100 * SLICE_US + 9_000, 106..111)];
        assert_eq!(joined_from(Start::Together, all()), [(7, 2), (8, 2), (9, 2), (10, 2)]);
        assert_eq!(joined_from(Start::First, all()), [(6, 1), (7, 2), (8, 2), (9, 2), (10, 2)]);
        assert_eq!(joined_from(Start::Together, vec![slices(0, 7..12), Slices::default()]), []);
    }

    /// The offset of a clock is known better and better, and clocks drift: a slice must not change places for that.
    #[test]
    fn a_generator_keeps_its_place_while_the_clocks_drift() {
        let mut drifting = Slices::default();
        for number in 0..3_000u64 {
            let tick = slice(1_000 + number, 1);
            let near_us = tick.start_us - 9_900 - number * 10;
            drifting.add(tick, near_us, FAR_FUTURE).unwrap();
        }
        let steady = slices(0, 1_000..4_000);
        let found = joined_from(Start::Together, vec![drifting, steady]);
        assert_eq!(found.len(), 3_000);
        assert!(found.iter().all(|(_, completed)| *completed == 2));
    }

    #[test]
    fn slices_twice_missing_partial_or_of_the_future_are_made_up() {
        let add = |slices: &mut Slices, tick: Tick, now_us| {
            let near_us = tick.start_us;
            slices.add(tick, near_us, now_us)
        };
        let mut slices = slices(0, 5..8);
        assert_eq!(add(&mut slices, slice(7, 1), FAR_FUTURE), Err(MadeUp), "again");
        assert_eq!(add(&mut slices, slice(9, 1), FAR_FUTURE), Err(MadeUp), "one is missing");
        let partial = Tick { length_us: 7, ..slice(8, 1) };
        assert_eq!(add(&mut slices, partial, FAR_FUTURE), Err(MadeUp), "part of one");
        assert_eq!(add(&mut slices, slice(8, 1), 0), Ok(()), "up to a second may be an error of clocks");
        let mut late = Slices::default();
        assert_eq!(add(&mut late, slice(900, 1), 0), Err(MadeUp), "not yet");
        let mut odd = Slices::default();
        assert_eq!(odd.add(Tick { start_us: u64::MAX, ..slice(0, 1) }, u64::MAX, 5), Err(MadeUp));
    }

    #[test]
    fn slices_from_long_before_the_beginning_are_made_up() {
        let first_at = |near_us| Slices::since(30_000_000).add(slice(900, 1), near_us, 30_100_000);
        assert_eq!(first_at(29_980_000), Ok(()));
        assert_eq!(first_at(29_000_000), Ok(()), "up to a second may be an error of clocks");
        assert_eq!(first_at(28_900_000), Err(MadeUp));
        assert_eq!(first_at(0), Err(MadeUp));
    }

    #[test]
    fn a_slice_of_more_kinds_than_are_told_apart_is_made_up() {
        let of_kinds = |count| Tick { by_kind: vec![KindTick::default(); count], ..slice(5, 1) };
        assert_eq!(Slices::default().add(of_kinds(33), 100_000, FAR_FUTURE), Ok(()));
        assert_eq!(Slices::default().add(of_kinds(34), 100_000, FAR_FUTURE), Err(MadeUp));
    }

    #[test]
    fn no_more_waits_for_a_slow_generator_than_may() {
        let of_ten = |number| {
            let counts = || Counts { values_us: vec![(7, 1); 2], beyond: 0 };
            let kind = || KindTick { response_times: counts(), timed_out: counts(), ..KindTick::default() };
            let by_kind = vec![kind(), kind()];
            Tick { response_times: counts(), by_kind, ..slice(number, 1) }
        };
        let mut fast = Slices { waiting_values: WAITING_VALUES_MAX - 20, ..Slices::default() };
        let add = |fast: &mut Slices, number: u64| fast.add(of_ten(number), number * SLICE_US, FAR_FUTURE);
        assert_eq!([add(&mut fast, 0), add(&mut fast, 1)], [Ok(()); 2]);
        assert!(fast.take_first_if(|_| true).is_some());
        assert_eq!(add(&mut fast, 2), Ok(()), "what was taken waits no longer");
        assert_eq!(add(&mut fast, 3), Err(TooMany));
    }
}
