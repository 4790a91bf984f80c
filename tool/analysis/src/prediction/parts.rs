//! What of a run goes into its model: the figures with their intervals, and the holder of the bottleneck.

use crate::counters::{Role, ServerAddress};
use crate::laws::lost_in_failures;
use crate::prediction::Refusal;
use crate::prediction::kinds::{KindPart, kinds};
use crate::prediction::solved::USERS_MAX;
use crate::run::{HostName, Identity, NodeKind, Processes, Resource, ResourceKind, Run, Step, Unit};
use crate::statistics::{NORMAL_95, t_95};
use crate::thresholds::{LOADED, NEGLIGIBLE_US};

/// A figure and its standard error as a share of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub(super) value: f64,
    pub(super) error: f64,
}

impl Figure {
    /// The variance of a figure of a step, as a share of its square.
    pub(super) fn variance(self) -> f64 {
        self.error * self.error + STEP_ERROR * STEP_ERROR
    }
}

/// A tier: the processors that it may use, and what a request costs of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TierPart {
    pub(super) of: Processes,
    /// As the run shows it.
    pub(super) shown: Identity,
    pub(super) cpu_us: Figure,
    pub(super) cpus: f64,
    pub(super) quota: Option<f64>,
    pub(super) threads: Option<f64>,
    /// Its highest busy share, of whichever of these limits.
    pub(super) busy: f64,
}

/// A device or a link: the share of its time that a request takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DevicePart {
    pub(super) identity: Identity,
    pub(super) kind: ResourceKind,
    pub(super) busy_us: Figure,
    pub(super) bits_per_s: Option<f64>,
    /// Its highest busy share.
    pub(super) busy: f64,
}

/// All processors of a host.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HostPart {
    pub(super) on: HostName,
    pub(super) cpu_us: Figure,
    pub(super) cores: f64,
}

/// Throughput with so many users.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) users: u32,
    pub(super) throughput_per_s: Figure,
}

/// Everything that a model is built from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parts {
    pub(super) think_us: f64,
    pub(super) alone_us: Figure,
    pub(super) throughput_max_per_s: Figure,
    pub(super) points: Vec<Point>,
    pub(super) tiers: Vec<TierPart>,
    pub(super) devices: Vec<DevicePart>,
    pub(super) hosts: Vec<HostPart>,
    /// The kinds of request, where there are several.
    pub(super) kinds: Vec<KindPart>,
    pub(super) kind: ResourceKind,
    pub(super) holder: Option<Identity>,
    pub(super) at_a_time: Option<u32>,
    /// Those behind the server, which calls can be slower to reach: names, from the server on.
    pub(super) behind: Vec<String>,
}

/// The error of a figure that was measured once, as a share.
const ERROR_OF_ONE: f64 = 0.03;

/// No figure is better known than this, whatever its interval says: servers differ that much from day to day.
pub(super) const ERROR_MIN: f64 = 0.005;

/// No step is better known than this, as a share: no model is exact for any server.
pub(super) const STEP_ERROR: f64 = 0.01;

/// A thread with this share of its tier's CPU time is all that the tier uses.
const ALONE: f64 = 0.9;

impl Parts {
    /// Reads them from a run that a model can stand for.
    pub(super) fn of(run: &Run) -> Result<Self, Refusal> {
        let verdict = &run.verdict;
        // An edited file may have numbers of users and of places that no run has: nobody, or more than can be counted up to.
        let is_number = |of: u32| (1..=USERS_MAX).contains(&of);
        let is_known = |step: &&Step| step.steady && step.throughput_per_s > 0.0 && is_number(step.users);
        let steps: Vec<&Step> = run.steps.iter().filter(is_known).collect();
        refuse(run, &steps)?;
        let first = steps.first().ok_or(Refusal::TooFewSteps)?;
        let holder = verdict.bottleneck.identity.clone();
        let loaded: Vec<&Step> = steps
            .iter()
            .copied()
            .filter(|step| step.throughput_per_s >= LOADED * verdict.throughput_max_per_s)
            .collect();
        let max_error = (verdict.throughput_max_ci_per_s, verdict.throughput_max_per_s);
        let tiers = tiers(&loaded, &verdict.bottleneck.kind, holder.as_ref());
        Ok(Self {
            think_us: run.load.think_time_us,
            alone_us: figure(first.response_time_us.mean, first.response_time_us.mean_ci),
            throughput_max_per_s: figure(max_error.1, Some(max_error.0)),
            points: steps.iter().map(|step| point(step)).collect(),
            devices: devices(&steps, holder.as_ref()),
            hosts: hosts(&steps, &tiers),
            kinds: kinds(run, first),
            tiers,
            kind: verdict.bottleneck.kind,
            behind: behind(run, holder.as_ref()),
            holder,
            at_a_time: verdict.bottleneck.at_a_time.filter(|places| is_number(*places)),
        })
    }
}

