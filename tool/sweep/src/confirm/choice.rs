//! Which tiers are slowed and by what means, the suspected ones first, and which are left alone.

use analysis::{
    counters::Role,
    run::{Bottleneck, Identity, LeftAlone, LeftAloneReason, Link, Processes, ResourceKind, Slowable},
};
use observe::{KernelPaths, Stoppable};

use super::{Swept, link::LowerRate, quota::LowerQuota, slowing::Means};

/// Tiers beyond these are left alone: all of them together would take minutes.
const TIERS_MAX: usize = 6;

/// What is slowed, and what not.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// The tiers to slow, the suspected ones first.
    pub(super) chosen: Vec<Chosen>,
    pub(super) left_alone: Vec<LeftAlone>,
    /// Whether any may hold the bottleneck by what the verdict says.
    pub(super) is_any_suspected: bool,
}

/// A tier to slow.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) tier: Slowable,
    pub(super) means: Means,
}

/// Chooses what to slow; with `started_only` only what this process has started, of which no link is.
pub(super) fn choose(swept: &Swept<'_>, started_only: bool) -> Choice {
    let paths = KernelPaths::default();
    let suspects = suspects(swept.bottleneck);
    let chooser = Chooser {
        swept,
        paths: &paths,
        stoppable: Stoppable::by_this_process(&paths),
        started_only,
        suspects: &suspects,
    };
    let mut tiers: Vec<(Slowable, Vec<u32>)> = (swept.tiers)().into_iter().map(tier).collect();
    if !started_only {
        tiers.extend(links(&suspects).map(|link| (link, Vec::new())));
    }
    tiers.sort_by_key(|(tier, _)| chooser.rank(tier));
    let elsewhere = swept.elsewhere.iter().cloned().map(Slowable::from);
    let elsewhere = elsewhere.map(|tier| LeftAlone { tier, reason: LeftAloneReason::Elsewhere });
    let is_any_suspected = tiers.iter().any(|(tier, _)| chooser.rank(tier) < suspects.len());
    let mut choice = Choice { left_alone: elsewhere.collect(), is_any_suspected, ..Choice::default() };
    for (tier, pids) in tiers {
        match chooser.means(&tier, &pids, &mut choice.left_alone) {
            Err(reason) => choice.left_alone.push(LeftAlone { tier, reason }),
            Ok(_) if choice.chosen.len() == TIERS_MAX => {
                choice.left_alone.push(LeftAlone { tier, reason: LeftAloneReason::NoTime });
            }
            Ok(means) => choice.chosen.push(Chosen { tier, means }),
        }
    }
    choice
}

/// What may be the bottleneck: a kind of limit, and who holds it.
type Suspect<'a> = (ResourceKind, &'a Identity);

/// Those that can be slowed at all, the most probable first.
fn suspects(bottleneck: &Bottleneck) -> Vec<Suspect<'_>> {
    let others = bottleneck.alternatives.iter().map(|other| (other.kind, other.identity.as_ref()));
    let all = std::iter::once((bottleneck.kind, bottleneck.identity.as_ref())).chain(others);
    let named = all.filter_map(|(kind, identity)| Some((kind, identity?)));
    named.filter(|(_, identity)| Slowable::of(identity).is_some()).collect()
}

/// The suspected links, each once.
fn links(suspects: &[Suspect<'_>]) -> impl Iterator<Item = Slowable> {
    let all = suspects.iter().filter_map(|(_, identity)| Slowable::of(identity));
    let mut links: Vec<Slowable> = Vec::new();
    for link in all.filter(|tier| tier.link.is_some()) {
        if !links.contains(&link) {
            links.push(link);
        }
    }
    links.into_iter()
}

fn tier(((role, name), pids): ((Role, String), Vec<u32>)) -> (Slowable, Vec<u32>) {
    let processes = Processes {
        role,
        name,
        pid: pids.first().copied().filter(|_| pids.len() == 1),
        processes: u32::try_from(pids.len()).unwrap_or(u32::MAX),
        on: None,
    };
    (processes.into(), pids)
}

struct Chooser<'a> {
    swept: &'a Swept<'a>,
    paths: &'a KernelPaths,
    stoppable: Stoppable<'a>,
    started_only: bool,
    suspects: &'a [Suspect<'a>],
}

