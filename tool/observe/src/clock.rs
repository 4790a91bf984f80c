//! Clocks and units of the host.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use crate::kernel_files::Pid;

/// The time now, in microseconds of `CLOCK_MONOTONIC`, the clock of all samples.
#[must_use]
pub fn monotonic_us() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC).unwrap_or(0) / 1000
}

/// The CPU time that the calling thread has used, microseconds.
pub(crate) fn own_thread_cpu_us() -> u64 {
    own_thread_cpu_ns() / 1000
}

/// The same in nanoseconds.
pub(crate) fn own_thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// The CPU time that a process has used, including its ended threads, nanoseconds. It is exact to one scheduler tick,
/// while `/proc/PID/stat` rounds to ten milliseconds. `None` if there is no such process.
pub(crate) fn process_cpu_ns(pid: Pid) -> Option<u64> {
    // clock_getcpuclockid(3) computes the same: the complement of the process number above three bits that mean
    // "process" (0) and "scheduler's account" (2).
    const SCHED: libc::clockid_t = 2;
    let pid = libc::clockid_t::try_from(pid).ok()?;
    read_ns(((!pid) << 3) | SCHED).ok()
}

fn read_ns(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for writing a timespec for the duration of the call.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a successful call has initialised the structure.
    let time = unsafe { time.assume_init() };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)))
}

/// The unit of the times in `/proc/stat` and `/proc/PID/stat`.
pub(crate) fn ticks_per_second() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| system_constant(libc::_SC_CLK_TCK, 100))
}

/// The unit of the memory figures in `/proc/PID/stat`.
pub(crate) fn page_bytes() -> u64 {
    static PAGE: OnceLock<u64> = OnceLock::new();
    *PAGE.get_or_init(|| system_constant(libc::_SC_PAGESIZE, 4096))
}

fn system_constant(name: libc::c_int, fallback: u64) -> u64 {
    // SAFETY: takes a number and touches no memory of ours.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).ok().filter(|value| *value > 0).unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_on() {
        let before = monotonic_us();
        assert!(before > 0 && monotonic_us() >= before);
    }

    #[test]
    fn own_cpu_time_grows_with_work() {
        let own = std::process::id();
        let before = process_cpu_ns(own).unwrap();
        let mut sum = 0u64;
        while process_cpu_ns(own).unwrap() < before + 2_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(process_cpu_ns(own).unwrap() >= before + 2_000_000);
    }

    #[test]
    fn no_process_has_no_time() {
        assert_eq!(process_cpu_ns(u32::MAX), None);
        assert_eq!(process_cpu_ns(0x1fff_fff0), None);
    }
}
