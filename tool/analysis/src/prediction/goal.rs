//! What would reach a goal: one change more, the cheapest first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, demands, device_name, places_name};
use super::model::Model;
use super::outlook::{Drawn, Side, changed, whole};
use super::parts::Parts;
use super::quantile::Ratios;
use super::solved::Solved;
use super::{Estimate, Refusal};
use crate::run::ResourceKind;

/// Something to reach.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// As it was written, such as `mean<=50ms at 500 users`.
    pub text: String,
    /// The figure.
    pub figure: GoalFigure,
    /// Whether it is to be at least or at most the value.
    pub bound: Bound,
    /// The value: requests per second, users, or microseconds.
    pub value: f64,
    /// With so many users; absent for figures of the whole curve.
    pub users: Option<u32>,
}

/// A figure that a goal can be about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum GoalFigure {
    /// Throughput with these users, or the most there is.
    #[default]
    Throughput,
    /// N*.
    Users,
    /// Mean response time with these users.
    Mean,
    /// A percentile of response times with these users.
    Quantile {
        /// Its field in the run file, such as `p99`.
        percentile: String,
    },
}

/// Where a figure has to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// At least the value.
    #[default]
    AtLeast,
    /// At most the value.
    AtMost,
}

/// What would reach a goal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalAnswer {
    /// The goal.
    pub goal: Goal,
    /// The figure without another change.
    pub now: Estimate,
    /// Whether that reaches it.
    pub reached: bool,
    /// Changes that reach it, each as small as it can be, the cheapest first.
    pub options: Vec<GoalOption>,
}

/// A change that reaches a goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalOption {
    /// The change.
    pub change: Change,
    /// The figure then.
    pub figure: Estimate,
    /// Whether the whole interval reaches it.
    pub sure: bool,
}

impl Goal {
    fn is_met(&self, value: f64) -> bool {
        match self.bound {
            Bound::AtLeast => value >= self.value,
            Bound::AtMost => value <= self.value,
        }
    }

    fn is_met_by_all(&self, of: Estimate) -> bool {
        of.ci.into_iter().all(|end| self.is_met(end))
    }

    /// Whether more of a change is never worse for the figure, as for the maximum throughput, and with so many users. N*, and what
    /// is read there, may rise and then fall: once the bottleneck is elsewhere, less work lowers N*.
    fn is_monotone(&self) -> bool {
        self.figure == GoalFigure::Throughput || (self.users.is_some() && self.figure != GoalFigure::Users)
    }

    /// The figure of a solved model; `None` where it is not known.
    fn read(&self, of: &Solved, ratios: &Ratios) -> Option<f64> {
        let at = self.users.or(of.users_at_saturation());
        match &self.figure {
            GoalFigure::Throughput => {
                Some(self.users.map_or_else(|| of.throughput_max_per_s(), |users| of.throughput_per_s(users)))
            }
            GoalFigure::Users => of.users_at_saturation().map(f64::from),
            GoalFigure::Mean => Some(of.response_us(at?)),
            GoalFigure::Quantile { percentile } => {
                let users = at?;
                ratios.at(percentile, users, of).map(|(_, ratio, _)| ratio * of.response_us(users))
            }
        }
    }
}

/// The most that a change multiplies what there is with.
const TIMES_MAX: u32 = 16;

/// The most that a demand can be made smaller, per cent.
const LESS_MAX: u32 = 90;

/// The most sizes of a change that are tried in turn, where a larger one may be worse.
const TRIED_MAX: u32 = 40;

/// A kind of change by its size: 1, 2, .. up to the largest.
struct Way {
    sizes: u32,
    change: Box<dyn Fn(u32) -> Change>,
}

/// Finds what reaches a goal.
pub(super) fn answer(
    goal: &Goal,
    drawn: &Drawn,
    parts: &Parts,
    ratios: &Ratios,
) -> Result<GoalAnswer, Refusal> {
    let rounded = |of| if goal.figure == GoalFigure::Users { whole(of) } else { of };
    let now = drawn.estimate(Side::After, |solved| goal.read(solved, ratios)).map(rounded);
    let now = now.ok_or_else(|| ratios.refusal(&goal.figure))?;
    let reached = goal.is_met(now.value);
    let with = |model: &Model, change: &Change| changed(model, parts, std::slice::from_ref(change)).ok();
    let value = |model: &Model, change: &Change| goal.read(&with(model, change)?.solved(), ratios);
    let is_percentile = matches!(goal.figure, GoalFigure::Quantile { .. });
    let is_borne = |change: &Change| {
        !is_percentile || with(&drawn.after, change).is_some_and(|model| ratios.bear(&model))
    };
    let meets = |change: &Change| value(&drawn.after, change).is_some_and(|value| goal.is_met(value));
    let ways = if reached { Vec::new() } else { ways(&drawn.after) };
    let is_monotone = goal.is_monotone();
    let smallest = ways.into_iter().filter_map(|way| smallest(&way, is_monotone, is_borne, meets));
    let options = smallest.filter_map(|change| {
        let values = drawn.models.iter().filter_map(|model| value(model, &change)).collect();
        let figure = rounded(drawn.within(value(&drawn.after, &change)?, values));
        Some(GoalOption { sure: goal.is_met_by_all(figure), change, figure })
    });
    Ok(GoalAnswer { goal: goal.clone(), now, reached, options: options.collect() })
}

/// The smallest change of a kind that reaches the goal, of those with which the figure is known.
fn smallest(
    way: &Way,
    is_monotone: bool,
    is_borne: impl Fn(&Change) -> bool,
    meets: impl Fn(&Change) -> bool,
) -> Option<Change> {
    // From some size on something else stops the system.
    let unknown = first(way.sizes, |size| !is_borne(&(way.change)(size)));
    let sizes = unknown.map_or(way.sizes, |size| size - 1);
    let meets = |size: u32| meets(&(way.change)(size));
    let size = if is_monotone { first(sizes, meets) } else { first_of_some(sizes, meets) };
    size.map(&way.change)
}

