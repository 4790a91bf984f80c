//! Which threads the CPU time of a full process went to, where their names tell.

use std::collections::BTreeSet;

use super::curve::{Curve, group};
use super::finding::Finding;
use crate::resources::Group;
use crate::run::{CpuTimeEvidence as Seen, NamedThreads, Processes, ResourceKind, ThreadTime};
use crate::thresholds::LISTED;

/// With this share of the CPU time, what threads of one name do is what the process does.
const BETTER_PART: f64 = 0.5;

/// With more of its threads left out of a sample, missing CPU time may be theirs.
pub(super) const LEFT_OUT: f64 = 0.02;

/// Adds which threads the holder's CPU time was spent in, where CPU time is what it lacks.
pub(super) fn with_names(curve: &Curve, mut finding: Finding) -> Finding {
    use ResourceKind::{Cpu, CpuQuota, SingleThread};
    if !matches!(finding.kind, Cpu | CpuQuota | SingleThread) {
        return finding;
    }
    let holder = curve.tiers().into_iter().find(|of| finding.is_held_by(of));
    let Some((of, peak)) = holder.as_ref().and_then(|of| Some((of, curve.group(of)?))) else {
        return finding;
    };
    let found = thread_time(curve, of);
    if let Some(seen) =
        most_in_one_name(of, peak, &found, finding.kind).or_else(|| came_and_went(curve, of, peak))
    {
        // The first entry says how busy the process is; that of a quota or a thread goes on in the second.
        let place = if finding.kind == Cpu { 1 } else { 2 };
        finding.evidence.insert(place.min(finding.evidence.len()), seen.into());
    }
    let tells = found.names.iter().any(|threads| !peak.is_own_name(&threads.name));
    finding.threads = tells.then_some(found);
    finding
}

/// CPU time by the names of threads, on the plateau.
fn thread_time(curve: &Curve, of: &Processes) -> ThreadTime {
    let all = curve.group_mean(of, |group| group.cores);
    let groups = || curve.plateau().filter_map(|step| group(step, of));
    let names: BTreeSet<&str> =
        groups().flat_map(|group| &group.threads_by_name).map(|threads| threads.name.as_str()).collect();
    let mut names: Vec<NamedThreads> = names
        .into_iter()
        .map(|name| NamedThreads {
            name: name.to_owned(),
            threads: groups().map(|group| at_once(group, name)).max().unwrap_or(0),
            share: (curve.group_mean(of, |group| cores_of(group, name)) / all).clamp(0.0, 1.0),
            demand_us: curve
                .demand_us(|step| group(step, of).map(|group| cores_of(group, name)))
                .filter(|us| us.is_finite()),
        })
        .filter(|threads| threads.share >= LISTED)
        .collect();
    names.sort_by(|a, b| b.share.total_cmp(&a.share));
    let listed: f64 = names.iter().map(|threads| threads.share).sum();
    ThreadTime { names, rest: (1.0 - listed).clamp(0.0, 1.0) }
}

fn cores_of(group: &Group, name: &str) -> f64 {
    group.threads_by_name.iter().filter(|threads| threads.name == name).map(|threads| threads.cores).sum()
}

fn at_once(group: &Group, name: &str) -> u64 {
    group.threads_by_name.iter().find(|threads| threads.name == name).map_or(0, |found| found.threads as u64)
}

/// The threads that spent most of it, where their name says more than that of the process. A single full thread is
/// named already.
fn most_in_one_name(of: &Processes, peak: &Group, found: &ThreadTime, kind: ResourceKind) -> Option<Seen> {
    let most = found.names.first().filter(|most| most.share >= BETTER_PART)?;
    let known = kind == ResourceKind::SingleThread && most.threads <= 1;
    if known || peak.is_own_name(&most.name) || most.name.is_empty() {
        return None;
    }
    Some(Seen::ThreadsOfOneName {
        of: of.clone(),
        name: most.name.clone(),
        threads: (peak.threads_left_out <= LEFT_OUT).then_some(most.threads.max(1)),
        share: most.share,
        demand_us: most.demand_us.unwrap_or(0.0),
    })
}

/// Evidence that the threads cannot be told apart, because no sample found most of them twice.
fn came_and_went(curve: &Curve, of: &Processes, peak: &Group) -> Option<Seen> {
    let seen = |group: &Group| group.threads_by_name.iter().map(|threads| threads.cores).sum::<f64>();
    let unseen = curve.group_mean(of, |group| group.cores - group.reaped_cores - seen(group));
    let share = unseen / curve.group_mean(of, |group| group.cores);
    (share >= BETTER_PART).then(|| {
        if peak.threads_left_out > LEFT_OUT {
            Seen::ThreadsLeftOut { share, threads: u64::from(peak.threads) }
        } else {
            Seen::ShortLivedThreads { share }
        }
    })
}
