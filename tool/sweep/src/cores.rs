//! Cores of their own for generator and systems, so that neither measures the other.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of server and generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Processors of the load generator.
    pub generator: Vec<usize>,
    /// Processors of the systems under test.
    pub systems: Vec<usize>,
}

/// Gives the upper half of the processors to the generator; `None` with fewer than two.
pub fn split(available: &[usize]) -> Option<Split> {
    let (systems, generator) = available.split_at(available.len() / 2);
    (!systems.is_empty()).then(|| Split { generator: generator.into(), systems: systems.into() })
}

/// Keeps the calling thread, and every thread it starts from now on, on these processors.
pub fn confine(processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &processor in processors.iter().filter(|number| **number < CpuSet::MAX_CPU) {
        set.set(processor);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// The processors this process may run on.
pub fn available() -> Vec<usize> {
    sched_getaffinity(None).map_or_else(
        |_| vec![0],
        |set| (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_each_side() {
        let halves = |n: usize| split(&(0..n).collect::<Vec<_>>());
        assert_eq!(halves(1), None);
        assert_eq!(halves(2), Some(Split { generator: vec![1], systems: vec![0] }));
        assert_eq!(halves(5), Some(Split { generator: vec![2, 3, 4], systems: vec![0, 1] }));
    }
}
