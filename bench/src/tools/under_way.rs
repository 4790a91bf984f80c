//! Load that nstar makes in a process of its own: when it has begun, what the process uses meanwhile, and its end.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use crate::tools::{
    beside::Beside,
    cpu::{self, Thread},
    effort::Result,
    workspace::ServerProcess,
};

/// The server has done so much once the load has begun, seconds of CPU time. The probe and the test of the generator before it
/// hardly touch the server.
const BEGUN_S: f64 = 0.1;
/// A load that begins or ends so much later than it should hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Waits until the server is under load, from what it had used before nstar was started (seconds of CPU time).
///
/// # Errors
/// nstar ended before, or makes no load.
pub(crate) fn wait_for_load(nstar: &mut Beside, server: &ServerProcess, before_s: f64) -> Result<()> {
    let begun = Instant::now();
    while server.cpu_s() - before_s < BEGUN_S {
        if let Some(status) = nstar.0.try_wait()? {
            return Err(format!("nstar ended before its load began: {status}").into());
        }
        if begun.elapsed() > PATIENCE {
            return Err("nstar makes no load".into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Waits until nstar has ended.
///
/// # Errors
/// It failed, or does not end.
pub(crate) fn wait_for_end(nstar: &mut Beside) -> Result<()> {
    let begun = Instant::now();
    loop {
        match nstar.0.try_wait()?.map(|status| (status, status.code())) {
            // 4: the generator was the bottleneck or the run was short, and here it may be.
            Some((_, Some(0 | 4))) => return Ok(()),
            Some((status, _)) => return Err(format!("nstar: {status}").into()),
            None if begun.elapsed() > PATIENCE => return Err("nstar did not end".into()),
            None => thread::sleep(LOOK),
        }
    }
}

/// What a process used: CPU time for a second of the time that it was looked at, seconds. That is in processors.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Busy {
    /// All of it, in steps of the clock that CPU time is counted by.
    pub all: f64,
    /// By the names of its threads. Those that ended meanwhile are left out.
    threads: BTreeMap<String, f64>,
}

impl Busy {
    /// Looks at a process for so long.
    ///
    /// # Errors
    /// The process has gone, or the kernel keeps no accounts of threads.
    pub(crate) fn of(process: &Beside, how_long: Duration) -> Result<Self> {
        let pid = process.0.id();
        let (begun, all_s, before) = (Instant::now(), cpu::of_tree(pid), cpu::threads(pid)?);
        thread::sleep(how_long);
        let (after, all_s) = (cpu::threads(pid)?, cpu::of_tree(pid) - all_s);
        let elapsed_s = begun.elapsed().as_secs_f64();
        Ok(Busy { all: all_s / elapsed_s, threads: by_name(&before, after, elapsed_s) })
    }

    /// Made up, for tests.
    #[cfg(test)]
    pub(crate) fn new(all: f64, threads: &[(&str, f64)]) -> Self {
        let threads = threads.iter().map(|(name, used)| ((*name).to_owned(), *used)).collect();
        Busy { all, threads }
    }

    /// What the threads of a name used; `None` where there was none.
    pub(crate) fn named(&self, name: &str) -> Option<f64> {
        self.threads.get(name).copied()
    }

    /// What all threads used whose names begin so.
    pub(crate) fn named_like(&self, beginning: &str) -> f64 {
        self.threads.iter().filter(|(name, _)| name.starts_with(beginning)).map(|(_, used)| used).sum()
    }
}

fn by_name(
    before: &BTreeMap<u32, Thread>,
    after: BTreeMap<u32, Thread>,
    elapsed_s: f64,
) -> BTreeMap<String, f64> {
    let mut used = BTreeMap::new();
    for (number, Thread { name, cpu_s }) in after {
        // One that began meanwhile had used nothing.
        let before_s = before.get(&number).map_or(0.0, |thread| thread.cpu_s);
        *used.entry(name).or_default() += (cpu_s - before_s) / elapsed_s;
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(all: &[(u32, &str, f64)]) -> BTreeMap<u32, Thread> {
        let thread =
            |&(number, name, cpu_s): &(u32, &str, f64)| (number, Thread { name: name.into(), cpu_s });
        all.iter().map(thread).collect()
    }

    #[test]
    fn threads_of_one_name_count_together_and_new_ones_from_nothing() {
        let before =
            threads(&[(1, "nstar", 3.0), (2, "load-0", 10.0), (3, "load-1", 10.0), (4, "screen", 0.5)]);
        let after = [(1, "nstar", 3.5), (2, "load-0", 12.0), (3, "load-1", 11.0), (5, "page", 1.0)];
        let after = threads(&[&after[..], &[(6, "page", 0.5)]].concat());
        let busy = Busy { all: 2.0, threads: by_name(&before, after, 2.0) };
        assert_eq!(busy.named("nstar"), Some(0.25));
        assert_eq!(busy.named("page"), Some(0.75));
        assert_eq!(busy.named("screen"), None, "it ended");
        assert_eq!(busy.named_like("load-"), 1.5);
    }
}
