//! The sweep as the rules see it.

use std::collections::{BTreeMap, BTreeSet};

use super::thresholds::FULL;
use crate::counters::Role;
use crate::resources::{CpuUse, Group, LinkUse, StepResources};
use crate::run::Processes;
use crate::search::growth::Growth;
use crate::ticks::ErrorCounts;

/// Steps beyond N* that hold this share of the maximum throughput are the plateau: N* itself is where
/// 95 % of it is reached, and five points are left for noise and for throughput that falls slightly.
const PLATEAU_SHARE: f64 = 0.90;

/// Throughput below this share of the maximum is low enough for a resource that limits it to have been
/// clearly less busy.
const LOW_SHARE: f64 = 0.70;

/// A resource that did this share of its plateau work when throughput was low does not follow the load: it is a
/// polling loop, or somebody else's work.
const FOLLOWS_SHARE: f64 = 0.90;

/// A link whose traffic ever exceeded its stated speed by this factor has no such limit: virtual
/// devices state made-up speeds.
const IMPOSSIBLE_RATE: f64 = 1.1;

/// A thread that does this share of its processes' work does nearly all of it.
const ONE_THREAD_SHARE: f64 = 0.8;

/// The database that was asked which sessions wait for locks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedDatabase {
    /// What people call it, without credentials.
    pub name: String,
    /// What its server's processes are called.
    pub processes: &'static [&'static str],
    /// Why its answers are incomplete, if they are.
    pub trouble: Option<String>,
}

/// One step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// Users, or the step's rank in an open loop.
    pub users: u32,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// Mean response time, microseconds.
    pub response_mean_us: f64,
    /// Requests completed.
    pub completed: u64,
    /// Requests that failed.
    pub errors: ErrorCounts,
    /// Share of their time the generator's threads spent outside the wait for events.
    pub useful_work: f64,
    /// 99th percentile of the generator's lag, microseconds.
    pub lag_us_p99: f64,
    /// What the resources did.
    pub resources: StepResources,
}

/// What is known about the sweep as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shape {
    /// N*, where throughput was seen to stop growing; need not be a measured number of users.
    pub users_at_saturation: Option<u32>,
    /// Whether throughput was seen to stop growing.
    pub bounded: bool,
    /// What the last steps say about growth.
    pub growth: Growth,
    /// Whether a fixed number of users waits for responses (not an open loop).
    pub closed: bool,
    /// Threads of the generator.
    pub generator_threads: u32,
}

/// The steps, ascending, with the plateau found among them.
#[derive(Debug, Clone)]
pub struct Sweep {
    points: Vec<Point>,
    shape: Shape,
    star: usize,
    plateau: Vec<usize>,
    processes: BTreeMap<(Role, String), Processes>,
    database: Option<WatchedDatabase>,
}

impl Sweep {
    /// Sorts the steps and finds the plateau.
    pub fn new(mut points: Vec<Point>, shape: Shape) -> Self {
        points.sort_by_key(|point| point.users);
        let last = points.len().saturating_sub(1);
        let star = match shape.users_at_saturation {
            Some(users) if shape.bounded => points.iter().position(|p| p.users >= users).unwrap_or(last),
            _ => last,
        };
        let top = points.iter().map(|point| point.throughput_per_s).fold(0.0, f64::max);
        let holds = |index: &usize| *index == star || points[*index].throughput_per_s >= PLATEAU_SHARE * top;
        let plateau = (star..points.len()).filter(holds).collect();
        let processes = processes(&points);
        Self { points, shape, star, plateau, processes, database: None }
    }

    /// The same sweep with this database watched.
    pub(crate) fn beside(self, database: Option<WatchedDatabase>) -> Self {
        Self { database, ..self }
    }

    /// The database that was watched.
    pub(crate) fn database(&self) -> Option<&WatchedDatabase> {
        self.database.as_ref()
    }

    /// The steps, by ascending users.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The step at N*, or the last one.
    pub fn star(&self) -> Option<&Point> {
        self.points.get(self.star)
    }

    pub(super) fn star_users(&self) -> u32 {
        self.shape.users_at_saturation.unwrap_or_else(|| self.last_users())
    }

    pub(super) fn last_users(&self) -> u32 {
        self.points.last().map_or(0, |point| point.users)
    }

    pub(crate) fn bounded(&self) -> bool {
        self.shape.bounded
    }

