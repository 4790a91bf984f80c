//! Throughput and response time by users, ours and those that others published, and Little's law on both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LittleFinding, Published, PublishedLittle, Tested, Workload};
use crate::laws::{is_broken, is_tested};
use crate::run::{Run, Step};

/// One number of users of one variant. It is not a step: the comparison file keeps only what it shows of one, and points
/// to the run files for the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtUsers {
    /// Users.
    pub users: u32,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// Mean response time, microseconds.
    pub response_time_us: f64,
    /// Little's law: (N - X (R + Z)) / N.
    pub little_gap: f64,
}

/// One number of users, as somebody else published it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedPoint {
    /// Users.
    pub users: u32,
    /// Completed requests per second.
    pub per_s: f64,
    /// Mean response time, milliseconds.
    pub ms: f64,
}

impl PublishedPoint {
    /// Mean response time, microseconds.
    pub fn us(&self) -> f64 {
        self.ms * 1e3
    }

    /// Users who are present on average by Little's law: throughput times response time.
    pub fn present(&self) -> f64 {
        self.per_s * self.ms / 1e3
    }
}

/// The steps of a run by users.
pub(crate) fn by_users(run: &Run) -> Vec<AtUsers> {
    let at = |step: &Step| AtUsers {
        users: step.users,
        throughput_per_s: step.throughput_per_s,
        response_time_us: step.response_time_us.mean,
        little_gap: step.little_gap,
    };
    run.steps.iter().map(at).collect()
}

/// Tests Little's law on everything that was measured on a workload. `None` if nothing completed.
pub fn little(runs: &[&Run]) -> Option<LittleFinding> {
    let all: Vec<(&Run, &Step)> =
        runs.iter().flat_map(|run| run.steps.iter().map(move |step| (*run, step))).collect();
    if all.iter().all(|(_, step)| step.completed == 0) {
        return None;
    }
    let tested: Vec<_> = all.iter().filter(|(run, step)| is_tested(&run.load, step)).collect();
    if tested.is_empty() {
        return Some(LittleFinding::Untested);
    }
    let swept = runs.iter().any(|run| run.steps.len() > 1);
    let gap_max = tested.iter().map(|(_, step)| step.little_gap.abs()).fold(0.0, f64::max);
    let holds = runs.iter().all(|run| run.laws.little_holds) && (swept || !is_broken(gap_max));
    let tested = match tested.len() == all.len() {
        true if swept => Tested::EveryStep,
        true => Tested::EveryLoad,
        false => Tested::WherePossible,
    };
    Some(if holds { LittleFinding::Holds { tested, gap_max } } else { LittleFinding::Off { gap_max } })
}

/// Tests Little's law on published points. `None` if there are none.
pub fn published_little(published: &Published) -> Option<PublishedLittle> {
    let gap = |point: &PublishedPoint| 1.0 - point.present() / f64::from(point.users.max(1));
    let broken = published.points.iter().filter(|point| is_broken(gap(point))).count();
    let peak = published.points.iter().max_by(|a, b| a.per_s.total_cmp(&b.per_s))?;
    Some(match broken {
        0 => PublishedLittle::Holds,
        broken => PublishedLittle::Broken {
            broken: broken as u32,
            points: published.points.len() as u32,
            users: peak.users,
            present: peak.present(),
        },
    })
}

/// Every number of users of a workload, measured or published, ascending.
pub fn all_users(work: &Workload, published: &[&Published]) -> Vec<u32> {
    let measured = work.entries.iter().flat_map(|entry| &entry.steps).map(|step| step.users);
    let others = published.iter().flat_map(|published| &published.points).map(|point| point.users);
    let mut all: Vec<u32> = measured.chain(others).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(points: &[(u32, f64, f64)]) -> Published {
        let point =
            |(users, per_s, ms): &(u32, f64, f64)| PublishedPoint { users: *users, per_s: *per_s, ms: *ms };
        Published { points: points.iter().map(point).collect(), ..Published::default() }
    }

    #[test]
    fn the_published_points_of_s3_break_the_law() {
        let points = published(&[(1, 15.079, 63.022), (10, 24.2, 66.24), (300, 425.412, 166.254)]);
        let Some(PublishedLittle::Broken { broken: 2, points: 3, users: 300, present }) =
            published_little(&points)
        else {
            panic!("{:?}", published_little(&points))
        };
        assert_eq!(present.round(), 71.0);
    }

    #[test]
    fn points_that_obey_the_law_are_found_to() {
        let points = published(&[(4, 400.0, 10.0), (8, 400.0, 20.5)]);
        assert_eq!(published_little(&points), Some(PublishedLittle::Holds));
        assert_eq!(published_little(&published(&[])), None);
    }
}
