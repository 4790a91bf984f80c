//! The model of a run: stations, places, delays and ceilings, made to meet what was measured.
//!
//! Its response time lies between two that are exact: that of constant times, which is the asymptotic bound
//! max(R(1), N D - Z) (Muntz and Wong 1974; Denning and Buzen 1978), and that of exponential ones, which is the product form
//! network's. Where between is one number, the `irregularity`, fitted to the steps: 0 is constant, 1 exponential. Both ends
//! grow with every demand, and so does what lies between.

use super::network::{Rates, requests, served_per_s};
use super::parts::{Parts, processes_of};
use super::slowdown::{Slowdown, Slowed};
use super::solved::{Falling, Solved};
use crate::counters::Role;
use crate::run::{HostName, Identity, Processes, ResourceKind};
use crate::thresholds::SATURATED;

/// A tier's processors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tier {
    pub(super) of: Processes,
    shown: Identity,
    pub(super) cpu_us: f64,
    pub(super) cpus: f64,
    pub(super) quota: Option<f64>,
    pub(super) threads: Option<f64>,
    /// What it got of them in saturation, as a share of what its limits give.
    attained: f64,
    /// Whether a request holds a place meanwhile.
    inside: bool,
}

/// A device or a link.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Device {
    pub(super) identity: Identity,
    pub(super) kind: ResourceKind,
    pub(super) busy_us: f64,
    pub(super) servers: f64,
    pub(super) bits_per_s: Option<f64>,
}

/// All processors of a host.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Host {
    pub(super) on: HostName,
    /// What a request costs besides what the tiers use.
    others_us: f64,
    pub(super) cores: f64,
    attained: f64,
}

/// A number of places, one of which a request holds for a time: a pool of workers or of connections, or a lock, which has one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Places {
    pub(super) kind: ResourceKind,
    pub(super) holder: Option<Identity>,
    pub(super) count: u32,
    /// Time in a place that no processor accounts for.
    pub(super) delay_us: f64,
}

/// A limit of which only the throughput is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ceiling {
    pub(super) kind: ResourceKind,
    pub(super) holder: Option<Identity>,
    pub(super) per_s: f64,
    /// One over it in the run, where a request takes as long: it may be time spent there, one at a time.
    pub(super) held_us: Option<f64>,
}

/// A model, calibrated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    pub(super) think_us: f64,
    pub(super) tiers: Vec<Tier>,
    pub(super) devices: Vec<Device>,
    pub(super) hosts: Vec<Host>,
    pub(super) places: Option<Places>,
    pub(super) ceiling: Option<Ceiling>,
    /// Time outside the places that no resource accounts for.
    pub(super) delay_us: f64,
    pub(super) irregularity: f64,
    /// The share of the maximum throughput that counts as saturated.
    pub(super) saturated: f64,
    /// How the bottleneck of the run slows down the more wait for it.
    pub(super) slow: Option<Slow>,
}

/// A slowdown, and where it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slow {
    pub(super) at: At,
    pub(super) by: Slowdown,
}

/// A part of a model; those of several by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Tier(usize),
    Device(usize),
    Ceiling,
    Places,
}

/// More places, or servers, than this are not queued for one by one: they delay, and bound.
const SERVERS_MAX: f64 = 300.0;

/// Limits that differ by less than this share are the same.
const SAME: f64 = 1e-6;

impl Tier {
    pub(super) fn limit_kind(&self) -> ResourceKind {
        let cpus = self.cpus.min(self.quota.unwrap_or(f64::INFINITY));
        match self.threads {
            Some(threads) if threads <= cpus => ResourceKind::SingleThread,
            _ if self.quota.is_some_and(|quota| quota <= self.cpus) => ResourceKind::CpuQuota,
            _ => ResourceKind::Cpu,
        }
    }

    pub(super) fn servers(&self) -> f64 {
        let given = [self.quota, self.threads].into_iter().flatten().fold(self.cpus, f64::min);
        given * self.attained
    }

    fn limit_per_s(&self) -> f64 {
        self.servers() / self.cpu_us * 1e6
    }

    pub(super) fn identity(&self) -> Identity {
        match self.limit_kind() {
            _ if matches!(self.shown, Identity::Named { .. }) => self.shown.clone(),
            ResourceKind::SingleThread => Identity::Thread(self.of.clone()),
            ResourceKind::CpuQuota => Identity::Quota(self.of.clone()),
            _ => Identity::Processes(self.of.clone()),
        }
    }
}

