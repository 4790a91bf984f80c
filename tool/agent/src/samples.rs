//! The samples and looks of an agent, in bounded memory however long it goes on and whatever it sends.

use analysis::counters::{Counters, ThreadLook};
use observe::Thinning;

use crate::allowance::Exceeded;
use crate::protocol::{look_bytes, sample_bytes};

/// The most memory that samples take: those of a server with a thousand threads for four minutes, or of one with a few for a
/// quarter of an hour. Beyond that there are fewer, over all of the time.
const SAMPLES_BYTES_MAX: usize = 96 << 20;

/// The most memory that looks take.
const LOOKS_BYTES_MAX: usize = 16 << 20;

/// What an agent saw, in order of time.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    all: Vec<Counters>,
    looks: Vec<ThreadLook>,
    thinning: Thinning,
    /// Since when samples at borders are due.
    borders_us: Vec<u64>,
    /// What they take at most: those that were dropped one by one since they were counted are in it.
    bytes: usize,
    looks_bytes: usize,
}

impl Samples {
    /// Adds a sample; whoever counts on it at the border of a measurement has said so.
    ///
    /// # Errors
    /// If they take too much memory although all were dropped that may be: no honest ones do.
    pub(crate) fn add(&mut self, sample: Counters) -> Result<(), Exceeded> {
        let due = self.borders_us.len();
        self.borders_us.retain(|due_us| *due_us > sample.at_us);
        let is_border = self.borders_us.len() < due;
        self.bytes = self.bytes.saturating_add(sample_bytes(&sample));
        self.thinning.add_unpaced(&mut self.all, sample, is_border);
        if self.take_too_much() {
            self.thinning.thin(&mut self.all);
            if self.take_too_much() {
                return Err(Exceeded);
            }
        }
        Ok(())
    }

    /// Whether they take too much memory. They are counted anew only where that may be.
    fn take_too_much(&mut self) -> bool {
        if self.bytes > SAMPLES_BYTES_MAX {
            self.bytes = self.all.iter().map(sample_bytes).sum();
        }
        self.bytes > SAMPLES_BYTES_MAX
    }

    /// Adds a look. Each is of one moment, so that of too many every second one can be spared.
    pub(crate) fn add_look(&mut self, look: ThreadLook) {
        self.looks_bytes = self.looks_bytes.saturating_add(look_bytes(&look));
        self.looks.push(look);
        if self.looks_bytes > LOOKS_BYTES_MAX {
            let mut is_odd = false;
            self.looks.retain(|_| {
                is_odd = !is_odd;
                is_odd
            });
            self.looks_bytes = self.looks.iter().map(look_bytes).sum();
        }
    }

    /// Has the first sample from then on kept for good.
    pub(crate) fn expect_border(&mut self, due_us: u64) {
        self.borders_us.push(due_us);
    }

    /// All samples that were kept.
    pub(crate) fn all(&self) -> &[Counters] {
        &self.all
    }

    /// All looks that were kept.
    pub(crate) fn looks(&self) -> &[ThreadLook] {
        &self.looks
    }
}

#[cfg(test)]
mod tests {
    use analysis::counters::{Process, ProcessLook, Thread};

    use super::*;

    /// A sample of a server with a thousand threads.
    fn large(at_us: u64) -> Counters {
        let thread = Thread { name: "worker".into(), ..Thread::default() };
        let process = Process { pid: 9, threads: vec![thread; 1_000], ..Process::default() };
        Counters { at_us, processes: vec![process], ..Counters::default() }
    }

    fn held(samples: &Samples) -> usize {
        samples.all().iter().map(sample_bytes).sum()
    }

    #[test]
    fn samples_of_a_large_server_take_bounded_memory_and_those_at_borders_are_kept() {
        let mut samples = Samples::default();
        samples.expect_border(250_001);
        for number in 0..3_000 {
            samples.add(large(number * 250_000)).unwrap();
        }
        assert!(held(&samples) <= SAMPLES_BYTES_MAX, "{}", held(&samples));
        let times: Vec<u64> = samples.all().iter().map(|sample| sample.at_us).collect();
        assert!(times.len() > 200 && times.is_sorted(), "{}", times.len());
        assert!(times.contains(&500_000) && times.ends_with(&[2_999 * 250_000]));
    }

    /// Each looks at what the one before did not look at, so that none may be dropped.
    #[test]
    fn samples_that_may_not_be_dropped_are_too_much_once_they_take_too_much_memory() {
        let looks_at = |number: u64| match number % 3 {
            0 => Counters { hops: Some(Vec::new()), ..large(number) },
            1 => Counters { memory_limits: Some(Vec::new()), ..large(number) },
            _ => Counters { connection_limits: Some(Vec::new()), ..large(number) },
        };
        let mut samples = Samples::default();
        let taken = (0..5_000).take_while(|number| samples.add(looks_at(*number)).is_ok()).count();
        assert!((500..2_000).contains(&taken), "{taken}");
    }

    #[test]
    fn looks_without_end_take_bounded_memory() {
        let process = ProcessLook { futexes: vec![16; 128], ..ProcessLook::default() };
        let mut samples = Samples::default();
        for at_us in 0..60_000 {
            samples.add_look(ThreadLook { at_us, processes: vec![process.clone()] });
        }
        let held: usize = samples.looks().iter().map(look_bytes).sum();
        assert!((LOOKS_BYTES_MAX / 3..=LOOKS_BYTES_MAX).contains(&held), "{held}");
        assert!(samples.looks().is_sorted_by_key(|look| look.at_us));
        assert_eq!(samples.looks()[0].at_us, 0, "the first are there still");
    }
}