impl Chooser<'_> {
    /// How many explanations are more probable than that it holds the bottleneck.
    fn rank(&self, tier: &Slowable) -> usize {
        let found = self.suspects.iter().position(|(_, identity)| tier.is(identity));
        found.unwrap_or(self.suspects.len())
    }

    /// What slows a tier. Notes where its quota was to be lowered and could not be.
    fn means(
        &self,
        tier: &Slowable,
        pids: &[u32],
        left_alone: &mut Vec<LeftAlone>,
    ) -> Result<Means, LeftAloneReason> {
        if let Some(link) = &tier.link {
            return self.rate(link).map(Means::Rate);
        }
        let stopping = self.may_stop(pids);
        let kind = self.suspects.get(self.rank(tier)).map(|(kind, _)| *kind);
        if by_quota(kind, stopping) {
            match LowerQuota::of(self.paths, pids) {
                Ok(quota) => return Ok(Means::Quota(quota)),
                Err(reason) => left_alone.push(LeftAlone { tier: tier.clone(), reason }),
            }
        }
        stopping.map(|()| Means::Stopping(pids.to_vec()))
    }

    /// Whether all of these may be stopped. Of several reasons not to, one that forbids a lower quota as well comes first.
    fn may_stop(&self, pids: &[u32]) -> Result<(), LeftAloneReason> {
        let may = |pid: u32| -> Result<(), LeftAloneReason> {
            if self.started_only {
                self.stoppable.check_started(pid)?;
            }
            self.stoppable.check(pid)
        };
        let reasons: Vec<LeftAloneReason> = pids.iter().filter_map(|pid| may(*pid).err()).collect();
        let forbids_both = reasons.iter().find(|reason| !allows_quota(**reason));
        forbids_both.or(reasons.first()).map_or(Ok(()), |reason| Err(*reason))
    }

    fn rate(&self, link: &Link) -> Result<LowerRate, LeftAloneReason> {
        if link.on.is_some() {
            return Err(LeftAloneReason::Elsewhere);
        }
        let mut used = self.swept.steps.iter().rev().flat_map(|step| &step.usage.links);
        let used = used.find(|used| (&used.name, &used.on) == (&link.name, &link.on));
        let used = used.ok_or(LeftAloneReason::Ended)?;
        if !used.is_fuller_on_the_way_out() {
            return Err(LeftAloneReason::FullOnTheWayIn);
        }
        let interface = self.swept.topology.interface(&link.name).ok_or(LeftAloneReason::Ended)?;
        LowerRate::of(interface, used)
    }
}

/// Whether a tier is slowed by a lower quota: where that is what it is suspected of most, as processes that are stopped for a
/// part of the time spend it all the same. Of anything else a quota tells nothing: a tier that nearly uses it up would follow
/// it, also where requests wait for a lock.
fn by_quota(suspected_of: Option<ResourceKind>, stopping: Result<(), LeftAloneReason>) -> bool {
    suspected_of == Some(ResourceKind::CpuQuota) && stopping.err().is_none_or(allows_quota)
}

/// Whether a lower quota does no harm to processes that are not to be stopped for this reason. What belongs to another user is
/// slowed by no means.
fn allows_quota(not_stopped: LeftAloneReason) -> bool {
    matches!(not_stopped, LeftAloneReason::Debugged | LeftAloneReason::Foreground)
}

#[cfg(test)]
mod tests {
    use analysis::run::{Explanation, Step};
    use load::Think;
    use observe::Topology;

    use super::*;
    use crate::confirm::Tiers;

    fn processes(name: &str) -> Processes {
        Processes { role: Role::Server, name: name.into(), pid: None, processes: 1, on: None }
    }

    fn link(name: &str, on: Option<&str>) -> Identity {
        Identity::Link { name: name.into(), on: on.map(Into::into) }
    }

    fn explanation(kind: ResourceKind, identity: Identity) -> Explanation {
        Explanation { kind, identity: Some(identity), ..Explanation::default() }
    }