impl Model {
    /// Builds the model of these parts and calibrates it: with one user it responds as measured, and its throughput has the
    /// measured maximum.
    pub(super) fn of(parts: &Parts) -> Self {
        let mut model = Self {
            think_us: parts.think_us,
            tiers: tiers(parts),
            devices: devices(parts),
            hosts: Vec::new(),
            places: None,
            ceiling: None,
            delay_us: 0.0,
            irregularity: 0.0,
            saturated: SATURATED,
            slow: None,
        };
        model.hosts = hosts(parts, &model.tiers);
        model.hold(parts);
        let alone_us = model.solved().response_us(1);
        model.delay_us = (parts.alone_us.value - alone_us).max(0.0);
        model
    }

    /// Makes the bottleneck what it was in the run.
    fn hold(&mut self, parts: &Parts) {
        let max = parts.throughput_max_per_s.value;
        let count = match (parts.kind, parts.at_a_time) {
            (ResourceKind::Lock, count) => Some(count.unwrap_or(1)),
            (ResourceKind::WorkerPool | ResourceKind::ConnectionPool, count) => count,
            _ => None,
        };
        let (kind, holder) = (parts.kind, parts.holder.clone());
        match count {
            Some(count) => self.hold_places(Places { kind, holder, count, delay_us: 0.0 }, parts),
            None if self.station(parts).is_none() => {
                let held_us = Some(1e6 / max).filter(|held_us| *held_us <= parts.alone_us.value);
                self.ceiling = Some(Ceiling { kind, holder, per_s: max, held_us });
            }
            None => {}
        }
    }

    /// The bottleneck, where it is one of the stations.
    fn station(&self, parts: &Parts) -> Option<At> {
        let holder = parts.holder.as_ref();
        match parts.kind {
            ResourceKind::Cpu | ResourceKind::SingleThread | ResourceKind::CpuQuota => {
                self.tiers.iter().position(|tier| is_held(&tier.of, holder)).map(At::Tier)
            }
            _ => self.devices.iter().position(|of| Some(&of.identity) == holder).map(At::Device),
        }
    }

    /// The bottleneck of the run.
    pub(super) fn bottleneck(&self, parts: &Parts) -> Option<At> {
        match (&self.places, &self.ceiling) {
            (Some(_), _) => Some(At::Places),
            (None, Some(_)) => Some(At::Ceiling),
            (None, None) => self.station(parts),
        }
    }

    /// How many it serves at a time.
    pub(super) fn servers_at(&self, at: At) -> f64 {
        let servers = match at {
            At::Tier(index) => self.tiers.get(index).map(Tier::servers),
            At::Device(index) => self.devices.get(index).map(|of| of.servers),
            At::Ceiling => self.ceiling.as_ref().and_then(|of| Some(of.per_s * of.held_us? / 1e6)),
            At::Places => self.places.as_ref().map(|of| of.count.into()),
        };
        servers.unwrap_or(1.0)
    }

    /// What the processors that a tier may use would serve per second if it got all of them; `None` of other parts.
    pub(super) fn given_per_s(&self, at: At) -> Option<f64> {
        let At::Tier(index) = at else { return None };
        self.tiers.get(index).map(|tier| tier.limit_per_s() / tier.attained)
    }

    /// The most that it serves per second, and how long one request is there alone, microseconds.
    pub(super) fn limit_at(&self, at: At) -> Option<(f64, f64)> {
        let of_servers = |busy_us: f64, servers: f64| (servers / busy_us * 1e6, busy_us / servers.min(1.0));
        match at {
            At::Tier(index) => self.tiers.get(index).map(|tier| of_servers(tier.cpu_us, tier.servers())),
            At::Device(index) => self.devices.get(index).map(|of| of_servers(of.busy_us, of.servers)),
            At::Ceiling => self
                .ceiling
                .as_ref()
                .map(|of| (of.per_s, of.held_us.map_or(0.0, |held_us| held_us.max(1e6 / of.per_s)))),
            At::Places => {
                self.confined().map(|rates| (rates.limit_per_s(), 1e6 / served_per_s(Some(&rates), 0.0, 1)))
            }
        }
    }

