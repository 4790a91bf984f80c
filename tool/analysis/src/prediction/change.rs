//! What is changed of a system, by the names of a run, and what that does to its model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Refusal;
use super::mix::{self, MixShare};
use super::model::{Device, Model, Tier, is_held};
use super::parts::{Parts, processes_of};
use crate::counters::Role;
use crate::run::{HostName, Identity, ResourceKind};

/// A change of the system or of its load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A tier may use so many processors; where it has a quota, that becomes this.
    Cpus {
        /// The tier.
        name: String,
        /// Processors.
        cpus: f64,
    },
    /// A demand is multiplied.
    Demand {
        /// The demand, such as `nginx.cpu`.
        of: String,
        /// What it is multiplied with: 0.7 for 30 % less.
        factor: f64,
    },
    /// A tier has so many workers, connections, or threads.
    Workers {
        /// The tier.
        name: String,
        /// How many.
        workers: u32,
    },
    /// A link is as fast as this.
    Link {
        /// The link; absent where there is one.
        name: Option<String>,
        /// Its rate.
        bits_per_s: f64,
    },
    /// Every call of a tier or an address takes longer by this.
    UpstreamDelay {
        /// The tier or address.
        name: String,
        /// Microseconds per request.
        added_us: f64,
    },
    /// Users think for so long.
    Think {
        /// Microseconds.
        think_us: f64,
    },
    /// So many more servers of the same kind.
    AddServer {
        /// The tier; absent for the one that users talk to.
        name: Option<String>,
        /// How many more.
        servers: u32,
    },
    /// Kinds of request come in other proportions. Made before other changes, as it is one of what was measured.
    Mix {
        /// The shares of some kinds; the others share what is left in their old proportions.
        shares: Vec<MixShare>,
    },
}

impl Change {
    /// Whether users come at other times after it than before, or with other requests: how irregular times are then does not
    /// show.
    pub(super) fn is_of_load(&self) -> bool {
        matches!(self, Self::Think { .. } | Self::Mix { .. })
    }

    pub(super) fn is_of_mix(&self) -> bool {
        matches!(self, Self::Mix { .. })
    }

    /// Whether both change one thing, or may: without a name a link is the busiest, and servers are those that users talk to.
    fn is_of_same(&self, other: &Self, parts: &Parts) -> bool {
        match (self, other) {
            (Self::Cpus { name: one, .. }, Self::Cpus { name: two, .. })
            | (Self::Demand { of: one, .. }, Self::Demand { of: two, .. })
            | (Self::Workers { name: one, .. }, Self::Workers { name: two, .. })
            | (Self::UpstreamDelay { name: one, .. }, Self::UpstreamDelay { name: two, .. }) => one == two,
            (Self::Link { name: one, .. }, Self::Link { name: two, .. }) => {
                one.is_none() || two.is_none() || one == two
            }
            (Self::AddServer { name: one, .. }, Self::AddServer { name: two, .. }) => match (one, two) {
                (None, Some(name)) | (Some(name), None) => {
                    parts.tiers.iter().any(|tier| tier.of.name == *name && tier.of.role == Role::Server)
                }
                _ => one == two,
            },
            (Self::Think { .. }, Self::Think { .. }) | (Self::Mix { .. }, Self::Mix { .. }) => true,
            _ => false,
        }
    }

    /// Makes it to a model. `parts` tells what the run knows.
    pub(super) fn make(&self, model: &mut Model, parts: &Parts) -> Result<(), Refusal> {
        match self {
            Self::Cpus { name, cpus } => cpus_of(model, name, *cpus),
            Self::Demand { of, factor } => scale(model, of, *factor),
            Self::Workers { name, workers } => workers_of(model, name, *workers),
            Self::Link { name, bits_per_s } => link(model, name.as_deref(), *bits_per_s),
            Self::UpstreamDelay { name, added_us } => delay(model, parts, name, *added_us),
            Self::Think { think_us } => {
                model.think_us = *think_us;
                Ok(())
            }
            Self::AddServer { name, servers } => add_servers(model, name.as_deref(), *servers),
            Self::Mix { shares } => mix::make(model, parts, shares),
        }
    }
}