/// The most users of the lowest step, as a share of those at the knee: its response time stands for that of one alone.
const LOW_USERS: f64 = 0.5;

fn refuse(run: &Run, steps: &[&Step]) -> Result<(), Refusal> {
    let verdict = &run.verdict;
    let (Some(first), true) = (steps.first(), run.load.is_closed()) else {
        return Err(if run.load.is_closed() { Refusal::TooFewSteps } else { Refusal::OpenLoop });
    };
    if steps.len() < 2 {
        return Err(Refusal::TooFewSteps);
    }
    if !verdict.bounded || verdict.users_at_saturation.is_none() {
        return Err(Refusal::NotBounded);
    }
    if !verdict.is_conclusive() {
        return Err(Refusal::Inconclusive);
    }
    if run.steps.iter().any(lost_in_failures) {
        return Err(Refusal::Failures);
    }
    let kind = verdict.bottleneck.kind;
    if is_unfit(kind) {
        return Err(Refusal::Bottleneck { kind });
    }
    let cycle_s = (first.response_time_us.mean + run.load.think_time_us) / 1e6;
    let knee = cycle_s * verdict.throughput_max_per_s;
    if first.users > 1 && f64::from(first.users) > LOW_USERS * knee {
        return Err(Refusal::NobodyAlone { users: first.users });
    }
    Ok(())
}

/// Bottlenecks of which no model says what becomes of them.
fn is_unfit(kind: ResourceKind) -> bool {
    matches!(
        kind,
        ResourceKind::Generator
            | ResourceKind::None
            | ResourceKind::Unknown
            | ResourceKind::Memory
            | ResourceKind::FileDescriptors
    )
}

fn figure(value: f64, ci: Option<[f64; 2]>) -> Figure {
    let half = ci.filter(|_| value > 0.0).map(|[low, high]| (high - low) / 2.0 / value);
    let error = half.filter(|half| half.is_finite()).map_or(ERROR_OF_ONE, |half| half / NORMAL_95);
    Figure { value, error: error.max(ERROR_MIN) }
}

fn point(step: &Step) -> Point {
    Point { users: step.users, throughput_per_s: figure(step.throughput_per_s, step.throughput_ci_per_s) }
}

/// What a request costs of a resource, from what was used at each of the steps: the utilisation law, U = X D.
fn cost(uses: &[(f64, f64)]) -> Option<Figure> {
    let throughput: f64 = uses.iter().map(|(throughput, _)| throughput).sum();
    let value = uses.iter().map(|(_, used)| used).sum::<f64>() / throughput * 1e6;
    if !(value.is_finite() && value > 0.0) {
        return None;
    }
    let count = uses.len() as f64;
    if uses.len() < 2 {
        return Some(Figure { value, error: ERROR_OF_ONE });
    }
    let squares: f64 = uses.iter().map(|(of, used)| (used / of * 1e6 / value - 1.0).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt() * t_95(count - 1.0) / NORMAL_95;
    Some(Figure { value, error: error.max(ERROR_MIN) })
}

/// A resource's own use at each step that has it.
fn uses(steps: &[&Step], is_it: impl Fn(&Resource) -> bool, read: fn(&Resource) -> f64) -> Vec<(f64, f64)> {
    let of = |step: &&Step| {
        let own = step.resources.iter().find(|resource| is_it(resource))?;
        Some((step.throughput_per_s, read(own))).filter(|(_, used)| used.is_finite())
    };
    steps.iter().filter_map(of).collect()
}

/// The highest of busy shares.
fn most_busy(uses: &[(f64, f64)]) -> f64 {
    uses.iter().map(|(_, busy)| *busy).fold(0.0, f64::max)
}

/// The highest busy share of a tier, of whichever of its limits.
fn busiest(steps: &[&Step], tier: &Processes) -> f64 {
    let limits = [ResourceKind::Cpu, ResourceKind::CpuQuota, ResourceKind::SingleThread];
    let busy = limits.map(|kind| {
        let is_it = |other: &Resource| other.kind == kind && same_tier(other, tier);
        most_busy(&uses(steps, is_it, |of| of.utilization))
    });
    busy.into_iter().fold(0.0, f64::max)
}

/// The last of the steps has the most users: there every limit shows as it is in saturation.
fn last_of<'a>(steps: &[&'a Step], is_it: impl Fn(&Resource) -> bool) -> Option<&'a Resource> {
    steps.iter().rev().find_map(|step| step.resources.iter().find(|resource| is_it(resource)))
}