    /// The throughput that all others allow, of a model that one part stops. Where that is a tier, so may be its host.
    pub(super) fn others_allow_per_s(&self, at: At) -> f64 {
        let tiers = self.tiers.iter().enumerate().filter(|(index, _)| at != At::Tier(*index));
        let devices = self.devices.iter().enumerate().filter(|(index, _)| at != At::Device(*index));
        let hosts = self.hosts.iter().filter(|_| !matches!(at, At::Tier(_)));
        let tiers = tiers.map(|(_, tier)| tier.limit_per_s());
        let devices = devices.map(|(_, of)| of.servers / of.busy_us * 1e6);
        let hosts = hosts.map(|host| self.host_limit_per_s(host));
        tiers.chain(devices).chain(hosts).fold(f64::INFINITY, f64::min)
    }

    /// The slowdown at the servers of its part.
    pub(super) fn slowed_by(&self, slow: Slow) -> Slowed {
        Slowed { by: slow.by, servers: self.servers_at(slow.at).max(1.0) }
    }

    /// The rates of a part, which are lower where it is the one that slows down.
    fn slowed(&self, at: At, rates: Rates) -> Rates {
        match self.slow {
            Some(slow) if slow.at == at => rates.slowed(self.slowed_by(slow)),
            _ => rates,
        }
    }

    /// How throughput falls, where the part that slows down is the one that requests wait for. If there is an end to how slow it
    /// gets, that is so also where only a host allows less: a host is no queue of its own, and who waits for it waits at a part.
    fn falling(&self, alone_us: f64, limits: &[Limit]) -> Option<Falling> {
        let slow = self.slow?;
        let (per_s, held_us) = self.limit_at(slow.at)?;
        let has_end = slow.by.factor_max().is_some();
        let is_queue = |limit: &&Limit| !matches!(limit.identity, Some(Identity::Host { .. }));
        let lowest = if has_end { limits.iter().find(is_queue) } else { limits.first() };
        let is_first = lowest.is_none_or(|limit| per_s <= limit.per_s * (1.0 + SAME));
        let elsewhere_us = (alone_us - held_us).max(0.0);
        is_first.then(|| Falling { by: self.slowed_by(slow), per_s, elsewhere_us })
    }

