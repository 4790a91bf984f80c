//! Servers that ended while they were watched, and what took their place.

use std::collections::BTreeSet;

use crate::counters::{Counters, Process, Role};
use crate::run::{HostName, Processes};

/// A server that ended, and another that has served since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// What served before: its eldest process, which forked the others where they were forked.
    pub before: Processes,
    /// The same of what served after it.
    pub after: Processes,
    /// The last sample that found the former, microseconds of the monotonic clock.
    pub at_us: u64,
    /// How often the server was replaced in all.
    pub times: u64,
}

impl Replacement {
    /// The same on a host of this name.
    #[must_use]
    pub fn on(mut self, host: &HostName) -> Self {
        (self.before.on, self.after.on) = (host.clone(), host.clone());
        self
    }
}

/// The first time, in samples in the order of time, that none of the processes which served was left and others served.
/// Workers that come and go under one that stays replace nothing.
pub fn replaced(samples: &[Counters]) -> Option<Replacement> {
    let mut found: Option<Replacement> = None;
    let serving = samples.iter().filter(|sample| servers(sample).next().is_some());
    let mut last: Option<&Counters> = None;
    for sample in serving {
        if let Some(before) = last.filter(|before| others_serve(before, sample)) {
            match &mut found {
                Some(first) => first.times += 1,
                None => {
                    let (from, to) = (eldest(before)?, eldest(sample)?);
                    found = Some(Replacement { before: from, after: to, at_us: before.at_us, times: 1 });
                }
            }
        }
        last = Some(sample);
    }
    found
}

fn servers(sample: &Counters) -> impl Iterator<Item = &Process> {
    sample.processes.iter().filter(|process| process.role == Role::Server)
}

/// Whether all who serve now began later than those before, of whom nobody is left.
fn others_serve(before: &Counters, now: &Counters) -> bool {
    let known: BTreeSet<(u32, u64)> = servers(before).map(key).collect();
    let newest = known.iter().map(|(_, started)| *started).max().unwrap_or(0);
    servers(now).all(|process| !known.contains(&key(process)) && process.started_ticks >= newest)
}

fn key(process: &Process) -> (u32, u64) {
    (process.pid, process.started_ticks)
}

fn eldest(sample: &Counters) -> Option<Processes> {
    let eldest = servers(sample).min_by_key(|process| (process.started_ticks, process.pid))?;
    let (name, pid) = (eldest.name.clone(), Some(eldest.pid));
    Some(Processes { role: Role::Server, name, pid, processes: 1, on: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample in which these serve: number, and when it began.
    fn sample(at_us: u64, serving: &[(u32, u64)]) -> Counters {
        let process = |&(pid, started_ticks): &(u32, u64)| Process {
            pid,
            started_ticks,
            name: "app".into(),
            ..Process::default()
        };
        let generator = Process { pid: 1, role: Role::Generator, ..Process::default() };
        let processes = serving.iter().map(process).chain([generator]).collect();
        Counters { at_us, processes, ..Counters::default() }
    }

    #[test]
    fn a_server_that_ended_and_was_started_anew_is_replaced() {
        let samples = [
            sample(0, &[(10, 5), (11, 6)]),
            sample(250, &[(10, 5)]),
            sample(500, &[]),
            sample(750, &[(20, 90), (21, 91)]),
            sample(1_000, &[(30, 120)]),
        ];
        let found = replaced(&samples).expect("another serves");
        assert_eq!((found.before.pid, found.after.pid), (Some(10), Some(20)));
        assert_eq!((found.at_us, found.times), (250, 2));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_server() {
        assert!(replaced(&[sample(0, &[(10, 5)]), sample(250, &[(10, 90)])]).is_some());
    }

    #[test]
    fn workers_that_come_and_go_replace_nothing() {
        let forked = [sample(0, &[(10, 5), (11, 6)]), sample(250, &[(10, 5), (12, 80)])];
        assert_eq!(replaced(&forked), None);
        let found_late = [sample(0, &[(11, 60)]), sample(250, &[(10, 5)])];
        assert_eq!(replaced(&found_late), None, "it was there before");
        assert_eq!(replaced(&[sample(0, &[(10, 5)]), sample(250, &[])]), None, "nobody serves");
        assert_eq!(replaced(&[]), None);
    }
}
