//! Processors that are full because several share them: the tiers, the generator, and others.

use super::curve::{Curve, group, set, set_busy};
use super::finding::{Finding, INDIRECT};
use crate::resources::Group;
use crate::run::{
    CpuTimeEvidence, Doubt, HostName, Identity, Processes, ResourceKind, ShareEvidence as Seen, Shares, Step,
};
use crate::thresholds::PROCESSORS_FULL;

/// A starved tier always had some thread running or waiting to run. A tier that waits for something else has none most
/// of the time, however full the processors are with other work.
const WANTING: f64 = 0.9;

/// Work per request within this share of that on the plateau is in proportion to the throughput.
const PROPORTIONAL: f64 = 0.35;

/// Shared processors say less about the server than its own use of them would.
const WEAKER_THAN_OWN_USE: f64 = 0.04;

/// The finding, if the processors that the busiest tier may use are full.
pub(super) fn full(curve: &Curve) -> Option<Finding> {
    let of = busiest_tier(curve)?;
    let busy = curve.mean(|step| set_busy(step, group(step, &of)?))?;
    let shares = mean_shares(curve, &of)?;
    let more = shares.others > shares.tiers;
    let foreign = more && !in_proportion(curve, &of);
    let unseen = more && !foreign;
    if busy < PROCESSORS_FULL || wanting(curve) < WANTING {
        return None;
    }
    let follows = curve.follows_load(|step| Some(shares_of(step, &of)?.tiers));
    if !follows && !foreign {
        return None;
    }
    let finding = if foreign && shares.others > shares.generator {
        taken_by_others(machine(curve, &of), shares)
    } else if shares.generator >= shares.tiers {
        taken_by_generator(shares)
    } else {
        let finding = taken_by_tiers(curve, &of, shares);
        if unseen { finding.less_sure().seeing(Seen::UnseenWork) } else { without_generator(finding, shares) }
    };
    let host = Identity::Host { on: machine(curve, &of) };
    let own = [Identity::Processes(of.clone()), Identity::Thread(of), host];
    Some(finding.about(own).busy(busy).weaker_by(WEAKER_THAN_OWN_USE))
}

fn taken_by_tiers(curve: &Curve, of: &Processes, shares: Shares) -> Finding {
    let used = |step: &Step| Some(shares_of(step, of)?.tiers);
    let demand_us = curve.demand_us(used).unwrap_or(0.0);
    let other_tiers = curve.tiers().len() > 1;
    let mut finding = Finding::new(ResourceKind::Cpu, INDIRECT)
        .held_by(Identity::Processes(of.clone()))
        .demanding(Some(demand_us))
        .seeing(Seen::FullWithTiers { of: of.clone(), other_tiers, shares, demand_us });
    let threads = curve.group_mean(of, |group| group.run_queue);
    if threads > 0.0 {
        finding = finding.seeing(CpuTimeEvidence::RunQueue { threads });
    }
    if shares.generator > 0.0 { finding.about([Identity::Generator]) } else { finding }
}

/// Adds what the tiers would reach with the processors to themselves, by what was seen of their work.
fn without_generator(finding: Finding, shares: Shares) -> Finding {
    let throughput_per_s = finding.demand_us.map_or(0.0, |demand_us| shares.available / demand_us * 1e6);
    let tells = shares.generator > 0.0 && throughput_per_s.is_finite() && throughput_per_s > 0.0;
    if tells { finding.seeing(Seen::WithoutGenerator { throughput_per_s }) } else { finding }
}

fn taken_by_generator(shares: Shares) -> Finding {
    Finding::new(ResourceKind::Generator, INDIRECT)
        .held_by(Identity::Generator)
        .about([Identity::Generator])
        .seeing(Seen::FullWithGenerator { shares })
        .doubting(Doubt::GeneratorTookMore)
}

fn taken_by_others(on: HostName, shares: Shares) -> Finding {
    Finding::new(ResourceKind::Cpu, INDIRECT)
        .held_by(Identity::OtherProcesses { on })
        .seeing(Seen::FullWithOthers { shares })
        .doubting(Doubt::OthersTookMost { cores: shares.others, available: shares.available })
}

