//! The generator's only clock: CLOCK_MONOTONIC, read through the vDSO. It is the clock of the observer's counters too.

use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let at = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at boot: neither part is ever negative.
    at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64
}
