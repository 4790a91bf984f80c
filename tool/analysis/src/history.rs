//! A history: many runs of the same load in the order of time, and where their figures changed.

mod change;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use change::RUNS_MIN;

use crate::contrast::{Aspect, Difference, Given, Point, Setting, Settings};
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
    /// One for each target and load, that with the most runs first. Loads of other settings are others, and so is what is sent.
    pub courses: Vec<Course>,
}

/// The runs of one target and load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// What was driven.
    pub target: String,
    /// The load, where it was one and no sweep: its users, and its rate if it was an open loop.
    pub load: Option<OneLoad>,
    /// What tells it from other courses of the same target and load, such as think time; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told_apart_by: Vec<LoadSetting>,
    /// The runs by when they began.
    pub runs: Vec<Point>,
    /// Where figures changed, in the order of time; of all figures together, no change is found 95 times in 100 where there
    /// is none.
    pub changes: Vec<ChangePoint>,
    /// The runs whose surroundings are not those of the run before: the machine, limits, nstar; in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<RunDifferences>,
}

/// A setting of the load of a course.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSetting {
    /// What is set.
    #[serde(flatten)]
    pub aspect: Aspect,
    /// How.
    pub setting: Setting,
}

/// A run on another machine, under other limits or by another nstar than the run before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDifferences {
    /// The run, counted from 0.
    pub run: u32,
    /// Its file.
    pub file: String,
    /// What differs from the run before.
    pub differences: Vec<Difference>,
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

    /// The figure of a run. `None` where it has none, or only a lower bound of it.
    pub fn of(self, point: &Point) -> Option<f64> {
        let figure = match self {
            Self::Throughput | Self::Users if point.lower_bound => None,
            Self::Throughput => Some(point.throughput_per_s),
            Self::Users => point.users.map(f64::from),
            Self::CpuPerRequest => point.cpu_us_per_request,
        };
        figure.filter(|figure| *figure > 0.0 && figure.is_finite())
    }

    /// How many of these runs have the figure. A change of it is looked for in [`RUNS_MIN`] or more.
    pub fn known_in(self, points: &[Point]) -> usize {
        points.iter().filter(|point| self.of(point).is_some()).count()
    }
}

/// How often a change may be found where there is none, of all figures of a course together.
const CHANCE: f64 = 0.05;

/// What a history keeps of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Brief {
    point: Point,
    target: String,
    load: Option<OneLoad>,
    settings: Settings,
}

impl Brief {
    /// What is kept of a run.
    pub fn of(given: &Given) -> Self {
        Self {
            point: Point::of(given),
            target: given.run.target.clone(),
            load: one_load(&given.run),
            settings: Settings::of(&given.run),
        }
    }

    /// Whether it is the same run in another file: no two that began in one second measure the same to the last digit.
    fn is_copy_of(&self, other: &Self) -> bool {
        let unnamed = |of: &Self| {
            let point = Point { file: String::new(), ..of.point.clone() };
            Self { point, ..of.clone() }
        };
        unnamed(self) == unnamed(other)
    }

    /// Whether it is of the same target, and of the same load but for what is sent.
    fn is_like(&self, other: &Self) -> bool {
        self.has_title_of(other) && self.settings.is_same_load(&other.settings)
    }

    fn has_title_of(&self, other: &Self) -> bool {
        self.target == other.target && self.load == other.load
    }
}

fn one_load(run: &Run) -> Option<OneLoad> {
    let [step] = run.steps.as_slice() else { return None };
    let rate_per_s = run.load.rate_per_s.filter(|_| run.load.loop_kind == LoopKind::Open);
    Some(OneLoad { users: step.users, rate_per_s })
}

/// Puts runs in the order of time, and finds where their figures changed. Runs that were given twice count once.
pub fn history(mut runs: Vec<Brief>, version: &str) -> History {
    let time = |run: &Brief| (run.point.started.clone(), run.point.file.clone());
    runs.sort_by_cached_key(time);
    let mut alike: Vec<Vec<Brief>> = Vec::new();
    for run in without_copies(runs) {
        let own = alike.iter_mut().find(|others| others.first().is_some_and(|other| run.is_like(other)));
        match own {
            Some(others) => others.push(run),
            None => alike.push(vec![run]),
        }
    }
    let groups: Vec<Vec<Brief>> = alike.into_iter().flat_map(by_sent).collect();
    let mut courses: Vec<Course> = groups.iter().filter_map(|own| course(own, &groups)).collect();
    courses.sort_by_key(|course| std::cmp::Reverse(course.runs.len()));
    History { schema: SCHEMA.into(), version: version.into(), courses }
}

