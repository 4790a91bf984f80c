//! Processors that are full because several share them: the tiers, the generator, and strangers.

use super::finding::Finding;
use super::interference::OTHERS;
use super::sweep::{GroupId, Point, Sweep, group, set, set_busy};
use super::utilisation::Id;
use crate::resources::Group;
use crate::run::{Confidence, ResourceKind};
use crate::words::{about, core_noun, cores, time};

/// Shared processors this busy are full. Higher than for one group's own use: part of what keeps them
/// busy may be work that would have waited.
const SET_FULL: f64 = 0.93;

/// A tier that was starved always had some thread running or waiting to run; one that waits for
/// something else has none most of the time, however full the processors are with other work.
const WANTING: f64 = 0.9;

/// Work per request within this share of that on the plateau is in proportion to the throughput.
const PROPORTIONAL: f64 = 0.35;

/// Shared processors say less about the server than its own use of them would.
const WEAKER: f64 = 0.04;

/// Who used the processors that the busiest tier may use, in cores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shares {
    /// All tiers together.
    pub tiers: f64,
    /// The generator, as far as it may use the same processors.
    pub generator: f64,
    /// Anything else, the kernel's own work included.
    pub others: f64,
    /// How many processors there are to share, steal deducted.
    pub available: f64,
}

/// The finding, if the processors that the busiest tier may use are full.
pub(super) fn full(sweep: &Sweep) -> Option<Finding> {
    let id = busiest_tier(sweep)?;
    let busy = sweep.mean(|point| set_busy(point, group(point, &id)?))?;
    let shares = mean_shares(sweep, &id)?;
    let more = shares.others > shares.tiers;
    let foreign = more && strangers(sweep, &id);
    let unseen = more && !foreign;
    if busy < SET_FULL || wanting(sweep) < WANTING {
        return None;
    }
    let follows = sweep.follows_load(|point| Some(self::shares(point, &id)?.tiers));
    if !follows && !foreign {
        return None;
    }
    let finding = if foreign && shares.others > shares.generator {
        taken_by_others(&shares)
    } else if shares.generator >= shares.tiers {
        taken_by_generator(&shares)
    } else {
        let finding = taken_by_tiers(sweep, &id, &shares);
        if unseen { doing_unseen_work(finding) } else { finding }
    };
    let own = [Id::Cpu(id.0, id.1.clone()), Id::Thread(id.0, id.1.clone()), Id::Host];
    Some(finding.about(own).busy(busy).weaker_by(WEAKER))
}

fn taken_by_tiers(sweep: &Sweep, id: &GroupId, shares: &Shares) -> Finding {
    let used = |point: &Point| Some(self::shares(point, id)?.tiers);
    let demand = sweep.demand_us(used).unwrap_or(0.0);
    let name = sweep.group_name(id);
    let alone = sweep.tiers().len() == 1;
    let who = if alone { format!("{name} uses") } else { format!("{name} and the other tiers use") };
    let mut finding = Finding::new(ResourceKind::Cpu, Confidence::Medium)
        .held_by(name.clone())
        .demanding(Some(demand))
        .saying(format!(
            "{}: {who} {}, the load generator {}, everything else {}; each request costs the tiers {} of CPU.",
            all_full(shares),
            cores(shares.tiers),
            cores(shares.generator),
            cores(shares.others),
            time(demand)
        ));
    let queue = sweep.group_mean(id, |group| group.run_queue);
    if queue > 0.0 {
        finding = finding.saying(format!(
            "On average {} of its runnable threads waited for a processor.",
            crate::words::count(queue)
        ));
    }
    if shares.generator > 0.0 {
        finding = finding.about([Id::Generator]).saying(format!(
            "The generator takes part of what the server could use: with these processors to itself it would reach \
             about {} req/s.",
            about(shares.available / demand * 1e6)
        ));
    }
    finding
}

/// Most of the work was done by nobody that was watched, and came and went with the load.
fn doing_unseen_work(mut finding: Finding) -> Finding {
    finding.confidence = Confidence::Low;
    finding.saying(
        "What everything else used came and went with the load: children too short-lived to be seen, interrupts, or \
         processes not recognised as the server's."
            .to_owned(),
    )
}

fn taken_by_generator(shares: &Shares) -> Finding {
    Finding::new(ResourceKind::Generator, Confidence::Medium)
        .held_by("generator")
        .about([Id::Generator])
        .saying(format!(
            "{}: the load generator uses {}, the server and its tiers only {}.",
            all_full(shares),
            cores(shares.generator),
            cores(shares.tiers)
        ))
        .doubting(
            "The load generator takes more of the shared processors than the server: give each its own (taskset, \
             for the server, --cpus for the generator), or run the generator on another host."
                .to_owned(),
        )
}