    /// Puts the work of processors inside the places or outside, and finds the time that a place is held besides.
    fn hold_places(&mut self, mut places: Places, parts: &Parts) {
        let max = parts.throughput_max_per_s.value;
        let held_us = f64::from(places.count) / max * 1e6;
        let outside_us = parts.alone_us.value - held_us;
        let behind = places.holder.as_ref().and_then(processes_of).is_some_and(|of| of.role != Role::Server);
        let cpu_us: f64 = self.tiers.iter().map(|tier| tier.cpu_us).sum();
        let fits_outside = places.kind == ResourceKind::Lock && cpu_us <= outside_us;
        for tier in &mut self.tiers {
            let before = behind && tier.of.role == Role::Server;
            tier.inside = !(fits_outside || before);
        }
        places.delay_us = held_us;
        let reached = |model: &mut Self, delay_us: f64| {
            model.places = Some(Places { delay_us, ..places.clone() });
            model.places_limit_per_s().unwrap_or(f64::INFINITY)
        };
        if reached(self, 0.0) < max {
            self.tiers.iter_mut().for_each(|tier| tier.inside = false);
        }
        let (mut low, mut high) = (0.0, held_us);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if reached(self, middle) > max { low = middle } else { high = middle }
        }
        reached(self, high);
    }

    fn requests(&self) -> usize {
        let servers =
            self.tiers.iter().map(Tier::servers).chain(self.places.iter().map(|of| of.count.into()));
        let most = servers.filter(|servers| *servers <= SERVERS_MAX).fold(1.0, f64::max);
        requests(most + self.slow.map_or(0.0, |slow| slow.by.onset))
    }

    /// The stations of tiers that are inside the places or not; of those with very many servers the delay.
    fn stations(&self, inside: bool) -> (Vec<Rates>, f64) {
        let requests = self.requests();
        let (mut queues, mut delay_us) = (Vec::new(), 0.0);
        for (index, tier) in self.tiers.iter().enumerate() {
            if tier.inside != inside || tier.cpu_us <= 0.0 {
                continue;
            }
            if tier.servers() <= SERVERS_MAX {
                let rates = Rates::of_servers(tier.cpu_us, tier.servers(), requests);
                queues.push(self.slowed(At::Tier(index), rates));
            } else {
                delay_us += tier.cpu_us;
            }
        }
        (queues, delay_us)
    }

    /// The limit of [`Self::confined`], without the rates below it.
    fn places_limit_per_s(&self) -> Option<f64> {
        let places = self.places.as_ref()?;
        let (inside, delay_us) = self.stations(true);
        let inside = Rates::joined(&inside);
        Some(served_per_s(inside.as_ref(), places.delay_us + delay_us, places.count))
    }

    /// The places with all that is inside.
    fn confined(&self) -> Option<Rates> {
        let places = self.places.as_ref()?;
        let (inside, delay_us) = self.stations(true);
        let inside = Rates::joined(&inside);
        let requests = self.requests().max(places.count.min(1_000) as usize);
        let rates = Rates::confined(inside.as_ref(), places.delay_us + delay_us, places.count, requests);
        Some(self.slowed(At::Places, rates))
    }

    /// The whole network.
    pub(super) fn solved(&self) -> Solved {
        let (mut stations, mut delay_us) = self.stations(false);
        let requests = self.requests();
        let devices = self.devices.iter().enumerate().filter(|(_, device)| device.busy_us > 0.0);
        stations.extend(devices.map(|(index, of)| {
            self.slowed(At::Device(index), Rates::of_servers(of.busy_us, of.servers, requests))
        }));
        let ceiling = self.ceiling.iter().filter_map(|of| Some((of.held_us?, of.per_s)));
        stations.extend(ceiling.map(|(held_us, per_s)| {
            self.slowed(At::Ceiling, Rates::of_servers(held_us, per_s * held_us / 1e6, requests))
        }));
        let confined = self.confined();
        let many = self.places.as_ref().is_some_and(|places| f64::from(places.count) > SERVERS_MAX);
        match confined {
            Some(rates) if many => delay_us += 1e6 / served_per_s(Some(&rates), 0.0, 1),
            Some(rates) => stations.push(rates),
            None => {}
        }
        let stations = Rates::joined(&stations);
        let delay_us = delay_us + self.delay_us;
        let limits = self.limits();
        let limit_per_s = limits.first().map_or(f64::INFINITY, |limit| limit.per_s);
        let alone_us = 1e6 / served_per_s(stations.as_ref(), delay_us, 1);
        let alone_us = if alone_us.is_finite() { alone_us } else { delay_us };
        Solved {
            stations,
            delay_us,
            think_us: self.think_us,
            limit_per_s,
            alone_us,
            irregularity: self.irregularity,
            saturated: self.saturated,
            falling: self.falling(alone_us, &limits),
        }
    }

    /// Every limit on throughput with which the model is solved, the lowest first.
    pub(super) fn limits(&self) -> Vec<Limit> {
        self.limits_by(|_, per_s| per_s)
    }

    /// Every limit on throughput while users queue, the lowest first: what stops the system, and what comes next. A part that is
    /// slower as soon as requests wait serves less then. Places whose holders wait for a full tier do not stop it: by themselves
    /// they would allow more.
    pub(super) fn limits_while_queued(&self) -> Vec<Limit> {
        self.limits_by(|at, per_s| {
            let alone_per_s = match at {
                At::Places => self.places_behind_a_full_tier_per_s(per_s),
                _ => None,
            };
            let longer = self.slow.filter(|slow| slow.at == at).and_then(|slow| slow.by.factor_max());
            alone_per_s.unwrap_or(per_s) / longer.unwrap_or(1.0)
        })
    }

    /// What the places would allow if nobody waited inside them, where those who hold one wait for a tier that is full.
    fn places_behind_a_full_tier_per_s(&self, per_s: f64) -> Option<f64> {
        let places = self.places.as_ref()?;
        let (_, held_us) = self.limit_at(At::Places)?;
        let alone_per_s = f64::from(places.count) / held_us * 1e6;
        let is_full = |tier: &Tier| {
            let limit_per_s = tier.limit_per_s();
            tier.inside && per_s >= SATURATED * limit_per_s && alone_per_s > limit_per_s * (1.0 + SAME)
        };
        self.tiers.iter().any(is_full).then_some(alone_per_s)
    }

    /// Every limit, the lowest first; those of parts as `shown` has them.
    fn limits_by(&self, shown: impl Fn(At, f64) -> f64) -> Vec<Limit> {
        let limit = |kind, identity, per_s| Limit { kind, identity, per_s };
        let tiers = self.tiers.iter().enumerate().map(|(index, tier)| {
            let per_s = shown(At::Tier(index), tier.limit_per_s());
            limit(tier.limit_kind(), Some(tier.identity()), per_s)
        });
        let devices = self.devices.iter().enumerate().map(|(index, of)| {
            let per_s = shown(At::Device(index), of.servers / of.busy_us * 1e6);
            limit(of.kind, Some(of.identity.clone()), per_s)
        });
        let hosts = self.hosts.iter().map(|host| {
            let identity = Some(Identity::Host { on: host.on.clone() });
            limit(ResourceKind::Cpu, identity, self.host_limit_per_s(host))
        });
        let ceiling =
            self.ceiling.iter().map(|of| limit(of.kind, of.holder.clone(), shown(At::Ceiling, of.per_s)));
        let places = self.places.iter().zip(self.confined());
        let places = places
            .map(|(of, rates)| limit(of.kind, of.holder.clone(), shown(At::Places, rates.limit_per_s())));
        let mut all: Vec<Limit> = tiers.chain(devices).collect();
        // What is inside the places does not hold more than they do: of equals, the places are named.
        all.splice(0..0, ceiling.chain(places));
        all.extend(hosts);
        all.retain(|limit| limit.per_s.is_finite());
        all.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
        all
    }

    fn host_limit_per_s(&self, host: &Host) -> f64 {
        let tiers = self.tiers.iter().filter(|tier| tier.of.on == host.on);
        let cpu_us = tiers.map(|tier| tier.cpu_us).sum::<f64>() + host.others_us;
        host.cores * host.attained / cpu_us * 1e6
    }
}

