//! A server that stopped answering before the load ended.

use crate::run::Stall;
use crate::ticks::{ErrorKind, Tick, failures, sum};

/// A shorter stall may be a pause, microseconds.
const PAUSE_US: u64 = 1_000_000;

/// A stall lasts this many times the longest response time seen; anything shorter may be a slow response.
const LONGER_THAN_ANY: u64 = 3;

/// Fewer failures may be connections that broke while the server was busy with others.
const FAILURES: u64 = 3;

/// The ticks before the stall at their end, and the ticks of the stall: none unless something was answered before.
pub fn split(ticks: &[Tick]) -> (&[Tick], &[Tick]) {
    let end = ticks.iter().rposition(answered).map_or(ticks.len(), |last| last + 1);
    let (before, after) = ticks.split_at(end);
    let longest_us = before.iter().filter_map(longest_us).max().unwrap_or(0);
    let pause_us = PAUSE_US.max(longest_us.saturating_mul(LONGER_THAN_ANY));
    let stalled = sum(after, |tick| tick.length_us) >= pause_us
        && sum(after, |tick| failures(&tick.errors)) >= FAILURES;
    if stalled { (before, after) } else { (ticks, &[]) }
}

/// The stall at the end of consecutive ticks, if there is one after something was answered.
pub fn stall(ticks: &[Tick]) -> Option<Stall> {
    let (before, after) = split(ticks);
    (!after.is_empty()).then(|| Stall {
        completed: sum(before, |tick| tick.completed),
        length_us: sum(after, |tick| tick.length_us),
    })
}

/// Whether the server gave any complete answer: a refusal is an answer too.
pub fn answered(tick: &Tick) -> bool {
    tick.completed > 0 || tick.errors.iter().any(|(kind, count)| *count > 0 && is_an_answer(*kind))
}

fn is_an_answer(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Status | ErrorKind::Unavailable | ErrorKind::WrongBody)
}

fn longest_us(tick: &Tick) -> Option<u64> {
    tick.response_times.values_us.last().map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticks::{Counts, ErrorCounts};

    fn answering(response_us: u64) -> Tick {
        let response_times = Counts { values_us: vec![(response_us, 5)], beyond: 0 };
        Tick { length_us: 20_000, completed: 5, response_times, ..Tick::default() }
    }

    fn failing(kind: ErrorKind) -> Tick {
        Tick { length_us: 20_000, errors: ErrorCounts::from([(kind, 1)]), ..Tick::default() }
    }

    fn both(before: Tick, times: usize, after: &Tick, length: usize) -> Vec<Tick> {
        [vec![before; times], vec![after.clone(); length]].concat()
    }

    #[test]
    fn a_server_that_died_stalls() {
        let ticks = both(answering(100), 10, &failing(ErrorKind::Refused), 100);
        assert_eq!(stall(&ticks), Some(Stall { completed: 50, length_us: 2_000_000 }));
    }

    #[test]
    fn a_server_that_refuses_or_pauses_is_not() {
        let refusing = both(answering(100), 10, &failing(ErrorKind::Unavailable), 100);
        assert_eq!(stall(&refusing), None);
        let short = both(answering(100), 10, &failing(ErrorKind::Refused), 49);
        assert_eq!(stall(&short), None);
        let without_failures = both(answering(100), 10, &Tick { length_us: 20_000, ..Tick::default() }, 100);
        assert_eq!(stall(&without_failures), None);
    }

    #[test]
    fn slow_answers_are_waited_for() {
        let slow = both(answering(1_000_000), 10, &failing(ErrorKind::Reset), 100);
        assert_eq!(stall(&slow), None);
    }

    #[test]
    fn a_server_that_never_answered_did_not_stop() {
        assert_eq!(stall(&both(failing(ErrorKind::Refused), 50, &failing(ErrorKind::Reset), 100)), None);
        assert_eq!(stall(&[]), None);
    }
}
