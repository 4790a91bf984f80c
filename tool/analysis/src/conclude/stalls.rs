//! Whether nothing was answered for a noticeable part of the time at N*, and what went on meanwhile.

use crate::resources::{GroupKey, Happened, Meanwhile as Seen};
use crate::run::{Cause, HostName, Meanwhile, Processes, ResourceKind, Stalls, Step};
use crate::verdict::{Curve, Finding};

/// Less of the time than this is not worth a word.
const NOTICEABLE: f64 = 0.05;

/// Fewer stretches than this are an accident, of whatever.
const SEVERAL: usize = 3;

/// One user waits for single requests, and nobody else could tell that the server stopped.
const USERS: u32 = 2;

/// What is to be told of the step at N*, or the next one with several users.
pub(super) fn stalls(curve: &Curve, finding: &Finding) -> Option<Cause> {
    // That verdict says the same.
    if finding.kind == ResourceKind::GarbageCollection {
        return None;
    }
    let step = curve.plateau().find(|step| step.users >= USERS)?;
    let lengths_us: Vec<u64> = step.measurement.silences.iter().map(length_us).collect();
    let measured_us: u64 = step.measurement.all_windows().iter().map(length_us).sum();
    let share = lengths_us.iter().sum::<u64>() as f64 / measured_us.max(1) as f64;
    (share >= NOTICEABLE && lengths_us.len() >= SEVERAL).then(|| {
        Cause::Stalls(Stalls {
            users: step.users,
            share: share.min(1.0),
            longest_s: lengths_us.iter().max().map_or(0.0, |longest| *longest as f64 / 1e6),
            times: lengths_us.len() as u64,
            meanwhile: meanwhile(curve, step),
        })
    })
}

fn length_us((start_us, end_us): &(u64, u64)) -> u64 {
    end_us.saturating_sub(*start_us)
}

fn meanwhile(curve: &Curve, step: &Step) -> Meanwhile {
    let otherwise = if step.usage.observed() { Meanwhile::NothingSeen } else { Meanwhile::NotWatched };
    step.usage.meanwhile.iter().find_map(|seen| told(curve, step, seen)).unwrap_or(otherwise)
}

/// `None` for what happened where no tier of the server runs.
fn told(curve: &Curve, step: &Step, seen: &Seen) -> Option<Meanwhile> {
    let share = seen.share;
    let processes = |key: &GroupKey| -> Option<Processes> {
        let group = step.usage.tiers().find(|group| group.key() == *key)?;
        Some(curve.processes(group))
    };
    let serves = |on: &HostName| step.usage.tier_hosts().any(|host| host.name == *on);
    Some(match &seen.what {
        Happened::Throttled { of, cgroup } => {
            Meanwhile::Throttled { of: processes(of)?, cgroup: cgroup.clone(), share }
        }
        Happened::Collected { of, threads } => {
            Meanwhile::Collected { of: processes(of)?, threads: threads.clone(), cores: share }
        }
        Happened::MemoryAwaited { on } => {
            serves(on).then(|| Meanwhile::MemoryAwaited { on: on.clone(), share })?
        }
        Happened::DiskAwaited { on, device } => {
            serves(on).then(|| Meanwhile::DiskAwaited { on: on.clone(), device: device.clone(), share })?
        }
        Happened::WorkedOn { of } => Meanwhile::WorkedOn { of: processes(of)?, share },
    })
}
