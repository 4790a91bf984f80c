//! A garbage collector that stops all threads of its process for a large part of the time.
//!
//! Two things must be seen together: stretches of time in which nobody was answered, and CPU time that was spent
//! meanwhile, in threads named after a collector or, in a runtime that collects in its working threads, in the process
//! itself. Where it is known what went with these stretches, and it is something else, the collector is not why.

use super::curve::{Curve, group};
use super::finding::{Finding, INDIRECT, LIKELY};
use crate::resources::collectors::{COLLECTING, collect_in_workers, collects};
use crate::resources::{Group, Happened};
use crate::run::{CpuTimeEvidence, Identity, Processes, ResourceKind, WaitingEvidence as Seen};

/// Pauses that take less of the time than this are not what stops a server: without them it would carry a quarter more.
const PAUSED: f64 = 0.20;

/// The finding, if pauses take a large part of the plateau and a collector ran meanwhile.
pub(super) fn stops_the_world(curve: &Curve) -> Option<Finding> {
    let share = curve.mean(|step| Some(step.measurement.pauses.share))?;
    if share < PAUSED || !curve.observed() || !outlast_responses(curve) || only_others_stop_it(curve) {
        return None;
    }
    let named = curve.tiers().into_iter().find_map(|of| Some((in_named_threads(curve, &of, share)?, of)));
    let (seen, of, confidence) = match named {
        Some((seen, of)) => (seen, of, INDIRECT),
        None => {
            let of = curve.tiers().into_iter().find(|of| collects_while_paused(curve, of, share))?;
            (in_workers(curve, &of), of, LIKELY)
        }
    };
    let longest_us = curve.plateau().map(|step| step.measurement.pauses.longest_us).max().unwrap_or(0);
    let users = curve.star_users();
    Some(
        Finding::new(ResourceKind::GarbageCollection, confidence)
            .held_by(Identity::Processes(of.clone()))
            .about(super::processor::own_resources(&of))
            .seeing(Seen::NothingAnswered { share, longest_us: longest_us as f64, users })
            .seeing(seen),
    )
}

/// Whether something went with the stretches in which nobody was answered, at half of the steps or more, and a collector at none.
/// Where nothing was seen to, as where all stretches are alike, a collector may have.
fn only_others_stop_it(curve: &Curve) -> bool {
    let collects = |what: &Happened| matches!(what, Happened::Collected { .. } | Happened::WorkedOn { .. });
    let mut seen = curve.plateau().flat_map(|step| &step.usage.meanwhile).map(|seen| &seen.what);
    let with_others = curve.plateau().filter(|step| !step.usage.meanwhile.is_empty()).count();
    with_others > 0 && 2 * with_others >= curve.plateau().count() && !seen.any(collects)
}

/// Whether the longest pause is longer than most responses take. Users in step, as those of a server that answers in batches,
/// leave gaps as long as their responses.
fn outlast_responses(curve: &Curve) -> bool {
    let outlasts =
        |step: &crate::run::Step| step.measurement.pauses.longest_us as f64 > step.response_time_us.p50;
    curve.star().is_some_and(outlasts)
}

/// Evidence that threads named after a collector ran in the pauses.
fn in_named_threads(curve: &Curve, of: &Processes, paused: f64) -> Option<CpuTimeEvidence> {
    let cores = curve.group_mean(of, collector_cores);
    let name = curve.group(of)?.threads_by_name.iter().find(|threads| collects(&threads.name))?.name.clone();
    (cores >= COLLECTING * paused).then(|| CpuTimeEvidence::CollectorThreads { of: of.clone(), name, cores })
}

fn collector_cores(group: &Group) -> f64 {
    group.threads_by_name.iter().filter(|threads| collects(&threads.name)).map(|threads| threads.cores).sum()
}

/// Whether a runtime that works on one core at a time must have worked in the pauses: it used more CPU time than there
/// was between them.
fn collects_while_paused(curve: &Curve, of: &Processes, paused: f64) -> bool {
    let one_core = |step: &crate::run::Step| Some(group(step, of)?.busiest_process_cores.min(1.0));
    let cores = curve.mean(one_core).unwrap_or(0.0);
    collect_in_workers(&of.name) && cores - (1.0 - paused) >= COLLECTING * paused
}

fn in_workers(curve: &Curve, of: &Processes) -> CpuTimeEvidence {
    CpuTimeEvidence::WorkedInPauses { of: of.clone(), cores: curve.group_mean(of, |group| group.cores) }
}
