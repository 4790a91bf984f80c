//! Stretches in which requests were under way and nothing was answered, for longer than chance and the requests themselves
//! explain.

use super::pauses::DUE;
use super::percentiles::Distribution;
use super::stall::answered;
use crate::ticks::{Tick, sum};

/// Of the ticks of a stretch at least this share of what is usual has a count of the requests under way: a generator that
/// gets no processor counts none, and then it is the one that stands still.
const COUNTED: f64 = 0.5;

/// At least this share of the usual number of requests is under way: users who think together ask for nothing meanwhile.
const UNDER_WAY: f64 = 0.5;

/// The start and the end of each such stretch of one measurement, microseconds of the ticks' clock.
///
/// A stretch counts if at least [`DUE`] completions were due at the mean rate, which chance leaves out once in twenty thousand
/// times (Poisson), and if it is longer than half of the requests take: users who began together and wait for the same delay
/// leave gaps, but none that is longer than their requests.
pub(super) fn silences(users: u32, ticks: &[Tick]) -> Vec<(u64, u64)> {
    let usual = Usual::of(users, ticks);
    let stretches = ticks.chunk_by(|a, b| !answered(a) && !answered(b) && is_next(a, b));
    stretches.filter(|stretch| usual.is_broken_by(stretch)).filter_map(span).collect()
}

fn is_next(a: &Tick, b: &Tick) -> bool {
    a.start_us.saturating_add(a.length_us) == b.start_us
}

fn span(stretch: &[Tick]) -> Option<(u64, u64)> {
    let (first, last) = (stretch.first()?, stretch.last()?);
    Some((first.start_us, last.start_us.saturating_add(last.length_us)))
}

/// What is usual in a measurement.
struct Usual {
    users: u32,
    /// Completions per microsecond.
    rate_per_us: f64,
    /// The median of the response times, microseconds.
    response_us: f64,
    /// Requests under way.
    under_way: f64,
    /// Share of the ticks with a count of them.
    counted: f64,
}

impl Usual {
    fn of(users: u32, ticks: &[Tick]) -> Self {
        let number = ticks.len().max(1) as f64;
        Self {
            users,
            rate_per_us: sum(ticks, |tick| tick.completed) as f64 / length_us(ticks).max(1.0),
            response_us: Distribution::of(ticks).percentile_us(0.5),
            under_way: ticks.iter().map(|tick| under_way(users, tick)).sum::<f64>() / number,
            counted: counts(ticks) / number,
        }
    }

    fn is_broken_by(&self, stretch: &[Tick]) -> bool {
        let length_us = length_us(stretch);
        let asked = stretch.iter().map(|tick| under_way(self.users, tick)).fold(0.0, f64::max);
        stretch.first().is_some_and(|first| !answered(first))
            && length_us * self.rate_per_us >= DUE
            && length_us > self.response_us
            && counts(stretch) >= COUNTED * self.counted * stretch.len() as f64
            && asked >= (UNDER_WAY * self.under_way).max(1.0)
    }
}

fn length_us(ticks: &[Tick]) -> f64 {
    sum(ticks, |tick| tick.length_us) as f64
}

fn counts(ticks: &[Tick]) -> f64 {
    ticks.iter().filter(|tick| tick.generator.in_flight.is_some()).count() as f64
}

/// Requests under way: those counted, or else the users who were not thinking.
fn under_way(users: u32, tick: &Tick) -> f64 {
    let thinking = tick.generator.thinking_user_us as f64 / tick.length_us.max(1) as f64;
    tick.generator.in_flight.map_or_else(|| (f64::from(users) - thinking).max(0.0), |count| count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticks::{Counts, GeneratorTick};

    const SLICE_US: u64 = 20_000;

    /// Slices with so many completions each, which took so long, while all of ten users were counted under way.
    fn ticks(completed: &[u64], response_us: u64) -> Vec<Tick> {
        let tick = |(number, &completed): (usize, &u64)| Tick {
            start_us: number as u64 * SLICE_US,
            length_us: SLICE_US,
            completed,
            response_times: Counts { values_us: vec![(response_us, completed)], beyond: 0 },
            generator: GeneratorTick { in_flight: Some(10), ..GeneratorTick::default() },
            ..Tick::default()
        };
        completed.iter().enumerate().map(tick).collect()
    }

    fn stopping(each: u64, response_us: u64) -> Vec<Tick> {
        ticks(&[[each; 22].as_slice(), &[0; 3]].concat().repeat(4), response_us)
    }

    #[test]
    fn a_server_that_stops_is_silent_meanwhile() {
        let found = silences(10, &stopping(20, 2_000));
        assert_eq!(found, [22, 47, 72, 97].map(|slice| (slice * SLICE_US, (slice + 3) * SLICE_US)));
    }

    #[test]
    fn few_requests_prove_nothing() {
        assert_eq!(silences(10, &stopping(3, 2_000)), [], "eight were due");
        assert_eq!(silences(1, &ticks(&[1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], 40_000)), []);
        assert_eq!(silences(1, &ticks(&[0; 50], 1)), []);
        assert_eq!(silences(1, &[]), []);
    }

    #[test]
    fn requests_that_take_as_long_leave_gaps_of_their_own() {
        assert_eq!(silences(10, &stopping(20, 60_000)), []);
        assert_eq!(silences(10, &stopping(20, 59_000)).len(), 4);
    }

    #[test]
    fn users_who_think_ask_for_nothing() {
        let mut thinking = stopping(20, 2_000);
        for tick in thinking.iter_mut().filter(|tick| tick.completed == 0) {
            tick.generator.in_flight = Some(0);
        }
        assert_eq!(silences(10, &thinking), []);
        let mut uncounted = stopping(20, 2_000);
        for tick in &mut uncounted {
            tick.generator.in_flight = None;
        }
        assert_eq!(silences(10, &uncounted).len(), 4, "nobody thinks");
        for tick in uncounted.iter_mut().filter(|tick| tick.completed == 0) {
            tick.generator.thinking_user_us = 10 * SLICE_US;
        }
        assert_eq!(silences(10, &uncounted), []);
    }

    #[test]
    fn a_generator_that_stood_still_accuses_nobody() {
        let mut stopped = stopping(20, 2_000);
        for tick in stopped.iter_mut().filter(|tick| tick.completed == 0) {
            tick.generator.in_flight = None;
        }
        assert_eq!(silences(10, &stopped), []);
    }

    #[test]
    fn what_lies_between_two_measurements_is_in_neither() {
        let mut apart = ticks(&[[20; 22].as_slice(), &[0; 1], &[0; 1], &[20; 22]].concat(), 2_000);
        assert_eq!(silences(10, &apart).len(), 1);
        apart.iter_mut().skip(23).for_each(|tick| tick.start_us += 1_000_000);
        assert_eq!(silences(10, &apart).len(), 2);
    }
}
