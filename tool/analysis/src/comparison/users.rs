//! Throughput and response time by number of users: ours beside those that others published, under Little's law.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Published, Workload};
use crate::laws::is_tested;
use crate::run::{Run, Step};
use crate::words::{count, percent};

/// A published point further than this share from N = X R breaks the law, whatever was rounded.
const BREAKS: f64 = 0.1;

/// One number of users of one variant.
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
pub struct Point {
    /// Users.
    pub users: u32,
    /// Completed requests per second.
    pub per_s: f64,
    /// Mean response time, milliseconds.
    pub ms: f64,
}

impl Point {
    /// Mean response time, microseconds.
    pub fn us(&self) -> f64 {
        self.ms * 1e3
    }
}

/// The steps of a run by users.
pub(super) fn by_users(run: &Run) -> Vec<AtUsers> {
    let at = |step: &Step| AtUsers {
        users: step.users,
        throughput_per_s: step.throughput_per_s,
        response_time_us: step.response_time_us.mean,
        little_gap: step.little_gap,
    };
    run.steps.iter().map(at).collect()
}

/// Whether Little's law holds in all that was measured of a work, in a sentence; nothing where nothing was.
pub fn little(runs: &[&Run]) -> Option<String> {
    let all: Vec<(&Run, &Step)> =
        runs.iter().flat_map(|run| run.steps.iter().map(move |step| (*run, step))).collect();
    if all.iter().all(|(_, step)| step.completed == 0) {
        return None;
    }
    let tested: Vec<_> = all.iter().filter(|(run, step)| is_tested(run, step)).collect();
    if tested.is_empty() {
        return Some(
            "Little's law is not tested: no load was both steady and without many failures.".to_owned(),
        );
    }
    let swept = runs.iter().any(|run| run.steps.len() > 1);
    let gap = tested.iter().map(|(_, step)| step.little_gap.abs()).fold(0.0, f64::max);
    let holds = runs.iter().all(|run| run.laws.little_holds) && (swept || gap <= BREAKS);
    let at = match tested.len() == all.len() {
        true if swept => "at every step",
        true => "in every load",
        false => "wherever it can be tested",
    };
    Some(match holds {
        true => format!("Little's law, N = X R, holds {at} (largest gap {}).", percent(gap)),
        false => format!("Little's law, N = X R, is off by up to {}.", percent(gap)),
    })
}

/// Whether published points obey Little's law, in a sentence; nothing where there are none.
pub fn published_little(published: &Published) -> Option<String> {
    let gap = |point: &Point| 1.0 - point.per_s * point.ms / 1e3 / f64::from(point.users.max(1));
    let broken = published.points.iter().filter(|point| gap(point).abs() > BREAKS).count();
    let peak = published.points.iter().max_by(|a, b| a.per_s.total_cmp(&b.per_s))?;
    if broken == 0 {
        return Some("The published points obey Little's law, N = X R.".to_owned());
    }
    Some(format!(
        "Little's law, N = X R, breaks at {broken} of the {} published points: at {} users X R is {}.",
        published.points.len(),
        count(f64::from(peak.users)),
        count((peak.per_s * peak.ms / 1e3).round()),
    ))
}

/// Every number of users of a work, measured or published, ascending.
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
        let point = |(users, per_s, ms): &(u32, f64, f64)| Point { users: *users, per_s: *per_s, ms: *ms };
        Published { points: points.iter().map(point).collect(), ..Published::default() }
    }

    #[test]
    fn the_published_points_of_s3_break_the_law() {
        let points = published(&[(1, 15.079, 63.022), (10, 24.2, 66.24), (300, 425.412, 166.254)]);
        let said = published_little(&points).expect("a sentence");
        assert!(said.contains("at 2 of the 3") && said.contains("at 300 users X R is 71."), "{said}");
    }

    #[test]
    fn points_that_obey_are_told_so() {
        let said = published_little(&published(&[(4, 400.0, 10.0), (8, 400.0, 20.5)])).expect("a sentence");
        assert!(said.contains("obey"), "{said}");
        assert_eq!(published_little(&published(&[])), None);
    }
}