/// The processes of a tier's processor time, also where a file from before identities were typed has only their name.
pub(super) fn processes_of(identity: &Identity) -> Option<Processes> {
    match identity {
        Identity::Named { name } => {
            let name = name.split('(').next().unwrap_or_default().trim().to_owned();
            Some(Processes { name, processes: 1, ..Processes::default() })
        }
        other => other.processes().cloned(),
    }
}

fn tiers(steps: &[&Step], kind: &ResourceKind, holder: Option<&Identity>) -> Vec<TierPart> {
    let mut found: Vec<TierPart> = Vec::new();
    for resource in steps.iter().flat_map(|step| &step.resources) {
        let Some(of) = tier_of(resource).filter(|of| found.iter().all(|tier| tier.of != *of)) else {
            continue;
        };
        let own = |kind: ResourceKind| {
            let of = of.clone();
            move |other: &Resource| other.kind == kind && same_tier(other, &of)
        };
        let used = uses(steps, own(ResourceKind::Cpu), |of| of.used);
        let Some(cpu_us) = cost(&used) else { continue };
        let quota = last_of(steps, own(ResourceKind::CpuQuota)).map(|of| of.capacity);
        let thread = cost(&uses(steps, own(ResourceKind::SingleThread), |of| of.used));
        let is_one = *kind == ResourceKind::SingleThread
            && holder.and_then(processes_of).is_some_and(|by| by.name == of.name && by.on == of.on);
        let alone = thread.is_some_and(|thread| thread.value >= ALONE * cpu_us.value);
        let Some(shown) = resource.identity.clone() else { continue };
        found.push(TierPart {
            shown,
            cpus: resource.capacity.max(f64::MIN_POSITIVE),
            quota,
            threads: (is_one || alone).then_some(1.0),
            busy: busiest(steps, &of),
            cpu_us,
            of,
        });
    }
    found
}

fn tier_of(resource: &Resource) -> Option<Processes> {
    let is_cpu = resource.kind == ResourceKind::Cpu && resource.unit == Unit::Cores;
    let of = processes_of(resource.identity.as_ref().filter(|_| is_cpu && !is_host(resource))?)?;
    (of.role != Role::Generator).then_some(of)
}

fn same_tier(resource: &Resource, tier: &Processes) -> bool {
    let of = resource.identity.as_ref().filter(|_| !is_host(resource)).and_then(processes_of);
    of.is_some_and(|of| of.name == tier.name && of.on == tier.on && of.role == tier.role)
}

fn is_host(resource: &Resource) -> bool {
    match &resource.identity {
        Some(Identity::Host { .. } | Identity::OtherProcesses { .. }) => true,
        Some(Identity::Named { name }) => name.split('(').next().unwrap_or_default().trim() == "host",
        _ => false,
    }
}

/// What of a resource that others use too grows with the requests: the slope of its use over throughput, where that is beyond
/// chance. Work of others is there without requests as well, and says nothing of them.
fn slope(uses: &[(f64, f64)]) -> Option<Figure> {
    let df = uses.len() as f64 - 2.0;
    if df < 1.0 {
        return None;
    }
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| uses.iter().map(of).sum::<f64>() / uses.len() as f64;
    let (x, y) = (mean(&|of| of.0), mean(&|of| of.1));
    let spread: f64 = uses.iter().map(|of| (of.0 - x).powi(2)).sum();
    let value = uses.iter().map(|of| (of.0 - x) * (of.1 - y)).sum::<f64>() / spread;
    let squares: f64 = uses.iter().map(|of| (of.1 - y - value * (of.0 - x)).powi(2)).sum();
    let error = (squares / df / spread).sqrt() * t_95(df) / NORMAL_95 / value;
    let is_known = value > 0.0 && error.is_finite() && error < 1.0 / NORMAL_95;
    is_known.then(|| Figure { value: value * 1e6, error: error.max(ERROR_MIN) })
}

