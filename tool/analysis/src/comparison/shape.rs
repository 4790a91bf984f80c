//! The course of a curve, and two curves each scaled to its own maximum.
//!
//! Figures of different machines cannot be compared; how each curve goes between its ends can.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AtUsers, Entry, Published, Workload};
use crate::thresholds::{PLATEAU, SATURATED};

/// With fewer points a curve has no course.
const POINTS_MIN: usize = 3;

/// How throughput goes as something is raised: users, or workers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Course {
    /// No point is below 90 % of the maximum.
    Flat,
    /// 95 % of the maximum is first reached at the end.
    Grows,
    /// It reaches 95 % of its maximum, and still has 90 % at the end.
    Levels {
        /// Where it does.
        at: f64,
    },
    /// It reaches 95 % of its maximum, and has less than 90 % at the end.
    Falls {
        /// Where it is at 95 % first.
        at: f64,
        /// What is left of the maximum at the end, 0 to 1.
        left: f64,
    },
}

impl Course {
    /// Whether both go the same way, wherever they turn.
    pub(super) fn is_like(&self, other: &Course) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The course of a curve, whose points ascend; `None` with too few points.
pub(super) fn course(points: &[(f64, f64)]) -> Option<Course> {
    let shares = to_own_maximum(points);
    let (last, least) = (shares.last()?.1, shares.iter().map(|point| point.1).fold(f64::INFINITY, f64::min));
    let at = shares.iter().find(|point| point.1 >= SATURATED)?.0;
    if points.len() < POINTS_MIN {
        return None;
    }
    Some(match last {
        _ if least >= PLATEAU => Course::Flat,
        _ if shares.last().is_some_and(|point| point.0 <= at) => Course::Grows,
        left if left < PLATEAU => Course::Falls { at, left },
        _ => Course::Levels { at },
    })
}

/// The points of two curves, which ascend, within the range that both cover; `None` where they have none in common.
pub(super) fn common<'a>(one: &'a [(f64, f64)], other: &'a [(f64, f64)]) -> Option<[&'a [(f64, f64)]; 2]> {
    let from = one.first()?.0.max(other.first()?.0);
    let to = one.last()?.0.min(other.last()?.0);
    let within = |points: &'a [(f64, f64)]| {
        let begin = points.partition_point(|point| point.0 < from);
        points.get(begin..points.partition_point(|point| point.0 <= to))
    };
    Some([within(one)?, within(other)?])
}

/// Points with each value as a share of the largest.
pub(super) fn to_own_maximum(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    if most <= 0.0 {
        return Vec::new();
    }
    points.iter().map(|(x, y)| (*x, y / most)).collect()
}

/// Where two curves, each scaled to its own maximum, are furthest apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Users, or the number of something.
    pub at: f64,
    /// The published share of the published maximum there, 0 to 1.
    pub published: f64,
    /// Our share of our maximum there, between the points measured where none is there.
    pub measured: f64,
}

/// The largest gap between two curves, at the published points that ours has room for.
pub(super) fn widest_gap(published: &[(f64, f64)], measured: &[(f64, f64)]) -> Option<Gap> {
    let measured = to_own_maximum(measured);
    let gaps = to_own_maximum(published)
        .into_iter()
        .filter_map(|(at, published)| Some(Gap { at, published, measured: interpolated(&measured, at)? }));
    let width = |gap: &Gap| (gap.published - gap.measured).abs();
    gaps.max_by(|a, b| width(a).total_cmp(&width(b)))
}

/// The value at a place within the points, by a straight line between its neighbours.
fn interpolated(points: &[(f64, f64)], at: f64) -> Option<f64> {
    let after = points.iter().position(|(x, _)| *x >= at)?;
    let (x1, y1) = points[after];
    if x1 == at {
        return Some(y1);
    }
    let (x0, y0) = points[after.checked_sub(1)?];
    Some(y0 + (y1 - y0) * (at - x0) / (x1 - x0))
}

/// Throughput by users.
pub(super) fn by_users(steps: &[AtUsers]) -> Vec<(f64, f64)> {
    steps.iter().map(|step| (f64::from(step.users), step.throughput_per_s)).collect()
}