/// Refuses a second change of one thing: which of the two holds would be a guess.
///
/// # Errors
/// [`Refusal::NamedTwice`] with the later one.
pub(super) fn named_once(changes: &[Change], parts: &Parts) -> Result<(), Refusal> {
    let is_second = |(number, change): &(usize, &Change)| {
        changes.iter().take(*number).any(|earlier| earlier.is_of_same(change, parts))
    };
    match changes.iter().enumerate().find(is_second) {
        Some((_, change)) => Err(Refusal::NamedTwice { change: change.clone() }),
        None => Ok(()),
    }
}

/// Names of the demands that a change can scale, as typed.
pub(super) fn demands(model: &Model) -> Vec<String> {
    let tiers = model.tiers.iter().map(tier_demand);
    let devices = model.devices.iter().map(device_demand);
    let places = model.places.iter().map(places_demand);
    let rest = (model.delay_us > 0.0).then(|| REST.to_owned());
    let mut all: Vec<String> = tiers.chain(devices).chain(places).chain(rest).collect();
    all.dedup();
    all
}

/// The part of the response time that no resource accounts for.
const REST: &str = "rest";

pub(super) fn tier_demand(tier: &Tier) -> String {
    [tier.of.name.as_str(), ".cpu"].concat()
}

pub(super) fn device_demand(device: &Device) -> String {
    let kind = if device.kind == ResourceKind::Disk { ".disk" } else { ".network" };
    [device_name(&device.identity).as_str(), kind].concat()
}

pub(super) fn places_demand(places: &super::model::Places) -> String {
    let kind = if places.kind == ResourceKind::Lock { ".lock" } else { ".pool" };
    [places_name(places).as_str(), kind].concat()
}

/// The name of whoever has the places.
pub(super) fn places_name(places: &super::model::Places) -> String {
    places.holder.as_ref().and_then(processes_of).map(|of| of.name).unwrap_or_default()
}

pub(super) fn device_name(identity: &Identity) -> String {
    match identity {
        Identity::Disk { name, .. } | Identity::Link { name, .. } | Identity::Named { name } => name.clone(),
        Identity::IoLimit(limit) => limit.device.clone(),
        _ => String::new(),
    }
}

fn tier_names(model: &Model) -> Vec<String> {
    let mut names: Vec<String> = model.tiers.iter().map(|tier| tier.of.name.clone()).collect();
    names.dedup();
    names
}

fn unknown_tier(model: &Model, name: &str) -> Refusal {
    Refusal::UnknownName { name: name.to_owned(), known: tier_names(model) }
}

fn cpus_of(model: &mut Model, name: &str, cpus: f64) -> Result<(), Refusal> {
    let mut hosts = Vec::new();
    for tier in model.tiers.iter_mut().filter(|tier| tier.of.name == name) {
        match &mut tier.quota {
            Some(quota) => {
                *quota = cpus;
                tier.cpus = tier.cpus.max(cpus);
            }
            None => tier.cpus = cpus,
        }
        hosts.push(tier.of.on.clone());
    }
    if hosts.is_empty() {
        return Err(unknown_tier(model, name));
    }
    for host in model.hosts.iter_mut().filter(|host| hosts.contains(&host.on)) {
        host.cores = host.cores.max(cpus);
    }
    Ok(())
}