/// What a request costs of a host: what its tiers and the generator use of it, or more where its use grows by more.
fn hosts(steps: &[&Step], tiers: &[TierPart]) -> Vec<HostPart> {
    let mut found: Vec<HostPart> = Vec::new();
    for resource in steps.iter().flat_map(|step| &step.resources) {
        let Some(Identity::Host { on }) = &resource.identity else { continue };
        if found.iter().any(|host| host.on == *on) {
            continue;
        }
        let grows = slope(&uses(steps, |other| other.identity == resource.identity, |of| of.used));
        let is_load = |other: &Resource| on.is_none() && other.kind == ResourceKind::Generator;
        let load_us = cost(&uses(steps, is_load, |of| of.used)).map_or(0.0, |cost| cost.value);
        let tiers_us = tiers.iter().filter(|tier| tier.of.on == *on).map(|tier| tier.cpu_us.value);
        let own = Figure { value: tiers_us.sum::<f64>() + load_us, error: ERROR_OF_ONE };
        let cpu_us = grows.filter(|grows| grows.value > own.value).unwrap_or(own);
        if cpu_us.value > 0.0 {
            found.push(HostPart { on: on.clone(), cpu_us, cores: resource.capacity });
        }
    }
    found
}

/// Devices and links whose use grows with the requests, and that which stops the server.
fn devices(steps: &[&Step], holder: Option<&Identity>) -> Vec<DevicePart> {
    let mut found: Vec<DevicePart> = Vec::new();
    for resource in steps.iter().flat_map(|step| &step.resources) {
        let is_device = matches!(resource.kind, ResourceKind::Disk | ResourceKind::Network);
        let Some(identity) = resource.identity.clone().filter(|_| is_device) else { continue };
        if found.iter().any(|device| device.identity == identity) {
            continue;
        }
        let is_it = |other: &Resource| other.identity.as_ref() == Some(&identity);
        let used = uses(steps, is_it, |of| of.utilization);
        let busy = if holder == Some(&identity) { cost(&used) } else { slope(&used) };
        let Some(busy_us) = busy.filter(|busy| busy.value > NEGLIGIBLE_US) else { continue };
        let is_link = resource.unit == Unit::BitsPerSecond && resource.kind == ResourceKind::Network;
        let bits_per_s = Some(resource.capacity).filter(|bits| is_link && bits.is_finite() && *bits > 0.0);
        found.push(DevicePart { identity, kind: resource.kind, busy_us, bits_per_s, busy: most_busy(&used) });
    }
    found
}

/// What the server calls, in the order in which the run shows it.
fn behind(run: &Run, holder: Option<&Identity>) -> Vec<String> {
    let nodes = run.topology.iter().flat_map(|topology| &topology.nodes);
    let mut names: Vec<String> = nodes
        .filter_map(|node| match &node.is {
            NodeKind::Tier(tier) if tier.processes.role == Role::Downstream => {
                Some(tier.processes.name.clone())
            }
            NodeKind::Unobserved { address, .. } => Some(address_name(address)),
            _ => None,
        })
        .collect();
    if let Some(Identity::Upstream { address, .. }) = holder {
        names.push(address_name(address));
    }
    let resources = run.steps.iter().flat_map(|step| &step.resources).filter_map(tier_of);
    names.extend(resources.filter(|of| of.role == Role::Downstream).map(|of| of.name));
    let mut known: Vec<String> = Vec::new();
    names.into_iter().for_each(|name| {
        if !known.contains(&name) {
            known.push(name);
        }
    });
    known
}

fn address_name(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Tcp { address } => address.to_string(),
        ServerAddress::Unix { path } => path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compilers filled a host while a pool was measured on it, and the host was taken for the next limit.
    #[test]
    fn what_others_do_on_a_host_is_no_cost_of_requests() {
        let throughput = [49.0, 98.0, 147.0, 196.0, 199.0, 200.0];
        let full = [1.99, 1.99, 2.0, 1.99, 1.99, 2.0];
        let full: Vec<(f64, f64)> = throughput.into_iter().zip(full).collect();
        assert!(slope(&full).is_none_or(|slope| slope.value < 200.0), "{:?}", slope(&full));
        let grows = throughput.map(|of| (of, 0.5 + of * 1e-3));
        let found = slope(&grows).expect("a slope");
        assert!((found.value - 1_000.0).abs() < 1e-6, "{found:?}");
        assert_eq!(slope(&grows[..2]), None);
    }
}
