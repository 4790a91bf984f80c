//! A history: many runs of the same load in the order of time, and where their figures changed.

mod change;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use change::RUNS_MIN;

use crate::contrast::{Given, Point};
use crate::run::{LoopKind, Run};
use change::change_points;

/// The value of [`History::schema`].
pub const SCHEMA: &str = "nstar.history/1";

/// Runs in the order of time, by what they measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Version of nstar that wrote this.
    pub version: String,
    /// One for each target and load, that with the most runs first.
    pub courses: Vec<Course>,
}

/// The runs of one target and load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// What was driven.
    pub target: String,
    /// The load, where it was one and no sweep: its users, and its rate if it was an open loop.
    pub load: Option<OneLoad>,
    /// The runs by when they began.
    pub runs: Vec<Point>,
    /// Where figures changed, in the order of time; of all figures together, no change is found 95 times in 100 where there
    /// is none.
    pub changes: Vec<ChangePoint>,
}

/// A load that is no sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneLoad {
    /// Users.
    pub users: u32,
    /// Requests a second of an open loop.
    pub rate_per_s: Option<f64>,
}

/// A figure whose course is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Followed {
    /// Maximum throughput.
    Throughput,
    /// N*.
    Users,
    /// CPU time of all watched tiers per request.
    CpuPerRequest,
}

/// A change of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// The figure.
    pub figure: Followed,
    /// The first run after it, counted from 0.
    pub first_run: u32,
    /// The file of that run.
    pub file: String,
    /// The geometric mean from the change before, or from the start.
    pub before: f64,
    /// The geometric mean up to the next change, or to the end.
    pub after: f64,
    /// After over before.
    pub ratio: f64,
    /// How often so much would be seen without a change.
    pub chance: f64,
}

impl Followed {
    /// Every figure that is followed.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::Users, Self::CpuPerRequest];

    /// The figure of a run. `None` where it has none.
    pub fn of(self, point: &Point) -> Option<f64> {
        let figure = match self {
            Self::Throughput => Some(point.throughput_per_s),
            Self::Users => point.users.map(f64::from),
            Self::CpuPerRequest => point.cpu_us_per_request,
        };
        figure.filter(|figure| *figure > 0.0 && figure.is_finite())
    }
}

/// How often a change may be found where there is none, of all figures of a course together.
const CHANCE: f64 = 0.05;

/// Puts runs in the order of time, and finds where their figures changed. Runs that were given twice count once.
pub fn history(runs: &[Given], version: &str) -> History {
    let mut courses: Vec<(Course, Vec<&Given>)> = Vec::new();
    for given in runs {
        let (target, load) = (given.run.target.clone(), one_load(&given.run));
        let own = courses.iter_mut().find(|(course, _)| course.target == target && course.load == load);
        match own {
            Some((_, kept)) if kept.iter().any(|other| other.run == given.run) => {}
            Some((_, kept)) => kept.push(given),
            None => courses.push((Course { target, load, ..Course::default() }, vec![given])),
        }
    }
    let mut courses: Vec<Course> = courses.into_iter().map(|(course, runs)| followed(course, runs)).collect();
    courses.sort_by_key(|course| std::cmp::Reverse(course.runs.len()));
    History { schema: SCHEMA.into(), version: version.into(), courses }
}

fn one_load(run: &Run) -> Option<OneLoad> {
    let [step] = run.steps.as_slice() else { return None };
    let rate_per_s = run.load.rate_per_s.filter(|_| run.load.loop_kind == LoopKind::Open);
    Some(OneLoad { users: step.users, rate_per_s })
}

fn followed(course: Course, mut runs: Vec<&Given>) -> Course {
    runs.sort_by(|a, b| a.run.started.cmp(&b.run.started).then_with(|| a.file.cmp(&b.file)));
    let points: Vec<Point> = runs.into_iter().map(Point::of).collect();
    let known: Vec<Followed> = Followed::ALL
        .into_iter()
        .filter(|figure| points.iter().filter(|point| figure.of(point).is_some()).count() >= RUNS_MIN)
        .collect();
    let chance = CHANCE / known.len().max(1) as f64;
    let mut changes: Vec<ChangePoint> =
        known.into_iter().flat_map(|figure| changes(figure, &points, chance)).collect();
    changes.sort_by_key(|change| (change.first_run, change.figure));
    Course { runs: points, changes, ..course }
}