/// Multiplies a demand.
pub(super) fn scale(model: &mut Model, of: &str, factor: f64) -> Result<(), Refusal> {
    let known = demands(model);
    let mut found = false;
    for tier in model.tiers.iter_mut().filter(|tier| tier_demand(tier) == of) {
        tier.cpu_us *= factor;
        found = true;
    }
    for device in model.devices.iter_mut().filter(|device| device_demand(device) == of) {
        device.busy_us *= factor;
        found = true;
    }
    if let Some(places) = model.places.as_mut().filter(|places| places_demand(places) == of) {
        places.delay_us *= factor;
        found = true;
    }
    if of == REST && model.delay_us > 0.0 {
        model.delay_us *= factor;
        found = true;
    }
    if found { Ok(()) } else { Err(Refusal::UnknownName { name: of.to_owned(), known }) }
}

fn workers_of(model: &mut Model, name: &str, workers: u32) -> Result<(), Refusal> {
    if let Some(places) = model.places.as_mut().filter(|places| places_name(places) == name) {
        if places.kind == ResourceKind::Lock {
            return Err(Refusal::ALock { name: name.to_owned() });
        }
        places.count = workers;
        return Ok(());
    }
    if !model.tiers.iter().any(|tier| tier.of.name == name) {
        return Err(unknown_tier(model, name));
    }
    let mut threads = model.tiers.iter_mut().filter(|tier| tier.of.name == name);
    match threads.find(|tier| tier.threads.is_some()) {
        Some(tier) => {
            tier.threads = Some(workers.into());
            Ok(())
        }
        None => Err(Refusal::WorkersUnknown { name: name.to_owned() }),
    }
}

fn link(model: &mut Model, name: Option<&str>, bits_per_s: f64) -> Result<(), Refusal> {
    let is_link = |device: &&mut Device| device.kind == ResourceKind::Network;
    let known: Vec<String> = model
        .devices
        .iter()
        .filter(|device| device.bits_per_s.is_some())
        .map(|device| device_name(&device.identity))
        .collect();
    let named = |device: &&mut Device| name.is_none_or(|name| device_name(&device.identity) == name);
    let links = model.devices.iter_mut().filter(is_link).filter(named);
    let busiest = links.max_by(|a, b| a.busy_us.total_cmp(&b.busy_us));
    let Some((before, link)) = busiest.and_then(|link| Some((link.bits_per_s?, link))) else {
        return Err(match name {
            Some(name) if !known.is_empty() => Refusal::UnknownName { name: name.to_owned(), known },
            _ => Refusal::NoLink,
        });
    };
    link.busy_us *= before / bits_per_s;
    link.bits_per_s = Some(bits_per_s);
    Ok(())
}

/// Calls that are shorter by a little more than all of their time take none: it is known no better than this share of it.
const ALL_OF_IT: f64 = 1.05;

/// Refuses calls that would be shorter by more than the time that there is for them.
///
/// # Errors
/// [`Refusal::ShorterThanCalls`] of the calibrated model; what is drawn around it may have a little less time.
pub(super) fn refuse_shorter(model: &Model, parts: &Parts, changes: &[Change]) -> Result<(), Refusal> {
    let mut model = model.clone();
    for change in changes {
        if let Change::UpstreamDelay { name, added_us } = change {
            let (name, shorter_us) = (name.clone(), -added_us);
            let at_most_us = *called_us(&mut model, parts, &name)?;
            if shorter_us > ALL_OF_IT * at_most_us {
                return Err(Refusal::ShorterThanCalls { name, shorter_us, at_most_us });
            }
        }
        change.make(&mut model, parts)?;
    }
    Ok(())
}

fn delay(model: &mut Model, parts: &Parts, name: &str, added_us: f64) -> Result<(), Refusal> {
    let own = called_us(model, parts, name)?;
    *own = (*own + added_us).max(0.0);
    Ok(())
}

