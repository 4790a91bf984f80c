//! How fast processors compute, while others use them.
//!
//! A processor of a virtual machine, or one whose core runs a second thread, does more or less in a second of CPU time from
//! one moment to the next, by what its neighbours do; no account of CPU time shows it. So a thread on each processor does
//! the same small piece of work again and again, and notes the CPU time that it took. Whatever else runs there delays the
//! piece, but does not count.

use std::hint::black_box;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock::{monotonic_us, own_thread_cpu_ns};
use crate::error::ObserveError;

/// The time from one piece to the next.
const PERIOD: Duration = Duration::from_millis(8);
/// The CPU time that a piece takes, about: 0.75 % of a processor.
const PIECE_NS: u64 = 60_000;
/// Processors that are timed at most. Neighbours of one are seldom neighbours of another, but many tell enough together.
const PROCESSORS_MAX: usize = 8;
/// Turns of the work that are made between two looks at the clock, to find how many make a piece.
const TURNS: u64 = 500;
/// Fewer pieces say nothing of a span of time.
const PIECES_MIN: usize = 10;
/// In a piece that took so many times what most took, the processor was not slow but stopped: the hypervisor had taken it, which
/// a guest may count as CPU time.
const STOPPED: f64 = 3.0;

/// Times processors in the background until it is dropped.
#[derive(Debug)]
pub struct SpeedProbe {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    pieces: Mutex<Vec<Piece>>,
    /// Whether to end.
    ending: Mutex<bool>,
    ended: Condvar,
}

/// One piece of work.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at_us: u64,
    ns_per_turn: f64,
}

impl SpeedProbe {
    /// Starts to time these processors, or eight of them spread evenly.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(processors: &[u32]) -> Result<Self, ObserveError> {
        let shared = Arc::new(Shared::default());
        let step = processors.len().div_ceil(PROCESSORS_MAX).max(1);
        let mut probe = SpeedProbe { shared, threads: Vec::new() };
        for &processor in processors.iter().step_by(step) {
            let shared = Arc::clone(&probe.shared);
            let thread = std::thread::Builder::new()
                .name("nstar-speed".to_owned())
                .spawn(move || time(&shared, processor as usize))
                .map_err(ObserveError::Thread)?;
            probe.threads.push(thread);
        }
        Ok(probe)
    }

    /// How much of the work the processors did for a second of CPU time, on average over a span of the monotonic clock. Only
    /// the ratio of two such figures means anything. `None` where too little was done.
    #[must_use]
    pub fn between(&self, start_us: u64, end_us: u64) -> Option<f64> {
        let pieces = lock(&self.shared.pieces);
        let within = pieces.iter().filter(|piece| (start_us..end_us).contains(&piece.at_us));
        mean_speed(within.map(|piece| piece.ns_per_turn).collect())
    }
}

/// Turns per second of CPU time, from the nanoseconds that a turn of each piece took.
fn mean_speed(mut pieces: Vec<f64>) -> Option<f64> {
    pieces.sort_by(f64::total_cmp);
    let middle = pieces.get(pieces.len() / 2).copied()?;
    let whole: Vec<f64> = pieces.iter().copied().filter(|piece| *piece <= STOPPED * middle).collect();
    (whole.len() >= PIECES_MIN).then(|| 1e9 * whole.len() as f64 / whole.iter().sum::<f64>())
}

impl Drop for SpeedProbe {
    fn drop(&mut self) {
        *lock(&self.shared.ending) = true;
        self.shared.ended.notify_all();
        for thread in self.threads.drain(..) {
            // The thread has no result, and a panic in it was reported where it happened.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn time(shared: &Shared, processor: usize) {
    // A processor that may not be used is not timed.
    if !stay_on(processor) {
        return;
    }
    let mut work = Work::new();
    let turns = turns_per_piece(&mut work);
    loop {
        let at_us = monotonic_us();
        let began_ns = own_thread_cpu_ns();
        work.turn(turns);
        let took_ns = own_thread_cpu_ns().saturating_sub(began_ns).max(1);
        lock(&shared.pieces).push(Piece { at_us, ns_per_turn: took_ns as f64 / turns as f64 });
        let ending = lock(&shared.ending);
        let waited = shared.ended.wait_timeout_while(ending, PERIOD, |ending| !*ending);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 {
            return;
        }
    }
}

fn stay_on(processor: usize) -> bool {
    let mut set = CpuSet::new();
    processor < CpuSet::MAX_CPU && {
        set.set(processor);
        sched_setaffinity(None, &set).is_ok()
    }
}

/// How many turns make a piece: found once, so that all pieces of a process are alike.
fn turns_per_piece(work: &mut Work) -> u64 {
    static PIECE: OnceLock<u64> = OnceLock::new();
    *PIECE.get_or_init(|| {
        let began_ns = own_thread_cpu_ns();
        let mut turns = 0;
        while own_thread_cpu_ns().saturating_sub(began_ns) < PIECE_NS {
            work.turn(TURNS);
            turns += TURNS;
        }
        turns
    })
}

/// Work that keeps several units of a core busy at once, as servers do, so that it feels a neighbour on the same core: four
/// generators of random numbers (xorshift; Marsaglia 2003), which write to a table in the nearest cache.
struct Work {
    states: [u64; 4],
    table: Vec<u64>,
}

impl Work {
    fn new() -> Self {
        Work { states: [0x9E37_79B9, 0x7F4A_7C15, 0xBF58_476D, 0x94D0_49BB], table: vec![0; 2048] }
    }

    fn turn(&mut self, turns: u64) {
        let last = self.table.len() - 1;
        for _ in 0..turns {
            for state in &mut self.states {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                let place = *state as usize & last;
                if let Some(slot) = self.table.get_mut(place) {
                    *slot = slot.wrapping_add(*state);
                }
            }
        }
        black_box(&self.table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One piece of sixty, with 10 ms in it that the hypervisor took, would halve the speed.
    #[test]
    fn a_processor_that_was_stopped_was_not_slow() {
        let mut pieces = vec![10.0; 59];
        pieces.push(1_700.0);
        assert_eq!(mean_speed(pieces), Some(1e8));
        let halves = [vec![10.0; 30], vec![20.0; 30]].concat();
        assert!(mean_speed(halves).is_some_and(|speed| (speed - 1e9 / 15.0).abs() < 1.0));
        assert_eq!((mean_speed(vec![10.0; 9]), mean_speed(Vec::new())), (None, None));
    }

    #[test]
    fn a_processor_has_a_speed_while_it_is_timed() {
        let began_us = monotonic_us();
        let allowed = rustix::thread::sched_getaffinity(None).expect("a set");
        let first = (0..1024).find(|number| allowed.is_set(*number)).expect("a processor");
        let probe = SpeedProbe::start(&[first as u32]).expect("a thread");
        let mut speed = None;
        for _ in 0..600 {
            std::thread::sleep(Duration::from_millis(100));
            speed = probe.between(began_us, monotonic_us());
            if speed.is_some() {
                break;
            }
        }
        assert!(speed.is_some_and(|speed| speed > 0.0 && speed.is_finite()), "{speed:?}");
        assert_eq!(probe.between(0, 1), None);
        drop(probe);
        // A processor that is not there.
        drop(SpeedProbe::start(&[4_000_000]).expect("a thread"));
    }
}
