//! Which threads the CPU time of a full process went to, where their names tell.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::sweep::{GroupId, Sweep, group};
use crate::resources::Group;
use crate::run::{NamedThreads, ResourceKind, ThreadTime};
use crate::words::{count, percent, time};

/// With this share of the CPU time, what threads of one name do is what the process does.
const BETTER_PART: f64 = 0.5;

/// Threads with less of the CPU time are not listed.
const LISTED: f64 = 0.01;

/// With more of its threads left out of a look, what is missing may be theirs.
const LEFT_OUT: f64 = 0.02;

/// Adds which threads the holder's CPU time was spent in, where CPU time is what it lacks.
pub(super) fn with_names(sweep: &Sweep, mut finding: Finding) -> Finding {
    use ResourceKind::{Cpu, CpuQuota, SingleThread};
    if !matches!(finding.kind, Cpu | CpuQuota | SingleThread) {
        return finding;
    }
    let holder = sweep.tiers().into_iter().find(|id| sweep.group_name(id) == finding.holder);
    let Some((id, peak)) = holder.as_ref().and_then(|id| Some((id, sweep.group(id)?))) else {
        return finding;
    };
    let found = of_group(sweep, id);
    if let Some(sentence) = named(peak, &found, &finding).or_else(|| came_and_went(sweep, id, peak)) {
        // The first sentence says how busy it is; those of a quota or a thread go on in the second.
        let place = if finding.kind == Cpu { 1 } else { 2 };
        finding.evidence.insert(place.min(finding.evidence.len()), sentence);
    }
    let tells = found.names.iter().any(|threads| !peak.is_own_name(&threads.name));
    finding.threads = tells.then_some(found);
    finding
}

/// The holder's CPU time by the names of its threads, on the plateau.
fn of_group(sweep: &Sweep, id: &GroupId) -> ThreadTime {
    let all = sweep.group_mean(id, |group| group.cores);
    let groups = || sweep.plateau().filter_map(|point| group(point, id));
    let names: BTreeSet<&str> =
        groups().flat_map(|group| &group.threads_by_name).map(|threads| threads.name.as_str()).collect();
    let mut names: Vec<NamedThreads> = names
        .into_iter()
        .map(|name| NamedThreads {
            name: name.to_owned(),
            threads: groups().map(|group| at_once(group, name)).max().unwrap_or(0),
            share: (sweep.group_mean(id, |group| cores_of(group, name)) / all).clamp(0.0, 1.0),
            demand_us: sweep
                .demand_us(|point| group(point, id).map(|group| cores_of(group, name)))
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

/// The threads that have the better part of it, where their name says more than that of the process. One full thread
/// is named already.
fn named(peak: &Group, found: &ThreadTime, finding: &Finding) -> Option<String> {
    let most = found.names.first().filter(|most| most.share >= BETTER_PART)?;
    let known = finding.kind == ResourceKind::SingleThread && most.threads <= 1;
    if known || peak.is_own_name(&most.name) || most.name.is_empty() {
        return None;
    }
    let threads = match most.threads {
        _ if peak.threads_left_out > LEFT_OUT => "threads".to_owned(),
        0 | 1 => "one thread".to_owned(),
        many => format!("{} threads", count(many as f64)),
    };
    Some(format!(
        "Of the CPU time of {}, {} was spent in {threads} named `{}`: {} of each request.",
        finding.holder,
        percent(most.share),
        most.name,
        time(most.demand_us.unwrap_or(0.0))
    ))
}

/// That its threads cannot be told apart, for most of the time was spent by those that no look found twice.
fn came_and_went(sweep: &Sweep, id: &GroupId, peak: &Group) -> Option<String> {
    let seen = |group: &Group| group.threads_by_name.iter().map(|threads| threads.cores).sum::<f64>();
    let unseen = sweep.group_mean(id, |group| group.cores - group.reaped_cores - seen(group));
    let share = unseen / sweep.group_mean(id, |group| group.cores);
    (share >= BETTER_PART).then(|| {
        if peak.threads_left_out > LEFT_OUT {
            format!(
                "{} of that CPU time was spent in threads that were not looked at, for it has {} of them.",
                percent(share),
                count(f64::from(peak.threads))
            )
        } else {
            format!("{} of that CPU time was spent in threads that came and went.", percent(share))
        }
    })
}
