//! Children that ended: their time counts once.

use std::collections::BTreeMap;

use super::process::Seen;
use crate::Pid;

/// A parent's account of reaped children holds all of their time. What was already reported of a child
/// while it lived is taken off, so that sums over processes stay right.
#[derive(Debug, Default)]
pub(super) struct Reaped {
    /// The last look: process to (parent, start, CPU time reported).
    last: BTreeMap<Pid, LastSeen>,
    /// Per parent: time reported of children that are gone, and the figure given last.
    parents: BTreeMap<Pid, Account>,
}

#[derive(Debug, Clone, Copy)]
struct LastSeen {
    parent: Pid,
    started_ticks: u64,
    /// Its own time and that of its reaped children, as reported.
    reported_us: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    reported_of_gone_us: u64,
    given_us: u64,
}

impl Reaped {
    /// Corrects `reaped_children_us` of one look's processes.
    pub(super) fn settle(&mut self, seen: &mut [Seen]) {
        self.charge_gone(seen);
        for one in seen.iter_mut() {
            let account = self.parents.entry(one.process.pid).or_default();
            let unseen = one.process.reaped_children_us.saturating_sub(account.reported_of_gone_us);
            // Never falls: a child that was not waited for adds nothing to what is taken from.
            account.given_us = account.given_us.max(unseen);
            one.process.reaped_children_us = account.given_us;
        }
        self.parents.retain(|pid, _| seen.iter().any(|one| one.process.pid == *pid));
        self.last = seen.iter().map(|one| (one.process.pid, last_seen(one))).collect();
    }

    fn charge_gone(&mut self, seen: &[Seen]) {
        let alive: BTreeMap<Pid, u64> =
            seen.iter().map(|one| (one.process.pid, one.process.started_ticks)).collect();
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

fn last_seen(one: &Seen) -> LastSeen {
    let process = &one.process;
    LastSeen {
        parent: one.parent,
        started_ticks: process.started_ticks,
        reported_us: process.user_us + process.system_us + process.reaped_children_us,
    }
}

#[cfg(test)]
mod tests {
    use analysis::counters::Process;

    use super::*;

    fn seen(pid: Pid, parent: Pid, cpu_us: u64, reaped_us: u64) -> Seen {
        let process = Process { pid, user_us: cpu_us, reaped_children_us: reaped_us, ..Process::default() };
        Seen { process, parent }
    }

    fn settled(reaped: &mut Reaped, mut look: Vec<Seen>) -> Vec<u64> {
        reaped.settle(&mut look);
        look.into_iter().map(|one| one.process.reaped_children_us).collect()
    }

    #[test]
    fn a_child_that_was_seen_counts_only_what_was_not() {
        let mut reaped = Reaped::default();
        assert_eq!(settled(&mut reaped, vec![seen(10, 1, 0, 0), seen(11, 10, 500, 0)]), [0, 0]);
        assert_eq!(settled(&mut reaped, vec![seen(10, 1, 0, 700)]), [200]);
    }

    #[test]
    fn children_nobody_saw_count_in_full() {
        let mut reaped = Reaped::default();
        assert_eq!(settled(&mut reaped, vec![seen(10, 1, 0, 0)]), [0]);
        assert_eq!(settled(&mut reaped, vec![seen(10, 1, 0, 700)]), [700]);
    }

    #[test]
    fn a_child_not_waited_for_takes_nothing_away() {
        let mut reaped = Reaped::default();
        settled(&mut reaped, vec![seen(10, 1, 0, 300), seen(11, 10, 500, 0)]);
        assert_eq!(settled(&mut reaped, vec![seen(10, 1, 0, 300)]), [300]);
    }

    #[test]
    fn a_number_used_again_is_another_process() {
        let mut reaped = Reaped::default();
        settled(&mut reaped, vec![seen(10, 1, 0, 0), seen(11, 10, 500, 0)]);
        let mut second = seen(11, 10, 5, 0);
        second.process.started_ticks = 9;
        assert_eq!(settled(&mut reaped, vec![seen(10, 1, 0, 600), second]), [100, 0]);
    }
}
