//! The monotonic clock, in microseconds.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A time of CLOCK_MONOTONIC, or a duration, in microseconds.
pub(crate) type Micros = u64;

/// Later than any time.
pub(crate) const NEVER: Micros = u64::MAX;

/// An upper bound on the lag of the coarse clock, even where a busy hypervisor delays its ticks of 1 to 10 ms.
const LAG_US: Micros = 50_000;
/// Durations from here on may end late by that lag.
const LONG: Duration = Duration::from_secs(1);

/// The exact time.
pub(crate) fn now() -> Micros {
    micros(clock_gettime(ClockId::Monotonic))
}

/// The time of the kernel's last tick, which is less than [`LAG_US`] ago. Costs a quarter of [`now`].
pub(crate) fn coarse() -> Micros {
    micros(clock_gettime(ClockId::MonotonicCoarse))
}

/// The time left until `time`. May be too short while much is left, so callers ask again after waiting that long.
pub(crate) fn until(time: Micros) -> Micros {
    let left = time.saturating_sub(coarse()).saturating_sub(LAG_US);
    if left == 0 { time.saturating_sub(now()) } else { left }
}

/// The time `span` from now: exact below a second, and at most a twentieth late above.
pub(crate) fn deadline(span: Duration) -> Micros {
    if span < LONG { after(now(), span) } else { after(coarse().saturating_add(LAG_US), span) }
}

/// The time `span` after `time`.
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
    fn deadlines_are_on_time() {
        for millis in [0, 1, 999, 1_000, 60_000] {
            let span = Duration::from_millis(millis);
            let (earliest, deadline, latest) = (after(now(), span), deadline(span), after(now(), span));
            // The lag of the coarse clock depends on the host, but is always below half a second.
            let tolerance = if span < LONG { 0 } else { 500_000 };
            assert!(deadline + tolerance >= earliest, "{deadline} is before {earliest}");
            assert!(deadline <= latest + LAG_US, "{deadline} is long after {latest}");
        }
        assert_eq!(deadline(Duration::MAX), NEVER);
    }

    #[test]
    fn the_time_left_is_exact_at_the_end_and_never_too_long() {
        assert_eq!(until(now()), 0);
        let hour = 3_600_000_000;
        let left = until(now() + hour);
        assert!(left <= hour && left > hour / 2, "{left}");
    }
}
