//! What differs between runs besides what is compared.

mod reading;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::side::{Given, Pair};
use crate::comparison::Entry;
use crate::run::{Host, Run};
use reading::{HOST, LOAD, REST, WHERE_KNOWN, of_host, text};

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
    /// What is sent, and which answers are expected, by a digest: method, path, headers, body, weights, think time.
    Sent,
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
    /// Processor model of the hosts that the server and the tiers behind it were observed on, apart from the generator's.
    ServerProcessor,
    /// Online processors of those.
    ServerCores,
    /// Memory of those, GiB.
    ServerMemory,
    /// Kernel of those.
    ServerKernel,
    /// CPU quotas of the watched tiers, processors.
    CpuQuotas,
    /// Limits of cgroups on the memory of the watched tiers, bytes.
    MemoryLimits,
}

/// A setting of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A name.
    Text(String),
    /// One for each of several hosts or tiers, by name.
    Each(BTreeMap<String, Setting>),
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

    /// Whether it is a setting of the hosts of the server and of the tiers behind it.
    fn is_of_server_hosts(&self) -> bool {
        matches!(self, Self::ServerProcessor | Self::ServerCores | Self::ServerMemory | Self::ServerKernel)
    }
}

/// What a run tells of every aspect, so that the run need not be held; nothing of what it does not know.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings(Vec<Option<Setting>>);

/// What a run tells of, in the order of [`Settings`].
fn aspects() -> impl Iterator<Item = Aspect> {
    let always = LOAD.into_iter().chain(HOST).chain(REST).map(|(aspect, _)| aspect);
    always.chain(WHERE_KNOWN.into_iter().map(|(aspect, _)| aspect))
}

impl Settings {
    /// What a run tells.
    pub(crate) fn of(run: &Run) -> Self {
        let always = LOAD.into_iter().chain(HOST).chain(REST).map(|(_, read)| Some(read(run)));
        Self(always.chain(WHERE_KNOWN.into_iter().map(|(_, read)| read(run))).collect())
    }

    /// The digest of what was sent; `None` of a run from before it was kept.
    pub(crate) fn sent(&self) -> Option<&Setting> {
        let (_, setting) = aspects().zip(&self.0).find(|(aspect, _)| *aspect == Aspect::Sent)?;
        setting.as_ref()
    }

    /// Whether nothing differs that makes the load another one.
    pub(crate) fn is_same_load(&self, other: &Self) -> bool {
        let both = aspects().zip(self.0.iter().zip(&other.0));
        both.filter(|(aspect, _)| aspect.is_of_load()).all(|(_, (one, other))| one == other)
    }

    /// What differs from settings before, of what both know.
    pub(crate) fn differences_from(&self, before: &Self) -> Vec<Difference> {
        of_settings(std::slice::from_ref(before), std::slice::from_ref(self))
    }
}

/// What differs between the runs of both sides, or among those of one.
pub(super) fn differences(before: &[Given], after: &[Given]) -> Vec<Difference> {
    let settings = |side: &[Given]| side.iter().map(|given| Settings::of(&given.run)).collect::<Vec<_>>();
    of_settings(&settings(before), &settings(after))
}

fn of_settings(before: &[Settings], after: &[Settings]) -> Vec<Difference> {
    let of = |(place, aspect): (usize, Aspect)| {
        let told = |side: &[Settings]| -> Vec<Setting> {
            side.iter().filter_map(|run| run.0.get(place).cloned().flatten()).collect()
        };
        let (before, after) = (told(before), told(after));
        let is_told = !before.is_empty() && !after.is_empty();
        let is_renamed = aspect.is_of_server_hosts() && differ_in_names([&before, &after]);
        if is_told && !is_renamed { differing(aspect, before, after) } else { None }
    };
    let mut found: Vec<Difference> = aspects().enumerate().filter_map(of).collect();
    // They change the digest of what is sent, and say more.
    let is_told = found.iter().any(|difference| {
        use Aspect::{Loop, Requests, Scenario, ThinkTime};
        matches!(difference.aspect, Scenario | Requests | Loop | ThinkTime)
    });
    found.retain(|difference| difference.aspect != Aspect::Sent || !is_told);
    found
}