/// The runs, each once; they are in the order of time.
fn without_copies(runs: Vec<Brief>) -> Vec<Brief> {
    let mut kept: Vec<Brief> = Vec::with_capacity(runs.len());
    for run in runs {
        let mut same_time = kept.iter().rev().take_while(|other| other.point.started == run.point.started);
        if !same_time.any(|other| run.is_copy_of(other)) {
            kept.push(run);
        }
    }
    kept
}

/// Divides runs by what they sent. One from before that was kept belongs with the run before it that tells it, or else with
/// the first that does.
fn by_sent(runs: Vec<Brief>) -> Vec<Vec<Brief>> {
    let mut sent = runs.iter().find_map(|run| run.settings.sent().cloned());
    let mut groups: Vec<(Option<Setting>, Vec<Brief>)> = Vec::new();
    for run in runs {
        sent = run.settings.sent().cloned().or(sent);
        let own = groups.iter_mut().find(|(other, _)| *other == sent);
        match own {
            Some((_, others)) => others.push(run),
            None => groups.push((sent.clone(), vec![run])),
        }
    }
    groups.into_iter().map(|(_, runs)| runs).collect()
}

/// The course of runs of one load, beside those of all loads. `None` without runs.
fn course(runs: &[Brief], all: &[Vec<Brief>]) -> Option<Course> {
    let first = runs.first()?;
    let points: Vec<Point> = runs.iter().map(|run| run.point.clone()).collect();
    let known: Vec<Followed> =
        Followed::ALL.into_iter().filter(|figure| figure.known_in(&points) >= RUNS_MIN).collect();
    let chance = CHANCE / known.len().max(1) as f64;
    let mut changes: Vec<ChangePoint> =
        known.into_iter().flat_map(|figure| changes(figure, &points, chance)).collect();
    changes.sort_by_key(|change| (change.first_run, change.figure));
    Some(Course {
        target: first.target.clone(),
        load: first.load,
        told_apart_by: told_apart_by(runs, all),
        runs: points,
        changes,
        differences: differences_between(runs),
    })
}

/// What tells the load of runs from other loads of the same title.
fn told_apart_by(runs: &[Brief], all: &[Vec<Brief>]) -> Vec<LoadSetting> {
    let Some(own) = told_best(runs) else { return Vec::new() };
    let others = all.iter().filter_map(|runs| told_best(runs)).filter(|other| other.has_title_of(own));
    let differences = others.flat_map(|other| own.settings.differences_from(&other.settings));
    let mut found: Vec<LoadSetting> = Vec::new();
    for Difference { aspect, after, .. } in differences {
        let is_new = found.iter().all(|setting| setting.aspect != aspect);
        if is_new && (aspect.is_of_load() || aspect == Aspect::Sent) {
            found.extend(after.into_iter().next().map(|setting| LoadSetting { aspect, setting }));
        }
    }
    found
}

/// A run that tells what it sent, if one does.
fn told_best(runs: &[Brief]) -> Option<&Brief> {
    runs.iter().find(|run| run.settings.sent().is_some()).or(runs.first())
}

/// The runs whose surroundings are not those of the run before. How long a load was is left out: two of one length may fall
/// into two classes.
fn differences_between(runs: &[Brief]) -> Vec<RunDifferences> {
    let differences = |before: &Brief, run: &Brief| {
        let mut found = run.settings.differences_from(&before.settings);
        found.retain(|difference| difference.aspect != Aspect::Duration);
        found
    };
    let pairs = runs.iter().zip(runs.iter().skip(1)).zip(1u32..);
    let of = |((before, run), number): ((&Brief, &Brief), u32)| RunDifferences {
        run: number,
        file: run.point.file.clone(),
        differences: differences(before, run),
    };
    pairs.map(of).filter(|run| !run.differences.is_empty()).collect()
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

impl ChangePoint {
    /// Whether it is for the worse: less throughput, or more CPU time per request. N* may become smaller either way.
    pub fn is_worse(&self) -> bool {
        match self.figure {
            Followed::Throughput => self.ratio < 1.0,
            Followed::Users => false,
            Followed::CpuPerRequest => self.ratio > 1.0,
        }
    }
}

impl History {
    /// The course of the load that was measured last. `None` without runs.
    pub fn measured_last(&self) -> Option<&Course> {
        let began = |course: &&Course| course.runs.last().map(|run| run.started.clone());
        self.courses.iter().max_by_key(began)
    }
}

impl Course {
    /// The last change of each figure, where it is for the worse and came with one of the last so many runs.
    pub fn worse_within(&self, runs: u32) -> Vec<&ChangePoint> {
        let first = (self.runs.len() as u32).saturating_sub(runs);
        let last_of = |figure: Followed| self.changes.iter().rfind(|change| change.figure == figure);
        let last = Followed::ALL.into_iter().filter_map(last_of);
        last.filter(|change| change.is_worse() && change.first_run >= first).collect()
    }

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
mod tests;