    pub(super) fn growth(&self) -> Growth {
        self.shape.growth
    }

    pub(super) fn closed(&self) -> bool {
        self.shape.closed
    }

    /// Threads the generator can make use of: those it has, but no more than it has processors.
    pub(crate) fn generator_threads(&self, group: Option<&Group>) -> f64 {
        let threads = f64::from(self.shape.generator_threads.max(1));
        group.map_or(threads, |group| threads.min(group.allowed_count().max(1) as f64))
    }

    pub(super) fn completed(&self) -> u64 {
        self.points.iter().map(|point| point.completed).fold(0, u64::saturating_add)
    }

    pub(super) fn throughput_max(&self) -> f64 {
        self.points.iter().map(|point| point.throughput_per_s).fold(0.0, f64::max)
    }

    /// Whether the processes under test were seen on the plateau.
    pub fn observed(&self) -> bool {
        self.plateau().any(|point| point.resources.observed())
    }

    /// N* and the steps beyond it that hold its throughput; the last step where it never stopped growing.
    pub fn plateau(&self) -> impl Iterator<Item = &Point> {
        self.plateau.iter().filter_map(|index| self.points.get(*index))
    }

    /// Mean over the plateau, of the steps that have the value.
    pub(super) fn mean(&self, read: impl Fn(&Point) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.plateau().filter_map(read).filter(|value| value.is_finite()).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Mean over the plateau of something about one group of processes.
    pub(super) fn group_mean(&self, of: &Processes, read: impl Fn(&Group) -> f64) -> f64 {
        self.mean(|point| group(point, of).map(&read)).unwrap_or(0.0)
    }

    /// The server's processes and those behind it, as seen on the plateau.
    pub(super) fn tiers(&self) -> Vec<Processes> {
        let mut tiers: Vec<Processes> = self
            .plateau()
            .flat_map(|point| point.resources.tiers())
            .map(|group| self.processes(group))
            .collect();
        tiers.sort();
        tiers.dedup();
        tiers
    }

    /// The group at the plateau step where it used most processor time.
    pub(super) fn group(&self, of: &Processes) -> Option<&Group> {
        self.plateau().filter_map(|point| group(point, of)).max_by(|a, b| a.cores.total_cmp(&b.cores))
    }

    /// The identity of a group: the same at every step.
    pub(super) fn processes(&self, group: &Group) -> Processes {
        let known = self.processes.get(&(group.role, group.name.clone()));
        known.cloned().unwrap_or_else(|| Processes {
            role: group.role,
            name: group.name.clone(),
            ..Processes::default()
        })
    }

    /// Cores that unwatched processes used on the plateau, beyond what they used when throughput was low.
    pub(super) fn unwatched_cores(&self) -> f64 {
        let before = self.low().and_then(unwatched).unwrap_or(0.0);
        self.mean(unwatched).map_or(0.0, |now| (now - before).max(0.0))
    }

    /// The most cores that unwatched work for the load can have used at the maximum throughput. Such work is in
    /// proportion to the throughput (U = X D), so no step can have had less of it than its share.
    pub(super) fn unwatched_at_most(&self) -> f64 {
        let busy = self.points.iter().filter(|point| point.throughput_per_s > 0.0);
        let each = busy.filter_map(|point| Some(unwatched(point)? / point.throughput_per_s));
        each.fold(f64::INFINITY, f64::min) * self.throughput_max()
    }

    /// The service demand of something used at this many units (cores, devices), microseconds per
    /// completed request: U = X D (Denning and Buzen 1978), over the plateau.
    pub(super) fn demand_us(&self, used: impl Fn(&Point) -> Option<f64>) -> Option<f64> {
        self.mean(|point| Some(used(point)? / point.throughput_per_s * 1e6))
    }

    /// The steps below N* whose throughput is clearly lower than the maximum.
    pub(super) fn lighter(&self) -> impl Iterator<Item = &Point> {
        let most = LOW_SHARE * self.throughput_max();
        self.points.iter().take(self.star).filter(move |point| {
            point.resources.elapsed_us > 0.0 && point.throughput_per_s > 0.0 && point.throughput_per_s <= most
        })
    }

    /// The step with the lowest throughput, if that is low enough to compare the plateau with.
    pub(super) fn low(&self) -> Option<&Point> {
        self.lighter().min_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))
    }

    /// Whether the work something did grew with the throughput. True where no step was slow enough to tell.
    pub(super) fn follows_load(&self, work: impl Fn(&Point) -> Option<f64>) -> bool {
        let Some(low) = self.low().and_then(&work) else { return true };
        self.mean(&work).is_none_or(|full| low < FOLLOWS_SHARE * full)
    }

    /// Whether a link's stated speed can be believed.
    pub(super) fn limit_is_real(&self, link: &LinkUse) -> bool {
        let exceeds = |other: &LinkUse| {
            other.name == link.name
                && other.use_of_limit().is_some_and(|(used, limit)| used > IMPOSSIBLE_RATE * limit)
        };
        !self.points.iter().flat_map(|point| &point.resources.links).any(exceeds)
    }

    /// The busy share of the generator's threads at one step. While its processors are full, time
    /// outside the wait for events includes time without a processor, so its own CPU time counts then.
    pub(crate) fn generator_busy(&self, point: &Point) -> f64 {
        let useful = if point.useful_work.is_finite() { point.useful_work.clamp(0.0, 1.0) } else { 0.0 };
        let Some(group) = point.resources.generator() else { return useful };
        let own = (group.cores / self.generator_threads(Some(group))).clamp(0.0, 1.0);
        let crowded = set_busy(point, group).is_some_and(|busy| busy >= FULL);
        if crowded { own } else { useful.max(own) }
    }

    /// How many processors a tier can keep busy at once: one, where a single thread does most of its
    /// work, and else as many as it may use and has threads for.
    pub(crate) fn servers_of(&self, of: &Processes) -> u32 {
        let Some(group) = self.group(of) else { return 1 };
        let one_thread =
            group.busiest_thread.as_ref().is_some_and(|t| t.busy >= ONE_THREAD_SHARE * group.cores);
        let most = if one_thread { 1 } else { group.allowed_count().min(group.working_threads) };
        most.clamp(1, u32::MAX as usize) as u32
    }
}

