//! The use of resources as several observers saw it, as one.
//!
//! Each observer's samples are stamped by its own clock and count the processors of its own host, so each is reduced to
//! rates by itself; only these are put together.

use super::{Hops, HostUse, LeftOut, Listening, Usage};
use crate::counters::Role;
use crate::run::HostName;

/// Where an observer stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observer {
    /// The name of what it sees processes in: a host, or a container on one; `None`: what the generator runs in.
    pub place: HostName,
    /// The name of the host whose processors, disks and memory it sees; `None`: the generator's.
    pub machine: HostName,
    /// Whether another observer sees the same processors, disks and memory, so that they must not be counted twice.
    pub is_second: bool,
}

impl Usage {
    /// The same as seen by an observer that is not beside the generator.
    #[must_use]
    pub fn seen_by(mut self, observer: &Observer) -> Self {
        let (place, machine) = (&observer.place, &observer.machine);
        self.groups.retain(|group| group.role != Role::Generator);
        for group in &mut self.groups {
            (group.on, group.machine) = (place.clone(), machine.clone());
        }
        self.links.iter_mut().for_each(|link| link.on.clone_from(place));
        self.memory_limits.iter_mut().for_each(|limit| limit.on.clone_from(place));
        self.memory_known_on.iter_mut().for_each(|on| on.clone_from(place));
        self.hops.move_to(place);
        self.disks.iter_mut().for_each(|disk| disk.on.clone_from(machine));
        self.hosts.iter_mut().for_each(|host| host.name.clone_from(machine));
        let of_machine = (!observer.is_second).then_some(machine);
        let meanwhile = std::mem::take(&mut self.meanwhile).into_iter();
        self.meanwhile = meanwhile.filter_map(|seen| seen.seen_at(place, of_machine)).collect();
        if observer.is_second {
            self.hosts.clear();
            self.disks.clear();
        }
        self
    }

    /// This, as seen beside the generator, together with what an observer elsewhere saw.
    #[must_use]
    pub fn joined_with(mut self, other: Self) -> Self {
        let serves = other.observed();
        self.samples = match (self.observed(), serves) {
            (false, true) => other.samples,
            (true, true) => self.samples.min(other.samples),
            (_, false) => self.samples,
        };
        self.elapsed_us = self.elapsed_us.max(other.elapsed_us);
        self.groups.extend(other.groups);
        self.hosts.extend(other.hosts);
        self.disks.extend(other.disks);
        self.links.extend(other.links);
        self.memory_limits.extend(other.memory_limits);
        self.memory_known_on.extend(other.memory_known_on);
        self.meanwhile.extend(other.meanwhile);
        self.listening = self.listening.beside(other.listening);
        self.hops = self.hops.beside(other.hops);
        let table = |table: &super::TableUse| table.connections as f64 / table.most.max(1) as f64;
        self.tracked = fuller(self.tracked, other.tracked, table);
        let ports = |ports: &super::PortUse| ports.used as f64 / ports.ports.max(1) as f64;
        self.ports = fuller(self.ports, other.ports, ports);
        self
    }
}

fn fuller<T>(one: Option<T>, other: Option<T>, fill: impl Fn(&T) -> f64) -> Option<T> {
    [one, other].into_iter().flatten().max_by(|a, b| fill(a).total_cmp(&fill(b)))
}

impl Hops {
    fn move_to(&mut self, place: &HostName) {
        for tier in &mut self.tiers {
            tier.server.iter_mut().chain(&mut tier.callers).for_each(|key| key.on.clone_from(place));
        }
        self.left_out.iter_mut().for_each(|seen| seen.on.clone_from(place));
    }

    fn beside(mut self, other: Self) -> Self {
        self.looks = match (self.looks, other.looks) {
            (0, looks) | (looks, 0) => looks,
            (one, other) => one.min(other),
        };
        self.tiers.extend(other.tiers);
        self.left_out = LeftOut::worse(self.left_out, other.left_out);
        self
    }
}

impl Listening {
    /// Queues of the server's side from either, and what only the generator's side can count from this one.
    fn beside(self, other: Self) -> Self {
        let fill = |queue: &(u16, u64, u64)| queue.1 as f64 / queue.2.max(1) as f64;
        Self {
            overflows_per_s: self.overflows_per_s + other.overflows_per_s,
            drops_per_s: self.drops_per_s + other.drops_per_s,
            fullest: fuller(self.fullest, other.fullest, fill),
            full: self.full.max(other.full),
            retried_per_s: self.retried_per_s,
            retransmitted: self.retransmitted.max(other.retransmitted),
        }
    }
}

impl HostUse {
    /// Whether this is the host.
    pub(crate) fn is(&self, name: &HostName) -> bool {
        self.name == *name
    }
}