/// Whether hosts have other names in some runs, as pods have at every start, and the same settings in all of them.
fn differ_in_names(sides: [&[Setting]; 2]) -> bool {
    let names = |setting: &Setting| match setting {
        Setting::Each(of) => of.keys().cloned().collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    let values = |setting: &Setting| match setting {
        Setting::Each(of) => of.values().cloned().collect::<Vec<_>>(),
        only => vec![only.clone()],
    };
    let are_among = |some: &[Setting], all: &[Setting]| some.iter().all(|one| all.contains(one));
    let is_renamed = |one: &Setting, other: &Setting| {
        let (these, those) = (values(one), values(other));
        let have_same = are_among(&these, &those) && are_among(&those, &these);
        one == other || (names(one) != names(other) && have_same)
    };
    let all: Vec<&Setting> = sides.into_iter().flatten().collect();
    all.windows(2).all(|pair| is_renamed(pair[0], pair[1]))
}

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

/// An aspect, and where an entry of an experiment tells its setting.
type EntryReading = (Aspect, fn(&Entry) -> Setting);

/// What the file of an experiment tells of the load of an entry.
const OF_ENTRY: [EntryReading; 2] = [
    (Aspect::Kind, |entry| text(if is_sweep(entry) { "sweep" } else { "load" })),
    (Aspect::Users, |entry| match entry.users {
        Some(users) if !is_sweep(entry) => Setting::Number(users.into()),
        _ => Setting::Absent,
    }),
];

/// Whether users were raised: of one number of them, no steps are kept.
fn is_sweep(entry: &Entry) -> bool {
    !entry.steps.is_empty() || entry.users_ci.is_some()
}

/// What differs between the loads of entries that are compared.
pub(super) fn of_entries(pairs: &[Pair<'_>]) -> Vec<Difference> {
    let of = |(aspect, read): EntryReading| {
        let settings = pairs.iter().map(|(_, one, other)| (read(one), read(other)));
        // Of what is the same on both sides of a pair, another pair may have something else.
        let (before, after) = settings.filter(|(one, other)| one != other).unzip();
        differing(aspect, before, after)
    };
    OF_ENTRY.into_iter().filter_map(of).collect()
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
    let same = before.len() < 2 && before == after;
    (!same).then_some(Difference { aspect, before, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contrast::tests::sweep;
    use crate::run::{
        Identity, LoopKind, Node, NodeKind, Processes, Resource, ResourceKind, ServerHost, Tier, TierMemory,
        Topology, Unit, Words,
    };

    /// What differs between a run and the same with a change, which may find something to change in both.
    fn between(one: fn(&mut Run), other: fn(&mut Run)) -> Vec<Difference> {
        let changed = |change: fn(&mut Run)| {
            let mut given = sweep("a", 1_000.0, 100.0);
            change(&mut given.run);
            given
        };
        differences(&[changed(one)], &[changed(other)])
    }

    fn aspects(found: &[Difference]) -> Vec<&Aspect> {
        found.iter().map(|difference| &difference.aspect).collect()
    }

    #[test]
    fn another_digest_of_what_is_sent_is_told_of_runs_of_one_name() {
        let found = between(
            |run| run.sent_digest = Some("0badcafe".into()),
            |run| run.sent_digest = Some("5eed5eed".into()),
        );
        let [difference] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(difference.aspect, Aspect::Sent);
        let settings = (difference.before.as_slice(), difference.after.as_slice());
        assert_eq!(settings, (&[text("0badcafe")][..], &[text("5eed5eed")][..]));
        assert!(!difference.aspect.is_of_load(), "a header may change nothing: it is told, and not refused");
    }

    #[test]
    fn a_digest_that_a_file_lacks_or_that_follows_from_the_rest_is_not_told() {
        let none = between(|_| {}, |run| run.sent_digest = Some("5eed5eed".into()));
        assert_eq!(none, [], "the file is from before digests were kept");
        let found = between(
            |run| run.sent_digest = Some("0badcafe".into()),
            |run| {
                run.sent_digest = Some("5eed5eed".into());
                run.load.think_time_us = 1e3;
            },
        );
        assert_eq!(aspects(&found), [&Aspect::ThinkTime]);
        let found = between(
            |run| run.sent_digest = Some("0badcafe".into()),
            |run| {
                run.sent_digest = Some("5eed5eed".into());
                run.load.loop_kind = LoopKind::Open;
            },
        );
        assert_eq!(aspects(&found), [&Aspect::Loop]);
    }

    fn server(name: &str, processor: &str, cores: u32) -> ServerHost {
        let host = Host { cores, memory_bytes: 1 << 34, kernel: "6.12".into(), processor: processor.into() };
        ServerHost { name: name.into(), host }
    }

    #[test]
    fn the_hosts_of_servers_are_compared_where_both_runs_know_them() {
        let old = |run: &mut Run| run.server_hosts = vec![server("pod-1", "old", 4)];
        assert_eq!(between(|_| {}, old), []);
        assert_eq!(
            between(old, |run| run.server_hosts = vec![server("pod-2", "old", 4)]),
            [],
            "another name is no other machine"
        );
        let found = between(old, |run| {
            run.server_hosts = vec![server("pod-2", "new", 8)];
            run.server_hosts[0].host.kernel = "6.18".into();
            run.server_hosts[0].host.memory_bytes = 1 << 35;
        });
        use Aspect::*;
        assert_eq!(aspects(&found), [&ServerProcessor, &ServerCores, &ServerMemory, &ServerKernel]);
        let cores = (found[1].before.as_slice(), found[1].after.as_slice());
        assert_eq!(cores, (&[Setting::Number(4.0)][..], &[Setting::Number(8.0)][..]));
    }

    #[test]
    fn several_hosts_of_servers_are_told_by_name() {
        let found = between(
            |run| run.server_hosts = vec![server("web", "a", 4), server("db", "a", 4)],
            |run| run.server_hosts = vec![server("db", "b", 4), server("web", "a", 4)],
        );
        let [difference] = found.as_slice() else { panic!("{found:?}") };
        let of = |db: &str| Setting::Each([("db".into(), text(db)), ("web".into(), text("a"))].into());
        let settings = (difference.before.as_slice(), difference.after.as_slice());
        assert_eq!(settings, (&[of("a")][..], &[of("b")][..]));
        let swapped = between(
            |run| run.server_hosts = vec![server("web", "a", 4), server("db", "b", 4)],
            |run| run.server_hosts = vec![server("web", "b", 4), server("db", "a", 4)],
        );
        assert_eq!(aspects(&swapped), [&Aspect::ServerProcessor], "the names are the same");
    }

    #[test]
    fn hosts_of_servers_under_new_names_are_the_same_where_their_settings_are() {
        let pods: fn(&mut Run) =
            |run| run.server_hosts = vec![server("pod-1", "a", 4), server("pod-2", "b", 8)];
        let with = |hosts: fn(&mut Run)| between(pods, hosts);
        let same = with(|run| run.server_hosts = vec![server("pod-3", "b", 8), server("pod-4", "a", 4)]);
        assert_eq!(same, []);
        let other = with(|run| run.server_hosts = vec![server("pod-3", "b", 8), server("pod-4", "c", 4)]);
        assert_eq!(aspects(&other), [&Aspect::ServerProcessor]);
        let fewer = with(|run| run.server_hosts = vec![server("pod-6", "a", 4)]);
        assert_eq!(aspects(&fewer), [&Aspect::ServerProcessor, &Aspect::ServerCores]);
    }

    fn processes() -> Processes {
        Processes { name: "app".into(), on: Some("web".into()), ..Processes::default() }
    }

    /// Puts a quota of so many processors on the tier.
    fn with_quota(run: &mut Run, cores: f64) {
        let quota = Resource {
            kind: ResourceKind::CpuQuota,
            holder: Words::default(),
            identity: Some(Identity::Quota(processes())),
            utilization: 0.9,
            used: 0.9 * cores,
            capacity: cores,
            unit: Unit::Cores,
        };
        run.steps.iter_mut().for_each(|step| step.resources.push(quota.clone()));
    }

    fn with_memory(run: &mut Run, memory: Option<TierMemory>) {
        let tier = Tier { processes: processes(), memory, ..Tier::default() };
        let node = Node { is: NodeKind::Tier(Box::new(tier)), is_bottleneck: false };
        run.topology = Some(Topology { nodes: vec![node], ..Topology::default() });
    }

    #[test]
    fn quotas_of_tiers_are_compared_where_tiers_were_watched() {
        let found = between(|run| with_quota(run, 1.5), |run| with_quota(run, 2.0));
        let [difference] = found.as_slice() else { panic!("{found:?}") };
        let of = |cores| vec![Setting::Each([("app@web".into(), Setting::Number(cores))].into())];
        assert_eq!((&difference.before, &difference.after), (&of(1.5), &of(2.0)));
        let without = |run: &mut Run| with_memory(run, Some(TierMemory::Unlimited));
        assert_eq!(aspects(&between(without, |run| with_quota(run, 2.0))), [&Aspect::CpuQuotas]);
        assert_eq!(between(|_| {}, |run| with_quota(run, 2.0)), [], "no cgroup may have been read");
        let unwatched = between(
            |run| run.steps.iter_mut().for_each(|step| step.resources.clear()),
            |run| with_quota(run, 2.0),
        );
        assert_eq!(aspects(&unwatched), [&Aspect::Tiers], "nobody looked, before");
    }

    #[test]
    fn memory_of_tiers_is_compared_where_both_runs_know_it() {
        let small = |run: &mut Run| with_memory(run, Some(TierMemory::Limited { bytes: 1 << 28 }));
        assert_eq!(between(small, small), []);
        assert_eq!(between(small, |run| with_memory(run, None)), [], "the file is from before it was kept");
        let found = between(small, |run| with_memory(run, Some(TierMemory::Unlimited)));
        let [difference] = found.as_slice() else { panic!("{found:?}") };
        let limit = Setting::Each([("app@web".into(), Setting::Number(f64::from(1 << 28)))].into());
        let settings = (difference.before.as_slice(), difference.after.as_slice());
        assert_eq!(settings, (&[limit][..], &[Setting::Absent][..]));
    }
}
