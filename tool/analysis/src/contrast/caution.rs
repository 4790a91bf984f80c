//! What differs between runs besides what is compared, and reasons to distrust single runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::tier_of;
use super::side::{Given, Variant};
use crate::comparison::{Entry, is_lower_bound, is_sweep};
use crate::run::{Cause, Host, Run, WarningKind};

/// Something that differs between runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What differs.
    #[serde(flatten)]
    pub aspect: Aspect,
    /// Its settings in the runs before, each once.
    pub before: Vec<Setting>,
    /// Its settings in the runs after.
    pub after: Vec<Setting>,
}

/// What can differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "aspect", rename_all = "kebab-case")]
pub enum Aspect {
    /// Whether users were raised (`sweep`), or there was one load (`load`).
    Kind,
    /// The path that was asked for, or the scenario.
    Scenario,
    /// The kinds of request and their weights.
    Requests,
    /// Closed loop or open loop.
    Loop,
    /// Requests a second of an open loop.
    Rate,
    /// Mean think time, microseconds.
    ThinkTime,
    /// Whether connections were kept.
    Connections,
    /// Users of one load.
    Users,
    /// Scheme, host and port of the server.
    Server,
    /// Processor model of the generator's host.
    Processor,
    /// Its online processors.
    Cores,
    /// Its memory, GiB.
    Memory,
    /// Its kernel.
    Kernel,
    /// The version of nstar.
    Nstar,
    /// Generator threads.
    Threads,
    /// Processors that the generator was confined to.
    GeneratorProcessors,
    /// Processors that the systems were confined to.
    SystemProcessors,
    /// Names of the generators, where several made the load.
    Generators,
    /// Seconds of one load, in classes of about a quarter.
    Duration,
    /// The tiers that were watched, and how many processors each could use.
    Tiers,
    /// The limit on open files, where it allowed fewer users than were asked for.
    OpenFiles,
}

/// A setting of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A name.
    Text(String),
    /// There is none.
    Absent,
}

impl Aspect {
    /// Whether it makes the load another one, so that a ratio would say nothing of the server.
    pub fn is_of_load(&self) -> bool {
        matches!(
            self,
            Self::Kind
                | Self::Scenario
                | Self::Requests
                | Self::Loop
                | Self::Rate
                | Self::ThinkTime
                | Self::Connections
                | Self::Users
        )
    }
}

/// A reason to distrust a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caution {
    /// It was cut short.
    Interrupted {
        /// Its file.
        file: String,
    },
    /// Its throughput is only a lower bound: the generator was the limit, or throughput never stopped growing.
    LowerBound {
        /// Its file.
        file: String,
    },
    /// It doubts its answer itself.
    Inconclusive {
        /// Its file.
        file: String,
    },
    /// Requests failed.
    Failed {
        /// Its file.
        file: String,
        /// Their share of all, 0 to 1.
        share: f64,
    },
    /// It was made by an nstar built without optimisation.
    DebugBuild {
        /// Its file.
        file: String,
    },
    /// It is the same run as another one, and counts once on its side.
    Copy {
        /// Its file.
        file: String,
        /// The other file.
        of: String,
    },
}

/// Fewer failures than this are not worth a word.
const FAILED: f64 = 0.001;

/// Whether a warning that says how the run went is among those of a run.
fn is_warned(run: &Run, kind: WarningKind) -> bool {
    run.warnings.iter().any(|warning| warning.kind == kind)
}

/// Reasons to distrust the runs of both sides.
pub(super) fn of_runs(before: &[Given], after: &[Given]) -> Vec<Caution> {
    let all: Vec<&Given> = before.iter().chain(after).collect();
    let mut found = Vec::new();
    for (index, given) in all.iter().enumerate() {
        let copied = all[..index].iter().find(|other| other.run == given.run);
        match copied {
            Some(other) => found.push(Caution::Copy { file: given.file.clone(), of: other.file.clone() }),
            None => found.extend(of_run(given)),
        }
    }
    found
}

fn of_run(given: &Given) -> Vec<Caution> {
    let (run, file) = (&given.run, || given.file.clone());
    let mut found = Vec::new();
    let lower_bound = is_lower_bound(run);
    if is_warned(run, WarningKind::Interrupted) {
        found.push(Caution::Interrupted { file: file() });
    }
    if lower_bound {
        found.push(Caution::LowerBound { file: file() });
    }
    if !lower_bound && !run.verdict.is_conclusive() {
        found.push(Caution::Inconclusive { file: file() });
    }
    if run.failed_share() > FAILED {
        found.push(Caution::Failed { file: file(), share: run.failed_share() });
    }
    if is_warned(run, WarningKind::DebugBuild) {
        found.push(Caution::DebugBuild { file: file() });
    }
    found
}

