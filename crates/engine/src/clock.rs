//! The monotonic clock, in microseconds.

use std::{sync::OnceLock, time::Duration};

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// A time of CLOCK_MONOTONIC, or a span, in microseconds.
pub(crate) type Micros = u64;

/// Later than any time.
pub(crate) const NEVER: Micros = u64::MAX;

/// Now, exact.
pub(crate) fn now() -> Micros {
    micros(clock_gettime(ClockId::Monotonic))
}

/// Now, as of the last tick of the kernel: up to [`resolution`] early, at a quarter of the cost.
pub(crate) fn coarse() -> Micros {
    micros(clock_gettime(ClockId::MonotonicCoarse))
}

/// How far behind [`coarse`] may be.
pub(crate) fn resolution() -> Micros {
    static RESOLUTION: OnceLock<Micros> = OnceLock::new();
    *RESOLUTION.get_or_init(|| micros(clock_getres(ClockId::MonotonicCoarse)))
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
    fn the_coarse_clock_is_behind_by_no_more_than_its_resolution() {
        let before = now();
        let coarse = coarse();
        let later = now();
        assert!(coarse <= later);
        assert!(coarse + resolution() >= before, "coarse {coarse}, before {before}");
    }
}
