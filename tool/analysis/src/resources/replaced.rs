//! Servers, and tiers behind them, that ended while they were watched, and what took their place.

use std::collections::{BTreeMap, BTreeSet};

use crate::counters::{Counters, Process, Role, ServerAddress};
use crate::run::{HostName, Processes};

/// A server, or a tier behind it, that ended, and another that has served since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// What served before: its eldest process, which forked the others where they were forked.
    pub before: Processes,
    /// The same of what served after it.
    pub after: Processes,
    /// The last sample that found the former, microseconds of the monotonic clock. Of a tier behind the server, the last one
    /// that looked at its connections.
    pub at_us: u64,
    /// How often it was replaced in all.
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

/// What was replaced, in samples in the order of time: the server first, then tiers behind it, each name once and with its
/// first time.
pub fn replaced(samples: &[Counters]) -> Vec<Replacement> {
    server(samples).into_iter().chain(behind(samples)).collect()
}

/// None of the processes that the load calls is left, and others serve.
fn server(samples: &[Counters]) -> Option<Replacement> {
    let serving = samples.iter().map(|sample| Serving::new(sample, |process| process.role == Role::Server));
    let mut all = Vec::new();
    let mut last: Option<Serving<'_>> = None;
    for now in serving.filter(|serving| !serving.processes.is_empty()) {
        all.extend(last.as_ref().and_then(|before| before.replaced_by(&now)));
        last = Some(now);
    }
    counted(all)
}

/// What listened at an address behind the server has ended with all other processes of its name, and another of that name
/// listens there. A name alone tells less: workers may all end and come again with the load, such as programs that are run
/// for one request. Those do not listen. What listens at another address serves something else.
fn behind(samples: &[Counters]) -> Vec<Replacement> {
    let looks: Vec<Look<'_>> = samples.iter().filter_map(Look::new).collect();
    let mut last: BTreeMap<&ServerAddress, &Look<'_>> = BTreeMap::new();
    let mut found: BTreeMap<String, Vec<Replacement>> = BTreeMap::new();
    for look in &looks {
        for address in look.listening.keys().copied() {
            let before = last.insert(address, look);
            let Some(one) = before.and_then(|before| look.replaces(before, address)) else { continue };
            let of_name = found.entry(one.before.name.clone()).or_default();
            // One that listens at several addresses was replaced once.
            if of_name.iter().all(|other| other.after != one.after) {
                of_name.push(one);
            }
        }
    }
    found.into_values().filter_map(counted).collect()
}

/// The first of several, with their number.
fn counted(all: Vec<Replacement>) -> Option<Replacement> {
    let times = all.len() as u64;
    Some(Replacement { times, ..all.into_iter().next()? })
}

/// Processes that serve together, as one sample found them.
struct Serving<'a> {
    at_us: u64,
    processes: Vec<&'a Process>,
}

impl<'a> Serving<'a> {
    fn new(sample: &'a Counters, serves: impl Fn(&Process) -> bool) -> Self {
        let processes = sample.processes.iter().filter(|process| serves(process)).collect();
        Self { at_us: sample.at_us, processes }
    }

    /// What serves now, if nobody of these is left and all of those began later. Workers that come and go under one that stays
    /// replace nothing.
    fn replaced_by(&self, now: &Self) -> Option<Replacement> {
        let known: BTreeSet<(u32, u64)> = self.processes.iter().map(|process| key(process)).collect();
        let newest = known.iter().map(|(_, started)| *started).max()?;
        let is_other = |process: &Process| !known.contains(&key(process)) && process.started_ticks >= newest;
        if !now.processes.iter().all(|process| is_other(process)) {
            return None;
        }
        Some(Replacement { before: self.eldest()?, after: now.eldest()?, at_us: self.at_us, times: 1 })
    }

    fn eldest(&self) -> Option<Processes> {
        let eldest = self.processes.iter().min_by_key(|process| (process.started_ticks, process.pid))?;
        let (name, pid) = (eldest.name.clone(), Some(eldest.pid));
        Some(Processes { role: eldest.role, name, pid, processes: 1, on: None })
    }
}

/// Which processes behind the server listen, as one look at the connections found them.
struct Look<'a> {
    sample: &'a Counters,
    listening: BTreeMap<&'a ServerAddress, Vec<&'a Process>>,
}

impl<'a> Look<'a> {
    fn new(sample: &'a Counters) -> Option<Self> {
        let hops = sample.hops.as_ref()?;
        let behind = sample.processes.iter().filter(|process| process.role == Role::Downstream);
        let behind: BTreeMap<u32, &Process> = behind.map(|process| (process.pid, process)).collect();
        let mut listening: BTreeMap<&ServerAddress, Vec<&Process>> = BTreeMap::new();
        for hop in hops {
            // Whoever opened a socket that others have since may be gone.
            if let Some(process) = hop.server.and_then(|pid| behind.get(&pid).copied()) {
                listening.entry(&hop.address).or_default().push(process);
            }
        }
        Some(Self { sample, listening })
    }

    /// What took the place of the tier that an earlier look found at an address, if that has ended.
    fn replaces(&self, before: &Self, address: &ServerAddress) -> Option<Replacement> {
        let then = before.at(address);
        // Nearly always the same process still listens, which saves the search among many.
        if self.at(address).iter().any(|one| then.iter().any(|other| key(one) == key(other))) {
            return None;
        }
        let replaced = before.tier(address).replaced_by(&self.tier(address))?;
        (replaced.before.name == replaced.after.name).then_some(replaced)
    }

    fn at(&self, address: &ServerAddress) -> &[&'a Process] {
        self.listening.get(address).map(Vec::as_slice).unwrap_or_default()
    }

    /// The processes of the tier that listens at an address: all of its name, without those that only listen elsewhere, such
    /// as another service in the same language.
    fn tier(&self, address: &ServerAddress) -> Serving<'a> {
        let here = self.at(address);
        let listens_elsewhere = |pid: u32| {
            let is_here = here.iter().any(|one| one.pid == pid);
            !is_here && self.listening.values().flatten().any(|one| one.pid == pid)
        };
        Serving::new(self.sample, |process| {
            process.role == Role::Downstream
                && here.iter().any(|one| one.name == process.name)
                && !listens_elsewhere(process.pid)
        })
    }
}

/// What names a process for good.
fn key(process: &Process) -> (u32, u64) {
    (process.pid, process.started_ticks)
}

#[cfg(test)]
mod tests;
