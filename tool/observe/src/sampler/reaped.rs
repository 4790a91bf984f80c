//! The CPU time of ended children, which must count only once.

use std::collections::BTreeMap;

use super::process::ProcessSample;
use crate::kernel_files::Pid;

/// Corrects the CPU time of reaped children. The kernel charges all of a child's time to its parent, so what was already
/// reported for the child while it lived is subtracted. This way sums over processes stay right.
#[derive(Debug, Default)]
pub(super) struct ReapedChildren {
    /// The processes of the last sample.
    last: BTreeMap<Pid, LastSample>,
    parents: BTreeMap<Pid, Account>,
}

#[derive(Debug, Clone, Copy)]
struct LastSample {
    parent: Pid,
    started_ticks: u64,
    /// The time reported for it, including its reaped children.
    reported_us: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    /// Time reported for children that are gone.
    reported_of_gone_us: u64,
    /// The last figure given for the parent.
    given_us: u64,
}

impl ReapedChildren {
    /// Corrects `reaped_children_us` of all processes of one sample.
    pub(super) fn correct(&mut self, samples: &mut [ProcessSample]) {
        self.charge_gone(samples);
        for one in samples.iter_mut() {
            let account = self.parents.entry(one.process.pid).or_default();
            let unseen = one.process.reaped_children_us.saturating_sub(account.reported_of_gone_us);
            // The figure never decreases, even if a child that was not waited for is subtracted.
            account.given_us = account.given_us.max(unseen);
            one.process.reaped_children_us = account.given_us;
        }
        self.parents.retain(|pid, _| samples.iter().any(|one| one.process.pid == *pid));
        self.last = samples.iter().map(|one| (one.process.pid, last_sample(one))).collect();
    }

    fn charge_gone(&mut self, samples: &[ProcessSample]) {
        let alive: BTreeMap<Pid, u64> =
            samples.iter().map(|one| (one.process.pid, one.process.started_ticks)).collect();
        for (pid, last) in &self.last {
            if alive.get(pid) != Some(&last.started_ticks) {
                self.parents.remove(pid);
                if let Some(account) = self.parents.get_mut(&last.parent) {
                    account.reported_of_gone_us += last.reported_us;
                }
            }
        }
    }
}

fn last_sample(one: &ProcessSample) -> LastSample {
    let process = &one.process;
    LastSample {
        parent: one.parent,
        started_ticks: process.started_ticks,
        reported_us: process.user_us + process.system_us + process.reaped_children_us,
    }
}

#[cfg(test)]
mod tests {
    use analysis::counters::Process;

    use super::*;

    fn sample(pid: Pid, parent: Pid, cpu_us: u64, reaped_us: u64) -> ProcessSample {
        let process = Process { pid, user_us: cpu_us, reaped_children_us: reaped_us, ..Process::default() };
        ProcessSample { process, parent }
    }

    fn corrected(reaped: &mut ReapedChildren, mut samples: Vec<ProcessSample>) -> Vec<u64> {
        reaped.correct(&mut samples);
        samples.into_iter().map(|one| one.process.reaped_children_us).collect()
    }

    #[test]
    fn only_the_unreported_time_of_a_sampled_child_counts() {
        let mut reaped = ReapedChildren::default();
        assert_eq!(corrected(&mut reaped, vec![sample(10, 1, 0, 0), sample(11, 10, 500, 0)]), [0, 0]);
        assert_eq!(corrected(&mut reaped, vec![sample(10, 1, 0, 700)]), [200]);
    }

    #[test]
    fn children_never_sampled_count_in_full() {
        let mut reaped = ReapedChildren::default();
        assert_eq!(corrected(&mut reaped, vec![sample(10, 1, 0, 0)]), [0]);
        assert_eq!(corrected(&mut reaped, vec![sample(10, 1, 0, 700)]), [700]);
    }

    #[test]
    fn a_child_not_waited_for_subtracts_nothing() {
        let mut reaped = ReapedChildren::default();
        corrected(&mut reaped, vec![sample(10, 1, 0, 300), sample(11, 10, 500, 0)]);
        assert_eq!(corrected(&mut reaped, vec![sample(10, 1, 0, 300)]), [300]);
    }

    #[test]
    fn a_reused_number_is_another_process() {
        let mut reaped = ReapedChildren::default();
        corrected(&mut reaped, vec![sample(10, 1, 0, 0), sample(11, 10, 500, 0)]);
        let mut second = sample(11, 10, 5, 0);
        second.process.started_ticks = 9;
        assert_eq!(corrected(&mut reaped, vec![sample(10, 1, 0, 600), second]), [100, 0]);
    }
}