/// Published throughput by users.
pub(super) fn published_by_users(published: &Published) -> Vec<(f64, f64)> {
    published.points.iter().map(|point| (f64::from(point.users), point.per_s)).collect()
}

/// A workload beside what was published of it, each scaled to its own maximum, for one small chart.
#[derive(Debug, Clone, PartialEq)]
pub enum Beside {
    /// Throughput by users: name, and points as shares of the curve's maximum.
    Curves {
        /// Ours, by variant.
        measured: Vec<(String, Vec<(f64, f64)>)>,
        /// Theirs.
        published: Vec<(f64, f64)>,
    },
    /// A figure for each variant: name, our share of our best, and the published share of the published best.
    Bars(Vec<(String, f64, Option<f64>)>),
}

/// A workload and what a publication says of it, each scaled to its own maximum. Of figures where less is better, the share
/// is the best over the figure.
pub fn beside(work: &Workload, published: Option<&Published>) -> Option<Beside> {
    if work.entries.iter().any(|entry| !entry.steps.is_empty())
        && published.is_none_or(|published| published.figures.is_empty())
    {
        let curve = |entry: &Entry| (entry.variant.clone(), to_own_maximum(&by_users(&entry.steps)));
        let measured = work.entries.iter().filter(|entry| !entry.steps.is_empty()).map(curve).collect();
        let published = published.map(published_by_users).unwrap_or_default();
        return Some(Beside::Curves { measured, published: to_own_maximum(&published) });
    }
    let most = work.entries.iter().map(|entry| entry.throughput_per_s).fold(0.0, f64::max);
    let bar = |entry: &Entry| {
        let theirs = published.and_then(|published| share_of_best(published, &entry.variant));
        (entry.variant.clone(), entry.throughput_per_s / most, theirs)
    };
    (most > 0.0).then(|| Beside::Bars(work.entries.iter().map(bar).collect()))
}

fn share_of_best(published: &Published, variant: &str) -> Option<f64> {
    let figures = || published.figures.iter().map(|figure| figure.value).filter(|value| *value > 0.0);
    let value = published.figures.iter().find(|figure| figure.variant == variant)?.value;
    let share = match published.smaller_is_better {
        true => figures().fold(f64::INFINITY, f64::min) / value,
        false => value / figures().fold(0.0, f64::max),
    };
    share.is_finite().then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u32, f64)]) -> Vec<(f64, f64)> {
        points.iter().map(|(x, y)| (f64::from(*x), *y)).collect()
    }

    #[test]
    fn a_course_is_told_by_its_ends_and_its_plateau() {
        assert_eq!(course(&curve(&[(1, 10.0), (2, 19.0), (4, 40.0)])), Some(Course::Grows));
        assert_eq!(course(&curve(&[(1, 5.88), (5, 5.8), (10, 5.88)])), Some(Course::Flat));
        let levels = curve(&[(1, 10.0), (2, 20.0), (4, 39.0), (8, 40.0), (16, 38.0)]);
        assert_eq!(course(&levels), Some(Course::Levels { at: 4.0 }));
        let falls = curve(&[(1, 2.8), (4, 4.3), (6, 4.5), (10, 3.6)]);
        assert_eq!(course(&falls), Some(Course::Falls { at: 4.0, left: 0.8 }));
        assert_eq!(course(&curve(&[(1, 1.0), (2, 2.0)])), None);
        assert_eq!(course(&curve(&[(1, 0.0), (2, 0.0), (3, 0.0)])), None);
    }

    #[test]
    fn curves_are_compared_where_both_are_known() {
        let published = curve(&[(1, 10.0), (10, 50.0), (100, 100.0), (1_000, 90.0)]);
        let measured = curve(&[(1, 3_000.0), (19, 5_000.0), (100, 10_000.0)]);
        let gap = widest_gap(&published, &measured).expect("a gap");
        // At 1 000 users we know nothing; at 1 we have 30 % and they have 10 %.
        assert_eq!((gap.at, gap.published), (1.0, 0.1));
        assert!((gap.measured - 0.3).abs() < 1e-12);
        assert_eq!(interpolated(&measured, 10.0), Some(4_000.0));
        assert_eq!(interpolated(&measured, 0.5), None);
    }
}