/// The time that calls are part of, which no resource accounts for. A call is made while a place is held where the places are
/// those of who calls.
fn called_us<'a>(model: &'a mut Model, parts: &Parts, name: &str) -> Result<&'a mut f64, Refusal> {
    let Some(at) = parts.behind.iter().position(|known| known == name) else {
        return Err(match parts.behind.is_empty() {
            true => Refusal::NothingBehind,
            false => Refusal::UnknownName { name: name.to_owned(), known: parts.behind.clone() },
        });
    };
    let Some(places) = &mut model.places else { return Ok(&mut model.delay_us) };
    if places.kind == ResourceKind::Lock && places_name(places) != name {
        return Err(Refusal::InTheLock { name: name.to_owned() });
    }
    let holder = parts.behind.iter().position(|known| *known == places_name(places));
    let inside = holder.is_none_or(|holder| holder < at);
    Ok(if inside { &mut places.delay_us } else { &mut model.delay_us })
}

/// Whether servers are added to this tier: without a name to those that users talk to.
fn is_added_to(tier: &Tier, name: Option<&str>) -> bool {
    match name {
        Some(name) => tier.of.name == name,
        None => tier.of.role == Role::Server,
    }
}

/// The host of a disk or a link; `None` of other devices.
fn host_of(device: &Device) -> Option<&HostName> {
    match &device.identity {
        Identity::Disk { on, .. } | Identity::Link { on, .. } => Some(on),
        _ => None,
    }
}

/// Whether servers are added to any tier on this host, and whether to all that are there.
fn are_added_on(tiers: &[Tier], on: &HostName, name: Option<&str>) -> (bool, bool) {
    let there = tiers.iter().filter(|tier| tier.of.on == *on);
    let added: Vec<bool> = there.map(|tier| is_added_to(tier, name)).collect();
    (added.contains(&true), !added.contains(&false))
}

/// Disks and links that added servers do not bring, as changes call their demands: other tiers on their host use them as well,
/// and how much of that use is whose does not show.
pub(super) fn shared_devices(model: &Model, name: Option<&str>) -> Vec<String> {
    let is_shared = |device: &&Device| {
        host_of(device).is_some_and(|on| are_added_on(&model.tiers, on, name) == (true, false))
    };
    model.devices.iter().filter(is_shared).map(device_demand).collect()
}

fn add_servers(model: &mut Model, name: Option<&str>, servers: u32) -> Result<(), Refusal> {
    let times = f64::from(servers) + 1.0;
    let served = |model: &Model| model.slow.map(|slow| model.servers_at(slow.at));
    let before = served(model);
    let mut copied = Vec::new();
    for tier in model.tiers.iter_mut().filter(|tier| is_added_to(tier, name)) {
        tier.cpus *= times;
        tier.quota = tier.quota.map(|quota| quota * times);
        tier.threads = tier.threads.map(|threads| threads * times);
        copied.push(tier.of.clone());
    }
    if copied.is_empty() {
        return Err(name.map_or(Refusal::NoServer, |name| unknown_tier(model, name)));
    }
    let of_copied = |holder: Option<&Identity>| copied.iter().any(|of| is_held(of, holder));
    if let Some(places) = model.places.as_mut().filter(|places| of_copied(places.holder.as_ref())) {
        places.count = places.count.saturating_mul(servers.saturating_add(1));
    }
    if let Some(ceiling) = model.ceiling.as_mut().filter(|of| of_copied(of.holder.as_ref())) {
        ceiling.per_s *= times;
    }
    for host in model.hosts.iter_mut().filter(|host| copied.iter().any(|of| of.on == host.on)) {
        host.cores *= times;
    }
    let tiers = &model.tiers;
    let is_brought = |device: &&mut Device| match &device.identity {
        Identity::IoLimit(limit) => copied.contains(&limit.of),
        _ => host_of(device).is_some_and(|on| are_added_on(tiers, on, name) == (true, true)),
    };
    model.devices.iter_mut().filter(is_brought).for_each(|device| device.servers *= times);
    let after = served(model);
    if let (Some(slow), Some(before), Some(after)) = (&mut model.slow, before, after) {
        slow.by = slow.by.shared(after / before);
    }
    Ok(())
}
