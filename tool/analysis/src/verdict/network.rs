//! Links and shapers. Loopback has neither.

use super::FULL;
use super::finding::Finding;
use super::sweep::{Point, Sweep};
use super::utilisation::Id;
use crate::resources::LinkUse;
use crate::run::{Confidence, ResourceKind};
use crate::words::{bits, count, percent, time};

/// A shaper that delays packets and holds a queue is full at a lower share: its rate may count
/// headers that the interface's counter does not.
const SHAPED_FULL: f64 = 0.80;

/// Share of the looks at which bytes waited in the shaper.
const BACKLOGGED: f64 = 0.3;

/// Interfaces that carry the load and were full.
pub(super) fn full(sweep: &Sweep) -> Vec<Finding> {
    let Some(star) = sweep.star() else { return Vec::new() };
    let carrying = star.resources.links.iter().filter(|link| link.carries_load && sweep.limit_is_real(link));
    carrying.filter_map(|link| of_link(sweep, &link.name)).collect()
}

fn of_link(sweep: &Sweep, name: &str) -> Option<Finding> {
    let mean = |read: fn(&LinkUse) -> f64| sweep.mean(|point| find(point, name).map(read)).unwrap_or(0.0);
    let used = sweep.mean(|point| Some(find(point, name)?.use_of_limit()?.0))?;
    let limit = sweep.mean(|point| Some(find(point, name)?.use_of_limit()?.1))?;
    let (delayed, dropped, waiting) =
        (mean(|link| link.overlimits_per_s), mean(|link| link.dropped_per_s), mean(|link| link.backlogged));
    let busy = used / limit;
    let shaping = busy >= SHAPED_FULL && delayed > 0.0 && waiting >= BACKLOGGED;
    let follows = sweep.follows_load(|point| Some(find(point, name)?.use_of_limit()?.0));
    if !follows || !(busy >= FULL || shaping) {
        return None;
    }
    let queued = delayed > 0.0 || dropped > 0.0 || waiting > 0.0;
    let confidence = if queued { Confidence::High } else { Confidence::Medium };
    let demand = sweep.demand_us(|_| Some(busy));
    Some(
        Finding::new(ResourceKind::Network, confidence)
            .held_by(name)
            .about([Id::Link(name.to_owned())])
            .busy(busy)
            .demanding(demand)
            .saying(format!(
                "The link {name} carries {} of at most {} ({}), at N* = {} and beyond; each request costs it {}.",
                bits(used),
                bits(limit),
                percent(busy.min(1.0)),
                sweep.star_users(),
                time(demand.unwrap_or(0.0))
            ))
            .saying(format!(
                "Its queue delayed {} packets and dropped {} per second, and held bytes at {} of the looks.",
                count(delayed),
                count(dropped),
                percent(waiting)
            )),
    )
}

fn find<'a>(point: &'a Point, name: &str) -> Option<&'a LinkUse> {
    point.resources.links.iter().find(|link| link.name == name)
}
