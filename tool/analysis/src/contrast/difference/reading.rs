//! Where a run tells the settings that may differ.

use std::collections::BTreeMap;

use super::{Aspect, Setting};
use crate::comparison::{self, is_sweep, is_tier};
use crate::run::{
    Cause, Host, HostName, NodeKind, Resource, ResourceKind, Run, ServerHost, Tier, TierMemory,
};

/// An aspect, and where a run tells its setting.
pub(super) type Reading = (Aspect, fn(&Run) -> Setting);

/// The same where not every run tells it, such as one from before it was kept.
pub(super) type PartialReading = (Aspect, fn(&Run) -> Option<Setting>);

/// What makes the load another one.
pub(super) const LOAD: [Reading; 8] = [
    (Aspect::Kind, |run| text(if is_sweep(run) { "sweep" } else { "load" })),
    (Aspect::Scenario, |run| Setting::Text(split(&run.target).1)),
    (Aspect::Requests, requests),
    (Aspect::Loop, |run| text(if run.load.is_closed() { "closed" } else { "open" })),
    (Aspect::Rate, |run| number(run.load.rate_per_s)),
    (Aspect::ThinkTime, |run| Setting::Number(run.load.think_time_us)),
    (Aspect::Connections, |run| text(run.load.connections.name())),
    (Aspect::Users, |run| number(only_users(run))),
];

/// The generator's host.
pub(super) const HOST: [Reading; 4] = [
    (Aspect::Processor, |run| of_host(&Aspect::Processor, &run.host)),
    (Aspect::Cores, |run| of_host(&Aspect::Cores, &run.host)),
    (Aspect::Memory, |run| of_host(&Aspect::Memory, &run.host)),
    (Aspect::Kernel, |run| of_host(&Aspect::Kernel, &run.host)),
];

/// What every run tells besides.
pub(super) const REST: [Reading; 9] = [
    (Aspect::Server, |run| Setting::Text(split(&run.target).0)),
    (Aspect::Nstar, |run| text(&run.version)),
    (Aspect::Threads, |run| Setting::Number(run.load.threads.into())),
    (Aspect::GeneratorProcessors, |run| processors(run.load.generator_cpus.as_deref())),
    (Aspect::SystemProcessors, |run| processors(run.load.system_cpus.as_deref())),
    (Aspect::Generators, generators),
    (Aspect::Duration, duration),
    (Aspect::Tiers, tiers),
    (Aspect::OpenFiles, open_files),
];

/// What some runs tell.
pub(super) const WHERE_KNOWN: [PartialReading; 7] = [
    (Aspect::Sent, |run| run.sent_digest.as_deref().map(text)),
    (Aspect::ServerProcessor, |run| of_servers(&Aspect::Processor, &run.server_hosts)),
    (Aspect::ServerCores, |run| of_servers(&Aspect::Cores, &run.server_hosts)),
    (Aspect::ServerMemory, |run| of_servers(&Aspect::Memory, &run.server_hosts)),
    (Aspect::ServerKernel, |run| of_servers(&Aspect::Kernel, &run.server_hosts)),
    (Aspect::CpuQuotas, cpu_quotas),
    (Aspect::MemoryLimits, memory_limits),
];

pub(super) fn of_host(aspect: &Aspect, host: &Host) -> Setting {
    match aspect {
        Aspect::Processor => text(&host.processor),
        Aspect::Cores => Setting::Number(host.cores.into()),
        // Kernels of one machine keep different shares of its memory to themselves.
        Aspect::Memory => Setting::Number((host.memory_bytes as f64 / f64::from(1 << 30)).ceil()),
        Aspect::Kernel => text(&host.kernel),
        _ => Setting::Absent,
    }
}

/// An aspect of the hosts of servers; of a single one without its name, which may be new at every start.
fn of_servers(aspect: &Aspect, hosts: &[ServerHost]) -> Option<Setting> {
    match hosts {
        [] => None,
        [only] => Some(of_host(aspect, &only.host)),
        several => {
            let of = |server: &ServerHost| (server.name.clone(), of_host(aspect, &server.host));
            Some(Setting::Each(several.iter().map(of).collect()))
        }
    }
}

pub(super) fn text(text: &str) -> Setting {
    Setting::Text(text.to_owned())
}

fn number(number: Option<f64>) -> Setting {
    number.map_or(Setting::Absent, Setting::Number)
}

/// Between a scheme and a host.
const AFTER_SCHEME: &str = ":\u{2f}/";

/// Scheme, host and port of a target, and the rest of it: a path, or a scenario's name.
fn split(target: &str) -> (String, String) {
    let Some(at) = target.find(AFTER_SCHEME) else { return (String::new(), target.to_owned()) };
    let scheme = target[..at].rfind(' ').map_or(0, |space| space + 1);
    let ends = |c: char| c == '/' || c == ' ';
    let end = target[at + 3..].find(ends).map_or(target.len(), |end| at + 3 + end);
    (target[scheme..end].to_owned(), [&target[..scheme], &target[end..]].concat())
}