    #[test]
    fn a_lower_quota_takes_the_place_of_stopping_only_where_it_tells_more() {
        use LeftAloneReason::{Debugged, OtherUser, Ours, Stopped};
        let of = |kind, stopping| by_quota(Some(kind), stopping);
        assert!(of(ResourceKind::CpuQuota, Ok(())) && of(ResourceKind::CpuQuota, Err(Debugged)));
        assert!(!of(ResourceKind::CpuQuota, Err(Ours)) && !of(ResourceKind::CpuQuota, Err(Stopped)));
        assert!(!of(ResourceKind::CpuQuota, Err(OtherUser)));
        assert!(!of(ResourceKind::Cpu, Ok(())) && !of(ResourceKind::Cpu, Err(Debugged)));
        assert!(!of(ResourceKind::Lock, Err(Debugged)) && !by_quota(None, Ok(())));
    }

    #[test]
    fn what_is_suspected_comes_first_and_a_link_is_a_tier() {
        let mut bottleneck = Bottleneck { kind: ResourceKind::CpuQuota, ..Bottleneck::default() };
        bottleneck.identity = Some(Identity::Quota(processes("back")));
        bottleneck.alternatives = vec![
            explanation(ResourceKind::Network, link("eth0", None)),
            explanation(ResourceKind::Cpu, Identity::Host { on: None }),
            explanation(ResourceKind::Lock, Identity::Processes(processes("back"))),
            explanation(ResourceKind::Network, link("eth0", None)),
            explanation(ResourceKind::Network, link("eth0", Some("web"))),
        ];
        let suspects = suspects(&bottleneck);
        assert_eq!(suspects.len(), 5, "nobody can slow a whole host");
        let found: Vec<Identity> = links(&suspects).map(|link| link.identity()).collect();
        assert_eq!(found, [link("eth0", None), link("eth0", Some("web"))]);
        let paths = KernelPaths::default();
        let (steps, topology) = ([Step::default()], Topology::unseen(([127, 0, 0, 1], 80).into()));
        let swept = swept(&bottleneck, &steps, topology);
        let stoppable = Stoppable::by_this_process(&paths);
        let chooser =
            Chooser { swept: &swept, paths: &paths, stoppable, started_only: false, suspects: &suspects };
        let rank = |tier: Slowable| chooser.rank(&tier);
        assert_eq!(rank(processes("back").into()), 0);
        assert_eq!(Slowable::of(&link("eth0", None)).map(rank), Some(1));
        assert_eq!(chooser.rank(&processes("front").into()), 5);
        let of = |name: &str, on: Option<&str>| Link { name: name.into(), on: on.map(Into::into) };
        assert_eq!(chooser.rate(&of("eth0", Some("web"))).err(), Some(LeftAloneReason::Elsewhere));
        assert_eq!(chooser.rate(&of("eth0", None)).err(), Some(LeftAloneReason::Ended), "it was not seen");
    }

    #[test]
    fn a_link_that_is_full_on_the_way_in_is_left_alone() {
        let bottleneck = Bottleneck::default();
        let mut step = Step::default();
        step.usage.links = vec![analysis::resources::LinkUse {
            name: "eth0".into(),
            received_bits_per_s: 9e8,
            sent_bits_per_s: 1e7,
            link_bits_per_s: Some(1e9),
            ..Default::default()
        }];
        let (steps, topology) = ([step], Topology::unseen(([127, 0, 0, 1], 80).into()));
        let swept = swept(&bottleneck, &steps, topology);
        let paths = KernelPaths::default();
        let stoppable = Stoppable::by_this_process(&paths);
        let chooser = Chooser { swept: &swept, paths: &paths, stoppable, started_only: false, suspects: &[] };
        let eth0 = Link { name: "eth0".into(), on: None };
        assert_eq!(chooser.rate(&eth0).err(), Some(LeftAloneReason::FullOnTheWayIn));
    }

