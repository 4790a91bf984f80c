//! Links and shapers. Loopback has neither.

use super::curve::Curve;
use super::finding::{DIRECT, Finding, INDIRECT};
use crate::resources::LinkUse;
use crate::run::{DeviceEvidence as Seen, HostName, Identity, ResourceKind, Step};
use crate::thresholds::FULL;

/// A shaper that delays packets and holds a queue is full at a lower share: its rate may count
/// headers that the interface's counter does not.
const SHAPED_FULL: f64 = 0.80;

/// Share of the samples in which bytes waited in the shaper.
const BACKLOGGED: f64 = 0.3;

/// Interfaces that carry the load and were full.
pub(super) fn full(curve: &Curve) -> Vec<Finding> {
    let Some(star) = curve.star() else { return Vec::new() };
    let carrying = star.usage.links.iter().filter(|link| link.carries_load && curve.limit_is_real(link));
    carrying.filter_map(|link| of_link(curve, (&link.name, &link.on))).collect()
}

/// The name of a link, and what it belongs to.
type Named<'a> = (&'a str, &'a HostName);

fn of_link(curve: &Curve, at: Named<'_>) -> Option<Finding> {
    let mean = |read: fn(&LinkUse) -> f64| curve.mean(|step| find(step, at).map(read)).unwrap_or(0.0);
    let used = curve.mean(|step| Some(find(step, at)?.use_of_limit()?.0))?;
    let limit = curve.mean(|step| Some(find(step, at)?.use_of_limit()?.1))?;
    let (delayed, dropped, backlogged) =
        (mean(|link| link.overlimits_per_s), mean(|link| link.dropped_per_s), mean(|link| link.backlogged));
    let busy = used / limit;
    let shaping = busy >= SHAPED_FULL && delayed > 0.0 && backlogged >= BACKLOGGED;
    let follows = curve.follows_load(|step| Some(find(step, at)?.use_of_limit()?.0));
    if !follows || !(busy >= FULL || shaping) {
        return None;
    }
    let queued = delayed > 0.0 || dropped > 0.0 || backlogged > 0.0;
    let confidence = if queued { DIRECT } else { INDIRECT };
    let demand = curve.demand_us(|_| Some(busy));
    let link = Identity::Link { name: at.0.to_owned(), on: at.1.clone() };
    Some(
        Finding::new(ResourceKind::Network, confidence)
            .held_by(link.clone())
            .about([link])
            .busy(busy)
            .demanding(demand)
            .seeing(Seen::LinkBusy {
                link: at.0.to_owned(),
                used_bits_per_s: used,
                limit_bits_per_s: limit,
                busy: busy.min(1.0),
                users: curve.star_users(),
                demand_us: demand.unwrap_or(0.0),
            })
            .seeing(Seen::LinkQueue { delayed_per_s: delayed, dropped_per_s: dropped, backlogged }),
    )
}

fn find<'a>(step: &'a Step, (name, on): Named<'_>) -> Option<&'a LinkUse> {
    step.usage.links.iter().find(|link| link.name == name && link.on == *on)
}