fn taken_by_others(shares: &Shares) -> Finding {
    Finding::new(ResourceKind::Cpu, Confidence::Medium)
        .held_by(OTHERS)
        .saying(format!(
            "{}: processes that are not part of the test use {}, whatever the load; the server and its tiers use {}, \
             the load generator {}.",
            all_full(shares),
            cores(shares.others),
            cores(shares.tiers),
            cores(shares.generator)
        ))
        .doubting(format!(
            "Other processes on this host used {} of {} {}: stop them and measure again.",
            cores(shares.others),
            cores(shares.available),
            core_noun(shares.available)
        ))
}

/// `All 2 cores are full`, as the beginning of a sentence.
fn all_full(shares: &Shares) -> String {
    if shares.available <= 1.0 {
        "The one core that the server may use is full".to_owned()
    } else {
        format!("All {} cores are full", cores(shares.available))
    }
}

/// Whether the others' use is not in proportion to the throughput at every lighter step. What is
/// (softirqs, children too short-lived to be seen) belongs to the load; what only happened to come at
/// the same time does not.
fn strangers(sweep: &Sweep, id: &GroupId) -> bool {
    let per_request = |point: &Point| Some(shares(point, id)?.others / point.throughput_per_s);
    let Some(full) = sweep.mean(per_request) else { return true };
    let lighter: Vec<f64> = sweep.lighter().filter_map(per_request).collect();
    let proportional = |one: &f64| (one / full - 1.0).abs() <= PROPORTIONAL;
    lighter.len() < 2 || !lighter.iter().all(proportional)
}

/// The tier that uses most processor time on the plateau.
pub(super) fn busiest_tier(sweep: &Sweep) -> Option<GroupId> {
    let used = |id: &GroupId| sweep.group_mean(id, |group| group.cores);
    sweep.tiers().into_iter().max_by(|a, b| used(a).total_cmp(&used(b)))
}

/// Cores that the server and its tiers used on the plateau.
pub(super) fn tier_cores(sweep: &Sweep) -> f64 {
    sweep.mean(|point| Some(point.resources.tiers().map(|group| group.cores).sum())).unwrap_or(0.0)
}

/// How steadily the tier that wanted a processor most wanted one.
fn wanting(sweep: &Sweep) -> f64 {
    let wanting = |id: &GroupId| sweep.group_mean(id, Group::wanting);
    sweep.tiers().iter().map(wanting).fold(0.0, f64::max)
}

/// Who used the processors that `id` may use, on the plateau.
pub(super) fn mean_shares(sweep: &Sweep, id: &GroupId) -> Option<Shares> {
    let part = |read: fn(&Shares) -> f64| sweep.mean(|point| shares(point, id).map(|s| read(&s)));
    Some(Shares {
        tiers: part(|s| s.tiers)?,
        generator: part(|s| s.generator)?,
        others: part(|s| s.others)?,
        available: part(|s| s.available)?,
    })
}

fn shares(point: &Point, id: &GroupId) -> Option<Shares> {
    shares_beside(point, group(point, id)?)
}

/// Who used the processors that a group may use, at one step.
pub(super) fn shares_beside(point: &Point, group: &Group) -> Option<Shares> {
    let cpus = set(point, group)?;
    let numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.number).collect();
    let inside = |group: &Group| group.cores * overlap(group, &numbers);
    let tiers: f64 = point.resources.tiers().map(inside).sum();
    let generator = point.resources.generator().map_or(0.0, inside);
    let busy: f64 = cpus.iter().map(|cpu| cpu.busy).sum();
    Some(Shares {
        tiers,
        generator,
        others: (busy - tiers - generator).max(0.0),
        available: cpus.iter().map(|cpu| 1.0 - cpu.steal).sum(),
    })
}

/// Share of the processors a group may use that are among these; all, where it did not say which.
fn overlap(group: &Group, numbers: &[u32]) -> f64 {
    if group.allowed.is_empty() {
        return 1.0;
    }
    let shared = group.allowed.iter().filter(|number| numbers.contains(number)).count();
    shared as f64 / group.allowed.len() as f64
}

/// Whether the generator may run where the tiers may; what it shares with them, if anything.
pub fn sharing(sweep: &Sweep) -> Option<(String, Shares)> {
    let id = busiest_tier(sweep)?;
    let shared = sweep.plateau().any(|point| {
        let (Some(tier), Some(generator)) = (group(point, &id), point.resources.generator()) else {
            return false;
        };
        match (set(point, tier), set(point, generator)) {
            (Some(a), Some(b)) => a.iter().any(|cpu| b.iter().any(|other| other.number == cpu.number)),
            _ => false,
        }
    });
    if !shared {
        return None;
    }
    Some((sweep.group_name(&id), mean_shares(sweep, &id)?))
}