/// The changes of one figure, over the runs that have it.
fn changes(figure: Followed, points: &[Point], chance: f64) -> Vec<ChangePoint> {
    let known: Vec<(usize, f64)> = points
        .iter()
        .enumerate()
        .filter_map(|(index, point)| Some((index, figure.of(point)?.ln())))
        .collect();
    let logs: Vec<f64> = known.iter().map(|(_, log)| *log).collect();
    let found = change_points(&logs, chance);
    let starts = || std::iter::once(0).chain(found.iter().map(|change| change.at));
    let ends = found.iter().map(|change| change.at).chain([logs.len()]);
    let levels: Vec<f64> = starts().zip(ends).map(|(from, to)| level(&logs[from..to])).collect();
    let of = |(place, change): (usize, &change::Found)| {
        let first_run = known.get(change.at).map_or(0, |(index, _)| *index);
        let (before, after) = (levels[place], levels[place + 1]);
        ChangePoint {
            figure,
            first_run: first_run as u32,
            file: points.get(first_run).map(|point| point.file.clone()).unwrap_or_default(),
            before,
            after,
            ratio: after / before,
            chance: change.chance,
        }
    };
    found.iter().enumerate().map(of).collect()
}

/// The geometric mean of what these are the logarithms of.
fn level(logs: &[f64]) -> f64 {
    crate::statistics::mean::mean(logs).exp()
}

impl Course {
    /// The level of a figure over each stretch between changes: the first run, the last, and the geometric mean.
    pub fn levels(&self, figure: Followed) -> Vec<(u32, u32, f64)> {
        let changes: Vec<&ChangePoint> =
            self.changes.iter().filter(|change| change.figure == figure).collect();
        let last = (self.runs.len() as u32).saturating_sub(1);
        let Some(first) = changes.first() else {
            let logs: Vec<f64> = self.runs.iter().filter_map(|run| figure.of(run)).map(f64::ln).collect();
            return if logs.is_empty() { Vec::new() } else { vec![(0, last, level(&logs))] };
        };
        let starts = changes.iter().map(|change| change.first_run);
        let ends = starts.clone().skip(1).map(|next| next - 1).chain([last]);
        let after = starts.zip(ends).zip(&changes).map(|((from, to), change)| (from, to, change.after));
        std::iter::once((0, first.first_run - 1, first.before)).chain(after).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contrast::tests::sweep;

    fn given(number: usize, throughput_per_s: f64) -> Given {
        let started =
            ["2026-11-21T17:25:", if number < 10 { "0" } else { "" }, &number.to_string(), "Z"].concat();
        let mut given = sweep(&number.to_string(), throughput_per_s, 100.0);
        given.run.started = started;
        given
    }

    #[test]
    fn runs_are_sorted_by_time_and_a_drop_is_found() {
        let wave = |number: usize| 1_000.0 + (number * 7 % 10) as f64;
        let mut runs: Vec<Given> = (0..20)
            .map(|number| given(number, wave(number) * if number < 12 { 1.0 } else { 0.95 }))
            .collect();
        runs.reverse();
        runs.push(given(3, wave(3)));
        let found = history(&runs, "1");
        let [course] = found.courses.as_slice() else { panic!("{found:?}") };
        assert_eq!(course.runs.len(), 20, "the copy counts once");
        assert!(course.runs.is_sorted_by(|a, b| a.started < b.started));
        let [change] = course.changes.as_slice() else { panic!("{:?}", course.changes) };
        assert_eq!((change.figure, change.first_run, change.file.as_str()), (Followed::Throughput, 12, "12"));
        assert!((change.ratio - 0.95).abs() < 0.005 && change.chance < 0.025, "{change:?}");
        let levels = course.levels(Followed::Throughput);
        assert_eq!(levels.iter().map(|(from, to, _)| (*from, *to)).collect::<Vec<_>>(), [(0, 11), (12, 19)]);
        let [(0, 19, users)] = course.levels(Followed::Users)[..] else { panic!("one level") };
        assert!((users - 4.0).abs() < 1e-9);
    }

    #[test]
    fn other_loads_have_courses_of_their_own() {
        let mut one_load = given(1, 5.0);
        one_load.run.steps.truncate(1);
        let found = history(&[given(0, 5.0), one_load, given(2, 5.0)], "1");
        let shapes: Vec<_> = found.courses.iter().map(|course| (course.runs.len(), course.load)).collect();
        assert_eq!(shapes, [(2, None), (1, Some(OneLoad { users: 1, rate_per_s: None }))]);
        assert!(history(&[], "1").courses.is_empty());
    }
}
