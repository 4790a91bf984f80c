//! Times in which a server that answers all the time answered nobody.

use crate::run::Pauses;
use crate::ticks::{Tick, sum};

/// Chance alone leaves a stretch without completions when this many were due once in twenty thousand times.
pub(super) const DUE: f64 = 10.0;

/// The stretches of ticks in which nothing was answered though at least [`DUE`] completions were due at the rate of the
/// other ticks. Users who all wait for the same delay, such as sleepers that began together, leave such stretches too.
pub(super) fn pauses(ticks: &[Tick]) -> Pauses {
    let rate_per_us = rate_per_us(ticks);
    let mut found = Pauses::default();
    let mut paused_us = 0u64;
    for stretch in ticks.chunk_by(|a, b| super::stall::answered(a) == super::stall::answered(b)) {
        let length_us = sum(stretch, |tick| tick.length_us);
        let silent = stretch.first().is_some_and(|first| !super::stall::answered(first));
        if silent && length_us as f64 * rate_per_us >= DUE {
            found.count += 1;
            found.longest_us = found.longest_us.max(length_us);
            paused_us = paused_us.saturating_add(length_us);
        }
    }
    found.share = paused_us as f64 / sum(ticks, |tick| tick.length_us).max(1) as f64;
    found
}

/// Completions per microsecond in the ticks that had some.
fn rate_per_us(ticks: &[Tick]) -> f64 {
    let (mut completed, mut length_us) = (0.0, 0.0);
    for tick in ticks.iter().filter(|tick| tick.completed > 0) {
        completed += tick.completed as f64;
        length_us += tick.length_us as f64;
    }
    if length_us > 0.0 { completed / length_us } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(completed: &[u64]) -> Vec<Tick> {
        completed.iter().map(|&completed| Tick { length_us: 20_000, completed, ..Tick::default() }).collect()
    }

    #[test]
    fn a_server_that_stops_for_everybody_pauses() {
        let found = pauses(&ticks(&[[20; 6].as_slice(), &[0; 4]].concat().repeat(5)));
        assert_eq!((found.count, found.longest_us), (5, 80_000));
        assert!((found.share - 0.4).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_slow_server_does_not_pause() {
        assert_eq!(pauses(&ticks(&[1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0])), Pauses::default());
        assert_eq!(pauses(&ticks(&[0; 50])), Pauses::default());
        assert_eq!(pauses(&[]), Pauses::default());
    }
}