    /// What may not be slowed by a quota either decides, whichever process it is.
    #[test]
    fn one_process_that_was_not_started_here_spares_all_of_its_tier() {
        let bottleneck = Bottleneck::default();
        let (steps, topology) = ([Step::default()], Topology::unseen(([127, 0, 0, 1], 80).into()));
        let swept = swept(&bottleneck, &steps, topology);
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        let user = rustix::process::geteuid().as_raw();
        let lay_out = |pid: u32, parent: u32| {
            let of = folder.path().join(pid.to_string());
            std::fs::create_dir_all(&of).unwrap();
            std::fs::write(of.join("stat"), format!("{pid} (x) S {parent} {pid} 1 0 -1 0 0")).unwrap();
            let uid = [user; 4].map(|user| user.to_string()).join("\t");
            std::fs::write(of.join("status"), format!("State:\tS (s)\nTracerPid:\t99\nUid:\t{uid}\n"))
                .unwrap();
        };
        // Both are debugged, and this process has started the first.
        lay_out(7, std::process::id());
        lay_out(8, 1);
        let may_stop = |started_only, pids: &[u32]| {
            let stoppable = Stoppable::by_this_process(&paths);
            Chooser { swept: &swept, paths: &paths, stoppable, started_only, suspects: &[] }.may_stop(pids)
        };
        assert_eq!(may_stop(true, &[7]), Err(LeftAloneReason::Debugged));
        assert_eq!(may_stop(true, &[7, 8]), Err(LeftAloneReason::NotStarted));
        assert_eq!(may_stop(false, &[7, 8]), Err(LeftAloneReason::Debugged));
    }

    /// Lays out process 7 of this user, alone under a CPU quota and held by a debugger.
    fn lay_out_under_a_quota(folder: &std::path::Path, user: u32) -> KernelPaths {
        for directory in ["proc/7", "cgroup/web"] {
            std::fs::create_dir_all(folder.join(directory)).unwrap();
        }
        let status = format!("State:\tS (s)\nTracerPid:\t99\nUid:\t{user}\t{user}\t{user}\t{user}\n");
        for (file, text) in [
            ("proc/7/stat", "7 (x) S 1 7 1 0 -1 0 0"),
            ("proc/7/status", status.as_str()),
            ("proc/7/cgroup", "0::/web\n"),
            ("cgroup/web/cgroup.procs", "7\n"),
            ("cgroup/web/cpu.max", "20000 100000\n"),
        ] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        let at = |name| folder.join(name);
        KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cgroup") }
    }

    #[test]
    fn the_quota_of_another_users_processes_is_never_lowered() {
        let own = rustix::process::geteuid().as_raw();
        let mut bottleneck = Bottleneck { kind: ResourceKind::CpuQuota, ..Bottleneck::default() };
        bottleneck.identity = Some(Identity::Quota(processes("web")));
        let suspects = suspects(&bottleneck);
        let (steps, topology) = ([Step::default()], Topology::unseen(([127, 0, 0, 1], 80).into()));
        let swept = swept(&bottleneck, &steps, topology);
        let means = |user: u32| {
            let folder = tempfile::tempdir().unwrap();
            let paths = lay_out_under_a_quota(folder.path(), user);
            let stoppable = Stoppable::by_this_process(&paths);
            let chooser =
                Chooser { swept: &swept, paths: &paths, stoppable, started_only: false, suspects: &suspects };
            let mut left_alone = Vec::new();
            let means = chooser.means(&processes("web").into(), &[7], &mut left_alone);
            (means, left_alone)
        };
        // A debugger holds both, so that neither is stopped.
        assert!(matches!(means(own), (Ok(Means::Quota(_)), _)));
        let (others, left_alone) = means(own.wrapping_sub(7));
        assert_eq!((others.err(), left_alone), (Some(LeftAloneReason::OtherUser), Vec::new()));
    }

    fn swept<'a>(bottleneck: &'a Bottleneck, steps: &'a [Step], topology: Topology) -> Swept<'a> {
        Swept {
            steps,
            bottleneck,
            think: Think::None,
            users_max: 64,
            tiers: &Tiers::new,
            elsewhere: Vec::new(),
            topology,
        }
    }
}