/// The first of the sizes 1, 2, .. up to the largest from which on something holds; `None` where it does not hold of the largest.
fn first(largest: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    (largest > 0 && holds(largest)).then(|| between(0, largest, holds))
}

/// The first of the sizes 1, 2, .. up to the largest with which something holds that need not hold with larger ones. Of many
/// sizes some are tried: with those between two of them it is taken to hold from one on.
fn first_of_some(largest: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    let step = largest.div_ceil(TRIED_MAX).max(1);
    let mut tried = (1..=largest.div_ceil(step)).map(|number| number.saturating_mul(step).min(largest));
    let found = tried.find(|size| holds(*size))?;
    Some(between((found - 1) / step * step, found, holds))
}

/// The first size above `low`, with which something does not hold, from which on it holds; with `high` it does.
fn between(mut low: u32, mut high: u32, holds: impl Fn(u32) -> bool) -> u32 {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

/// Kinds of changes, the cheapest first: a setting, more of what there is, less work, more servers.
fn ways(model: &Model) -> Vec<Way> {
    let mut all: Vec<Way> = workers(model).into_iter().chain(cpus(model)).chain(links(model)).collect();
    all.extend(demands(model).into_iter().map(|of| Way {
        sizes: LESS_MAX,
        change: Box::new(move |size| Change::Demand {
            of: of.clone(),
            factor: 1.0 - f64::from(size) / 100.0,
        }),
    }));
    all.push(Way {
        sizes: TIMES_MAX - 1,
        change: Box::new(|servers| Change::AddServer { name: None, servers }),
    });
    all
}

fn workers(model: &Model) -> Vec<Way> {
    let places = model.places.iter().filter(|places| places.kind != ResourceKind::Lock);
    let places = places.map(|places| (places_name(places), places.count));
    let threads = model.tiers.iter().filter_map(|tier| Some((tier.of.name.clone(), tier.threads? as u32)));
    let more = |(name, now): (String, u32)| Way {
        sizes: now.saturating_mul(TIMES_MAX - 1),
        change: Box::new(move |more| Change::Workers {
            name: name.clone(),
            workers: now.saturating_add(more),
        }),
    };
    places.chain(threads).map(more).collect()
}

fn cpus(model: &Model) -> Vec<Way> {
    let tiers = model.tiers.iter().filter(|tier| tier.threads.is_none());
    let more = tiers.map(|tier| {
        let (name, now) = (tier.of.name.clone(), tier.quota.unwrap_or(tier.cpus));
        Way {
            sizes: (now * f64::from(TIMES_MAX - 1)).ceil() as u32,
            change: Box::new(move |more| Change::Cpus {
                name: name.clone(),
                cpus: now.floor() + f64::from(more),
            }),
        }
    });
    more.collect()
}

/// Links in tenths of what they carry.
fn links(model: &Model) -> Vec<Way> {
    let known =
        model.devices.iter().filter_map(|device| Some((device_name(&device.identity), device.bits_per_s?)));
    let more = known.map(|(name, now)| Way {
        sizes: 10 * (TIMES_MAX - 1),
        change: Box::new(move |more| Change::Link {
            name: Some(name.clone()),
            bits_per_s: now * (1.0 + f64::from(more) / 10.0),
        }),
    });
    more.collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::model::Places;
    use super::super::tests::parts;
    use super::*;

    #[test]
    fn the_smallest_size_is_found_where_larger_ones_are_worse() {
        for (largest, from, to) in [(90, 58, 67), (90, 88, 90), (60, 5, 8), (7, 3, 3), (6_000, 400, 3_000)] {
            let tries = Cell::new(0);
            let holds = |size: u32| {
                tries.set(tries.get() + 1);
                (from..=to).contains(&size)
            };
            assert_eq!(first_of_some(largest, holds), Some(from), "{from} to {to} of {largest}");
            assert!(tries.get() <= 50, "{} tries for {from} to {to} of {largest}", tries.get());
        }
        for largest in [0, 1, 90, u32::MAX] {
            assert_eq!(first_of_some(largest, |_| false), None, "{largest}");
            assert_eq!(first(largest, |_| true), first_of_some(largest, |_| true), "{largest}");
        }
    }

    #[test]
    fn more_of_a_change_may_be_worse_only_for_what_is_read_at_n() {
        let is_monotone = |figure, users| Goal { figure, users, ..Goal::default() }.is_monotone();
        let quantile = || GoalFigure::Quantile { percentile: "p99".into() };
        let read_there = [GoalFigure::Users, GoalFigure::Mean, quantile()];
        assert!(read_there.into_iter().all(|figure| !is_monotone(figure, None)));
        let with_users = [GoalFigure::Throughput, GoalFigure::Mean, quantile()];
        assert!(with_users.into_iter().all(|figure| is_monotone(figure, Some(8))));
        assert!(is_monotone(GoalFigure::Throughput, None), "the maximum");
    }

    /// No sum of them wraps around.
    #[test]
    fn as_many_workers_as_can_be_written_are_no_reason_to_stop() {
        let parts = parts(ResourceKind::WorkerPool, 500.0, 2, 200.0, 20_000.0, 4);
        let mut model = Model::of(&parts);
        let places = model.places.take();
        model.places = places.map(|places| Places { count: u32::MAX - 1, ..places });
        let way = workers(&model).into_iter().next().expect("the pool");
        let most = Change::Workers { name: "app".into(), workers: u32::MAX };
        assert_eq!((way.change)(way.sizes), most);
    }
}