/// Reasons to distrust a variant.
pub(super) fn of_entry(entry: &Entry, of: &Variant) -> Option<Caution> {
    let file = || [of.file.as_str(), entry.variant.as_str()].join("#");
    match () {
        () if entry.lower_bound => Some(Caution::LowerBound { file: file() }),
        () if !entry.doubts.is_empty() => Some(Caution::Inconclusive { file: file() }),
        () => None,
    }
}

/// An aspect, and where a run tells its setting.
type Reading = (Aspect, fn(&Run) -> Setting);

/// What differs between the runs of both sides, or among those of one.
pub(super) fn differences(before: &[Given], after: &[Given]) -> Vec<Difference> {
    let load: [Reading; 8] = [
        (Aspect::Kind, |run| text(if is_sweep(run) { "sweep" } else { "load" })),
        (Aspect::Scenario, |run| Setting::Text(split(&run.target).1)),
        (Aspect::Requests, requests),
        (Aspect::Loop, |run| text(if run.load.is_closed() { "closed" } else { "open" })),
        (Aspect::Rate, |run| number(run.load.rate_per_s)),
        (Aspect::ThinkTime, |run| Setting::Number(run.load.think_time_us)),
        (Aspect::Connections, |run| text(run.load.connections.name())),
        (Aspect::Users, |run| number(only_users(run))),
    ];
    let rest: [Reading; 9] = [
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
    let all = load.into_iter().chain(HOST).chain(rest);
    let of = |(aspect, read): Reading| {
        let settings = |side: &[Given]| side.iter().map(|given| read(&given.run)).collect();
        differing(aspect, settings(before), settings(after))
    };
    all.filter_map(of).collect()
}

const HOST: [Reading; 4] = [
    (Aspect::Processor, |run| of_host(&Aspect::Processor, &run.host)),
    (Aspect::Cores, |run| of_host(&Aspect::Cores, &run.host)),
    (Aspect::Memory, |run| of_host(&Aspect::Memory, &run.host)),
    (Aspect::Kernel, |run| of_host(&Aspect::Kernel, &run.host)),
];

/// What differs between hosts and versions.
pub(super) fn of_hosts(before: (&Host, &str), after: (&Host, &str)) -> Vec<Difference> {
    let hosts = HOST.iter().filter_map(|(aspect, _)| {
        let settings = [before.0, after.0].map(|host| vec![of_host(aspect, host)]);
        let [before, after] = settings;
        differing(aspect.clone(), before, after)
    });
    let versions = differing(Aspect::Nstar, vec![text(before.1)], vec![text(after.1)]);
    hosts.chain(versions).collect()
}

fn of_host(aspect: &Aspect, host: &Host) -> Setting {
    match aspect {
        Aspect::Processor => text(&host.processor),
        Aspect::Cores => Setting::Number(host.cores.into()),
        // Kernels of one machine keep different shares of its memory to themselves.
        Aspect::Memory => Setting::Number((host.memory_bytes as f64 / f64::from(1 << 30)).ceil()),
        Aspect::Kernel => text(&host.kernel),
        _ => Setting::Absent,
    }
}

fn differing(aspect: Aspect, before: Vec<Setting>, after: Vec<Setting>) -> Option<Difference> {
    let once = |mut settings: Vec<Setting>| {
        let mut kept: Vec<Setting> = Vec::new();
        settings.drain(..).for_each(|setting| {
            if !kept.contains(&setting) {
                kept.push(setting);
            }
        });
        kept
    };
    let (before, after) = (once(before), once(after));
    let same = before.len() == 1 && before == after;
    (!same).then_some(Difference { aspect, before, after })
}

fn text(text: &str) -> Setting {
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
            let tier = tier_of(resource)?;
            let cores = usable(resource.capacity);
            let name = tier.on.map_or_else(|| tier.name.clone(), |on| [tier.name.as_str(), &on].join("@"));
            Some([name, cores.to_string()].join("="))
        })
        .collect();
    tiers.sort();
    if tiers.is_empty() { Setting::Absent } else { Setting::Text(tiers.join(",")) }
}

/// What the hypervisor takes makes a little less than whole processors of them.
fn usable(cores: f64) -> f64 {
    const NEARLY: f64 = 0.05;
    let whole = cores.round();
    if whole > 0.0 && (cores / whole - 1.0).abs() < NEARLY { whole } else { (cores * 100.0).round() / 100.0 }
}

fn open_files(run: &Run) -> Setting {
    let limit = run.warnings.iter().find_map(|warning| match &warning.cause {
        Cause::FewerUsers(fewer) => Some(fewer.files_limit as f64),
        _ => None,
    });
    number(limit)
}