/// A limit on throughput.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Limit {
    pub(super) kind: ResourceKind,
    pub(super) identity: Option<Identity>,
    pub(super) per_s: f64,
}

/// Whether a tier is that of the holder.
pub(super) fn is_held(tier: &Processes, holder: Option<&Identity>) -> bool {
    holder.and_then(processes_of).is_some_and(|of| of.name == tier.name && of.on == tier.on)
}

/// Every tier. One that got less of its processors than it may use keeps that share when it gets others; one that reached
/// more throughput than its limits give had more.
fn tiers(parts: &Parts) -> Vec<Tier> {
    let max = parts.throughput_max_per_s.value;
    let bound = matches!(parts.kind, ResourceKind::Cpu | ResourceKind::SingleThread | ResourceKind::CpuQuota);
    let of = |part: &super::parts::TierPart| {
        let mut tier = Tier {
            of: part.of.clone(),
            shown: part.shown.clone(),
            cpu_us: part.cpu_us.value,
            cpus: part.cpus,
            quota: part.quota,
            threads: part.threads,
            attained: 1.0,
            inside: false,
        };
        let share = max / tier.limit_per_s();
        let is_bottleneck = bound && is_held(&part.of, parts.holder.as_ref());
        if share > 1.0 || (is_bottleneck && share * tier.servers() >= 1.0) {
            tier.attained = share;
        } else if is_bottleneck {
            // Less than one server is not less parallel: each request takes longer.
            tier.cpu_us /= share;
        }
        tier
    };
    parts.tiers.iter().map(of).collect()
}

fn devices(parts: &Parts) -> Vec<Device> {
    let full_us = 1e6 / parts.throughput_max_per_s.value;
    let of = |part: &super::parts::DevicePart| Device {
        identity: part.identity.clone(),
        kind: part.kind,
        busy_us: match Some(&part.identity) == parts.holder.as_ref() {
            true => full_us,
            false => part.busy_us.value.min(full_us),
        },
        servers: 1.0,
        bits_per_s: part.bits_per_s,
    };
    parts.devices.iter().map(of).collect()
}

fn hosts(parts: &Parts, tiers: &[Tier]) -> Vec<Host> {
    let max = parts.throughput_max_per_s.value;
    let of = |part: &super::parts::HostPart| {
        let own: f64 = tiers.iter().filter(|tier| tier.of.on == part.on).map(|tier| tier.cpu_us).sum();
        let cpu_us = part.cpu_us.value.max(own);
        let attained = (max * cpu_us / 1e6 / part.cores).max(1.0);
        Host { on: part.on.clone(), others_us: cpu_us - own, cores: part.cores, attained }
    };
    parts.hosts.iter().map(of).collect()
}