fn requests(run: &Run) -> Setting {
    // Weights are shares; a thousandth is near enough.
    let one = |share: &crate::run::RequestShare| {
        let permille = (share.asked_share * 1e3).round();
        [share.name.as_str(), permille.to_string().as_str()].join("=")
    };
    match run.requests.as_slice() {
        [] => Setting::Absent,
        shares => Setting::Text(shares.iter().map(one).collect::<Vec<_>>().join(",")),
    }
}

fn only_users(run: &Run) -> Option<f64> {
    let [step] = run.steps.as_slice() else { return None };
    Some(f64::from(step.users))
}

fn processors(numbers: Option<&[u32]>) -> Setting {
    let joined = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    numbers.map_or(Setting::Absent, |numbers| Setting::Text(joined(numbers)))
}

fn generators(run: &Run) -> Setting {
    let names: Vec<&str> = run.load.generators.iter().map(|one| one.name.as_str()).collect();
    if names.is_empty() { Setting::Absent } else { Setting::Text(names.join(",")) }
}

/// Loads of one length last a little more or less; those of a sweep last as long as they need.
fn duration(run: &Run) -> Setting {
    const CLASS: f64 = 1.25;
    let [step] = run.steps.as_slice() else { return Setting::Absent };
    let seconds = step.elapsed_s + step.warmup_s;
    if seconds <= 0.0 {
        return Setting::Absent;
    }
    let class = (seconds.ln() / f64::ln(CLASS)).round();
    Setting::Number((CLASS.powf(class) * 10.0).round() / 10.0)
}

fn tiers(run: &Run) -> Setting {
    let resources = run.verdict_step().map(|step| step.resources.as_slice()).unwrap_or_default();
    let mut tiers: Vec<String> = resources
        .iter()
        .filter_map(|resource| {
            let tier = comparison::Tier::of(resource)?;
            let cores = usable(resource.capacity);
            Some([place(&tier.name, &tier.on), cores.to_string()].join("="))
        })
        .collect();
    tiers.sort();
    if tiers.is_empty() { Setting::Absent } else { Setting::Text(tiers.join(",")) }
}

/// The name of processes, with their host where that is another one.
fn place(name: &str, on: &HostName) -> String {
    on.as_ref().map_or_else(|| name.to_owned(), |on| [name, on.as_str()].join("@"))
}

/// What the hypervisor takes makes a little less than whole processors of them.
fn usable(cores: f64) -> f64 {
    const NEARLY: f64 = 0.05;
    let whole = cores.round();
    if whole > 0.0 && (cores / whole - 1.0).abs() < NEARLY { whole } else { hundredths(cores) }
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The CPU quotas of tiers; `None` where no tier was watched, or nothing tells that cgroups could be read, or a file is from before
/// holders of quotas were kept.
fn cpu_quotas(run: &Run) -> Option<Setting> {
    let resources = &run.verdict_step()?.resources;
    if !resources.iter().any(is_tier) {
        return None;
    }
    let quotas = resources.iter().filter(|resource| resource.kind == ResourceKind::CpuQuota);
    let of = |quota: &Resource| {
        let holder = quota.identity.as_ref()?.processes()?;
        Some((place(&holder.name, &holder.on), Setting::Number(hundredths(quota.capacity))))
    };
    let quotas = quotas.map(of).collect::<Option<BTreeMap<_, _>>>()?;
    let is_known = !quotas.is_empty() || watched(run).any(|tier| tier.memory.is_some());
    is_known.then(|| each(quotas))
}

/// The tiers that were watched, where the file is not from before they were kept.
fn watched(run: &Run) -> impl Iterator<Item = &Tier> {
    run.topology.iter().flat_map(|topology| &topology.nodes).filter_map(|node| match &node.is {
        NodeKind::Tier(tier) => Some(tier.as_ref()),
        _ => None,
    })
}

/// Limits on the memory of tiers; `None` where nobody looked, or the file is from before they were kept.
fn memory_limits(run: &Run) -> Option<Setting> {
    let known = watched(run).filter_map(|tier| Some((tier, tier.memory?)));
    let known: Vec<(&Tier, TierMemory)> = known.collect();
    let limits = known.iter().filter_map(|(tier, memory)| match memory {
        TierMemory::Limited { bytes } => {
            Some((place(&tier.processes.name, &tier.processes.on), Setting::Number(*bytes as f64)))
        }
        TierMemory::Unlimited => None,
    });
    (!known.is_empty()).then(|| each(limits.collect()))
}

fn each(settings: BTreeMap<String, Setting>) -> Setting {
    if settings.is_empty() { Setting::Absent } else { Setting::Each(settings) }
}

fn open_files(run: &Run) -> Setting {
    let limit = run.warnings.iter().find_map(|warning| match &warning.cause {
        Cause::FewerUsers(fewer) => Some(fewer.files_limit as f64),
        _ => None,
    });
    number(limit)
}
