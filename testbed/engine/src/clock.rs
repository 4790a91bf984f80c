//! The monotonic clock, in microseconds.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A time of CLOCK_MONOTONIC, or a span, in microseconds.
pub(crate) type Micros = u64;

/// Later than any time.
pub(crate) const NEVER: Micros = u64::MAX;

/// More than the coarse clock is behind, even where a busy hypervisor delays the ticks of 1 to 10 ms.
const LAG_US: Micros = 50_000;
/// Spans that may be late by that.
const LONG: Duration = Duration::from_secs(1);

/// Now, exact.
pub(crate) fn now() -> Micros {
    micros(clock_gettime(ClockId::Monotonic))
}

/// Now, as of the last tick of the kernel: behind, by less than [`LAG_US`], at a quarter of the cost.
pub(crate) fn coarse() -> Micros {
    micros(clock_gettime(ClockId::MonotonicCoarse))
}

/// How long until `time`, which may be told short while it is long: ask again then.
pub(crate) fn until(time: Micros) -> Micros {
    let left = time.saturating_sub(coarse()).saturating_sub(LAG_US);
    if left == 0 { time.saturating_sub(now()) } else { left }
}

/// The time when `span` from now has passed: exact below a second, and late by a twentieth at most above.
pub(crate) fn deadline(span: Duration) -> Micros {
    if span < LONG { after(now(), span) } else { after(coarse().saturating_add(LAG_US), span) }
}

/// `span` after `time`.
pub(crate) fn after(time: Micros, span: Duration) -> Micros {
    time.saturating_add(u64::try_from(span.as_micros()).unwrap_or(NEVER))
}

fn micros(time: Timespec) -> Micros {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_in_time() {
        for millis in [0, 1, 999, 1_000, 60_000] {
            let span = Duration::from_millis(millis);
            let (earliest, deadline, latest) = (after(now(), span), deadline(span), after(now(), span));
            // How far the coarse clock is behind depends on the host; by half a second it never is.
            let tolerance = if span < LONG { 0 } else { 500_000 };
            assert!(deadline + tolerance >= earliest, "{deadline} is before {earliest}");
            assert!(deadline <= latest + LAG_US, "{deadline} is long after {latest}");
        }
        assert_eq!(deadline(Duration::MAX), NEVER);
    }

    #[test]
    fn the_time_left_is_told_exactly_at_the_end_and_never_long() {
        assert_eq!(until(now()), 0);
        let hour = 3_600_000_000;
        let left = until(now() + hour);
        assert!(left <= hour && left > hour / 2, "{left}");
    }
}