/// Cores in use that belong to no watched process.
fn unwatched(point: &Point) -> Option<f64> {
    let watched: f64 = point.resources.groups.iter().map(|group| group.cores).sum();
    let host = &point.resources.host;
    (!host.cpus.is_empty()).then(|| (host.busy_cores() - watched).max(0.0))
}

pub(super) fn group<'a>(point: &'a Point, of: &Processes) -> Option<&'a Group> {
    point.resources.groups.iter().find(|group| group.role == of.role && group.name == of.name)
}

/// Busy share of the processors a group may use, whoever keeps them busy; `None` where it is not
/// known which they are.
pub(super) fn set_busy(point: &Point, group: &Group) -> Option<f64> {
    let set: Vec<_> = set(point, group)?;
    let available: f64 = set.iter().map(|cpu| 1.0 - cpu.steal).sum();
    let busy: f64 = set.iter().map(|cpu| cpu.busy).sum();
    (available > 0.0).then(|| (busy / available).min(1.0))
}

/// The processors a group may use: those it named, or all of them if it may use as many as there are.
pub(super) fn set<'a>(point: &'a Point, group: &Group) -> Option<Vec<&'a CpuUse>> {
    let cpus = &point.resources.host.cpus;
    let named: Vec<_> = cpus.iter().filter(|cpu| group.allowed.contains(&cpu.number)).collect();
    if !named.is_empty() {
        return Some(named);
    }
    (!cpus.is_empty() && group.allowed_count() >= cpus.len()).then(|| cpus.iter().collect())
}

/// One identity per group for the whole sweep, so that a step's resources are recognised at the next step.
fn processes(points: &[Point]) -> BTreeMap<(Role, String), Processes> {
    let mut seen: BTreeMap<(Role, String), (BTreeSet<u32>, usize)> = BTreeMap::new();
    for group in points.iter().flat_map(|point| &point.resources.groups) {
        let (pids, most) = seen.entry((group.role, group.name.clone())).or_default();
        pids.extend(&group.pids);
        *most = group.pids.len().max(*most);
    }
    seen.into_iter().map(|(key, (pids, most))| (key.clone(), identity(key, &pids, most))).collect()
}

fn identity((role, name): (Role, String), pids: &BTreeSet<u32>, most: usize) -> Processes {
    let pid = pids.first().copied().filter(|_| pids.len() == 1);
    let processes = if pid.is_some() { 1 } else { most.max(2).min(u32::MAX as usize) as u32 };
    Processes { role, name, pid, processes }
}