/// Whether what others used was in proportion to the throughput at every lighter step, of which there must be two, or one
/// where the host hardly did anything before the load began. Work that is (softirqs, children too short-lived to be seen) belongs
/// to the load; work that only came at the same time does not.
fn in_proportion(curve: &Curve, of: &Processes) -> bool {
    let per_request = |step: &Step| Some(shares_of(step, of)?.others / step.throughput_per_s);
    let Some(full) = curve.mean(per_request) else { return false };
    let lighter: Vec<f64> = curve.lighter().filter_map(per_request).collect();
    let proportional = |one: &f64| (one / full - 1.0).abs() <= PROPORTIONAL;
    // Tiers may be found only once they are called, so what they did before is in it as well.
    let host = machine(curve, of);
    let before = || Some(curve.at_rest()?.usage.host(&host)?.busy_cores());
    let now = || curve.mean(|step| Some(shares_of(step, of)?.others));
    let came_with_load = || before().zip(now()).is_some_and(|(before, now)| before < PROPORTIONAL * now);
    let enough = lighter.len() >= 2 || (lighter.len() == 1 && came_with_load());
    enough && lighter.iter().all(proportional)
}

/// The host whose processors a tier uses.
pub(super) fn machine(curve: &Curve, of: &Processes) -> HostName {
    curve.group(of).and_then(|group| group.machine.clone())
}

/// The tier that uses most processor time on the plateau.
pub(super) fn busiest_tier(curve: &Curve) -> Option<Processes> {
    let used = |of: &Processes| curve.group_mean(of, |group| group.cores);
    curve.tiers().into_iter().max_by(|a, b| used(a).total_cmp(&used(b)))
}

/// Cores that the server and its tiers used on the plateau.
pub(super) fn tier_cores(curve: &Curve) -> f64 {
    curve.mean(|step| Some(step.usage.tiers().map(|group| group.cores).sum())).unwrap_or(0.0)
}

/// How steadily the tier that wanted a processor most wanted one.
fn wanting(curve: &Curve) -> f64 {
    let wanting = |of: &Processes| curve.group_mean(of, Group::wanting);
    curve.tiers().iter().map(wanting).fold(0.0, f64::max)
}

/// Use of the processors that a tier may use, on the plateau.
fn mean_shares(curve: &Curve, of: &Processes) -> Option<Shares> {
    let part = |read: fn(&Shares) -> f64| curve.mean(|step| shares_of(step, of).map(|s| read(&s)));
    Some(Shares {
        tiers: part(|s| s.tiers)?,
        generator: part(|s| s.generator)?,
        others: part(|s| s.others)?,
        available: part(|s| s.available)?,
    })
}

fn shares_of(step: &Step, of: &Processes) -> Option<Shares> {
    shares_beside(step, group(step, of)?)
}

/// Use of the processors that a group may use, at one step.
pub(super) fn shares_beside(step: &Step, group: &Group) -> Option<Shares> {
    let cpus = set(step, group)?;
    let numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.number).collect();
    let here = |other: &Group| other.machine == group.machine;
    let inside = |other: &Group| if here(other) { other.cores * overlap(other, &numbers) } else { 0.0 };
    let tiers: f64 = step.usage.tiers().map(inside).sum();
    let generator = step.usage.generator().map_or(0.0, inside);
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

/// The busiest tier and what it shares with the generator, if they may use the same processors.
pub fn sharing(curve: &Curve) -> Option<(Processes, Shares)> {
    let of = busiest_tier(curve)?;
    let shared = curve.plateau().any(|step| {
        let (Some(tier), Some(generator)) = (group(step, &of), step.usage.generator()) else {
            return false;
        };
        match (set(step, tier), set(step, generator)) {
            (Some(a), Some(b)) if tier.machine == generator.machine => {
                a.iter().any(|cpu| b.iter().any(|other| other.number == cpu.number))
            }
            _ => false,
        }
    });
    let shares = mean_shares(curve, &of).filter(|_| shared)?;
    Some((of, shares))
}
