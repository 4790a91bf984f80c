//! The steps of a run as the rules see them: throughput over users, with N* and the plateau beyond it.

use std::collections::{BTreeMap, BTreeSet};

use crate::counters::Role;
use crate::resources::{CpuUse, Group, GroupKey, HostUse, LinkUse, Usage};
use crate::run::{DatabaseTrouble, Processes, Step, TimesCompared, nearest};
use crate::search::growth::Growth;
use crate::statistics::NORMAL_95;
use crate::tell_apart::Trial;
use crate::thresholds::{FULL, IMPOSSIBLE_RATE, LOW, PLATEAU};

/// A resource that did this share of its plateau work when throughput was low does not follow the load: it is a
/// polling loop, or somebody else's work.
const FOLLOWS_SHARE: f64 = 0.90;

/// So many times N* is more than it, whatever its interval.
const CLEARLY_BEYOND: f64 = 1.5;

/// The standard error of a maximum that no interval is known of.
const MAXIMUM_UNKNOWN: f64 = 0.05;

/// A thread that does this share of its processes' work does nearly all of it.
const ONE_THREAD_SHARE: f64 = 0.8;

/// The database that was asked which sessions wait for locks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedDatabase {
    /// Its name in reports, without credentials.
    pub name: String,
    /// The kind of database server.
    pub server: DatabaseServer,
    /// The reason why its answers are incomplete, if they are.
    pub trouble: Option<DatabaseTrouble>,
}

/// A kind of database server that can be asked which sessions wait for locks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DatabaseServer {
    /// MariaDB or MySQL.
    #[default]
    Mysql,
    /// PostgreSQL.
    Postgres,
}

impl DatabaseServer {
    const ALL: [Self; 2] = [Self::Mysql, Self::Postgres];

    /// Whether these are its processes.
    pub(super) fn runs_as(self, of: &Processes) -> bool {
        let names: &[&str] = match self {
            Self::Mysql => &["mariadbd", "mysqld"],
            Self::Postgres => &["postgres"],
        };
        of.role == Role::Downstream && names.contains(&of.name.as_str())
    }

    /// Whether these are the processes of any database server that can be asked.
    pub(super) fn any_runs_as(of: &Processes) -> bool {
        Self::ALL.iter().any(|server| server.runs_as(of))
    }
}

/// Properties of a curve as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shape {
    /// N*, where throughput was seen to stop growing; need not be a measured number of users.
    pub users_at_saturation: Option<u32>,
    /// Whether throughput was seen to stop growing.
    pub bounded: bool,
    /// Growth over the last steps.
    pub growth: Growth,
    /// Whether a fixed number of users waits for responses (not an open loop).
    pub closed: bool,
    /// The maximum throughput, requests per second; 0 where it is not known.
    pub throughput_max_per_s: f64,
    /// Its 95 % interval, [lo, hi].
    pub throughput_max_ci_per_s: [f64; 2],
    /// Threads of the generator.
    pub generator_threads: u32,
    /// Whether what is asked for was meant to come from a disk.
    pub cold: bool,
}

/// Throughput over users: the steps, ascending, with the plateau found among them.
#[derive(Debug, Clone)]
pub struct Curve {
    steps: Vec<Step>,
    shape: Shape,
    star: usize,
    plateau: Vec<usize>,
    processes: BTreeMap<GroupKey, Processes>,
    database: Option<WatchedDatabase>,
    /// What was used before the load began, as a step without users.
    rest: Option<Step>,
    experiment: Option<(TimesCompared, Trial)>,
}

impl Curve {
    /// Sorts the steps and finds the plateau.
    pub fn new(mut steps: Vec<Step>, shape: Shape, database: Option<WatchedDatabase>) -> Self {
        steps.sort_by_key(|step| step.users);
        let last = steps.len().saturating_sub(1);
        let star = match shape.users_at_saturation {
            Some(users) if shape.bounded => nearest(&steps, users).unwrap_or(last),
            _ => last,
        };
        let top = steps.iter().map(|step| step.throughput_per_s).fold(0.0, f64::max);
        let holds = |index: &usize| *index == star || steps[*index].throughput_per_s >= PLATEAU * top;
        let plateau = (star..steps.len()).filter(holds).collect();
        let processes = processes(&steps);
        Self { steps, shape, star, plateau, processes, database, rest: None, experiment: None }
    }

    /// The same with what each resource was used for before the load began, where that was seen.
    pub fn with_rest(self, usage: Usage) -> Self {
        let rest = usage.observed().then(|| Step { usage, ..Step::default() });
        Self { rest, ..self }
    }

    /// The same with what an experiment showed, where one was made.
    pub fn with_experiment(self, trial: Option<Trial>) -> Self {
        let experiment = trial.and_then(|trial| Some((trial.result()?, trial)));
        Self { experiment, ..self }
    }

    /// What the experiment showed that was made.
    pub(super) fn experiment(&self) -> Option<&TimesCompared> {
        self.experiment.as_ref().map(|(result, _)| result)
    }

    /// The natural logarithm of the odds that it gives to a pool of so many workers, against one with a worker for each user.
    pub(super) fn log_odds_of_workers(&self, workers: u32) -> f64 {
        self.experiment.as_ref().map_or(0.0, |(_, trial)| trial.log_odds_of_workers(workers))
    }

    /// The experiment with several users: whether requests pass one at a time.
    pub(super) fn contention(&self) -> Option<&TimesCompared> {
        self.experiment().filter(|made| made.users > 1)
    }

    /// Whether the experiment told that requests pass one at a time.
    pub(super) fn one_by_one(&self) -> bool {
        self.contention().and_then(TimesCompared::told) == Some(true)
    }

    /// The experiment with one user: whether requests pass at a limited rate.
    pub(super) fn pausing(&self) -> Option<&TimesCompared> {
        self.experiment().filter(|made| made.users == 1)
    }

    /// The database that was watched.
    pub(crate) fn database(&self) -> Option<&WatchedDatabase> {
        self.database.as_ref()
    }

    /// The steps, by ascending users.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps themselves, by ascending users.
    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// The step of one user, if there is one.
    pub(crate) fn alone(&self) -> Option<&Step> {
        self.steps.first().filter(|step| step.users == 1)
    }

    /// The step measured nearest to N*, or the last one.
    pub fn star(&self) -> Option<&Step> {
        self.steps.get(self.star)
    }

    pub(super) fn star_users(&self) -> u32 {
        self.shape.users_at_saturation.unwrap_or_else(|| self.last_users())
    }

    /// Whether a step has more users than N*, whatever the interval of that.
    pub(super) fn is_clearly_beyond(&self, step: &Step) -> bool {
        f64::from(step.users) >= CLEARLY_BEYOND * f64::from(self.star_users())
    }

    pub(super) fn last_users(&self) -> u32 {
        self.steps.last().map_or(0, |step| step.users)
    }

    pub(crate) fn bounded(&self) -> bool {
        self.shape.bounded
    }

    pub(crate) fn growth(&self) -> Growth {
        self.shape.growth
    }

    pub(super) fn cold(&self) -> bool {
        self.shape.cold
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
        self.steps.iter().map(|step| step.completed).fold(0, u64::saturating_add)
    }

    pub(crate) fn throughput_max(&self) -> f64 {
        self.steps.iter().map(|step| step.throughput_per_s).fold(0.0, f64::max)
    }

    /// The maximum throughput, requests per second, and its standard error as a share of it.
    pub(super) fn maximum(&self) -> (f64, f64) {
        let (most, [low, high]) = (self.shape.throughput_max_per_s, self.shape.throughput_max_ci_per_s);
        if most > 0.0 {
            (most, (high - low) / (2.0 * NORMAL_95 * most))
        } else {
            (self.throughput_max(), MAXIMUM_UNKNOWN)
        }
    }

    /// Whether the processes under test were seen on the plateau.
    pub fn observed(&self) -> bool {
        self.plateau().any(|step| step.usage.observed())
    }

    /// N* and the steps beyond it that hold its throughput; the last step where it never stopped growing.
    pub fn plateau(&self) -> impl Iterator<Item = &Step> {
        self.plateau.iter().filter_map(|index| self.steps.get(*index))
    }

    /// Mean over the plateau, of the steps that have the value.
    pub(super) fn mean(&self, read: impl Fn(&Step) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.plateau().filter_map(read).filter(|value| value.is_finite()).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Mean over the plateau of something about one group of processes.
    pub(super) fn group_mean(&self, of: &Processes, read: impl Fn(&Group) -> f64) -> f64 {
        self.mean(|step| group(step, of).map(&read)).unwrap_or(0.0)
    }

    /// The server's processes and those behind it, as seen on the plateau.
    pub(super) fn tiers(&self) -> Vec<Processes> {
        let mut tiers: Vec<Processes> =
            self.plateau().flat_map(|step| step.usage.tiers()).map(|group| self.processes(group)).collect();
        tiers.sort();
        tiers.dedup();
        tiers
    }

    /// The group at the plateau step where it used most processor time.
    pub(super) fn group(&self, of: &Processes) -> Option<&Group> {
        self.plateau().filter_map(|step| group(step, of)).max_by(|a, b| a.cores.total_cmp(&b.cores))
    }

    /// The identity of a group: the same at every step.
    pub(crate) fn processes(&self, group: &Group) -> Processes {
        let known = self.processes.get(&group.key());
        known.cloned().unwrap_or_else(|| Processes {
            role: group.role,
            name: group.name.clone(),
            on: group.on.clone(),
            ..Processes::default()
        })
    }

    /// Cores that unwatched processes used on the plateau, beyond what they used when throughput was low or before the load.
    pub(super) fn unwatched_cores(&self) -> f64 {
        let before = self.compared_with().and_then(unwatched).unwrap_or(0.0);
        self.mean(unwatched).map_or(0.0, |now| (now - before).max(0.0))
    }

    /// The most cores that unwatched work for the load can have used at the maximum throughput. Such work is in
    /// proportion to the throughput (U = X D), so no step can have had less of it than its share, and at steps with clearly
    /// less throughput there was less of it by as much: what stays does not come from the load.
    pub(super) fn unwatched_at_most(&self) -> f64 {
        let busy = self.steps.iter().filter(|step| step.throughput_per_s > 0.0);
        let each = busy.filter_map(|step| Some(unwatched(step)? / step.throughput_per_s));
        let share = each.fold(f64::INFINITY, f64::min) * self.throughput_max();
        let rises = self.lighter().chain(self.rest.as_ref()).filter_map(|step| self.unwatched_rise(step));
        rises.max_by(f64::total_cmp).map_or(share, |rise| share.min(rise))
    }

    /// Cores of unwatched work at the maximum throughput, by how much more there was on the plateau than at this lighter
    /// step.
    fn unwatched_rise(&self, lighter: &Step) -> Option<f64> {
        let (now, then) = (self.mean(unwatched)?, unwatched(lighter)?);
        let throughput = self.mean(|step| Some(step.throughput_per_s))?;
        let rise = (now - then).max(0.0) / (throughput - lighter.throughput_per_s) * self.throughput_max();
        rise.is_finite().then_some(rise)
    }

    /// The service demand of something used at this many units (cores, devices), microseconds per
    /// completed request: U = X D (Denning and Buzen 1978), over the plateau.
    pub(super) fn demand_us(&self, used: impl Fn(&Step) -> Option<f64>) -> Option<f64> {
        self.mean(|step| Some(used(step)? / step.throughput_per_s * 1e6))
    }

    /// The steps below N* whose throughput is clearly lower than the maximum.
    pub(super) fn lighter(&self) -> impl Iterator<Item = &Step> {
        let most = LOW * self.throughput_max();
        self.steps.iter().take(self.star).filter(move |step| {
            step.usage.elapsed_us > 0.0 && step.throughput_per_s > 0.0 && step.throughput_per_s <= most
        })
    }

    /// The step with the lowest throughput, if that is low enough to compare the plateau with.
    pub(super) fn low(&self) -> Option<&Step> {
        self.lighter().min_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))
    }

    /// What to compare the plateau with: the step with the lowest throughput if that is low enough, or else the time before
    /// the load, as a step without users.
    pub(super) fn compared_with(&self) -> Option<&Step> {
        self.low().or(self.rest.as_ref())
    }

    /// What was used before the load began, as a step without users, where that was seen.
    pub(super) fn at_rest(&self) -> Option<&Step> {
        self.rest.as_ref()
    }

    /// Whether the work something did grew with the load. True where there is nothing to compare it with.
    pub(super) fn follows_load(&self, work: impl Fn(&Step) -> Option<f64>) -> bool {
        let Some(low) = self.compared_with().and_then(&work) else { return true };
        self.mean(&work).is_none_or(|full| low < FOLLOWS_SHARE * full)
    }

    /// Whether a link's stated speed can be believed.
    pub(crate) fn limit_is_real(&self, link: &LinkUse) -> bool {
        let exceeds = |other: &LinkUse| {
            (&other.name, &other.on) == (&link.name, &link.on)
                && other.use_of_limit().is_some_and(|(used, limit)| used > IMPOSSIBLE_RATE * limit)
        };
        !self.steps.iter().flat_map(|step| &step.usage.links).any(exceeds)
    }

    /// The busy share of the generator's threads at one step. While its processors are full, time
    /// outside the wait for events includes time without a processor, so its own CPU time counts then.
    /// Of several generators it is that of the busiest: users of one that is full wait, however idle the others are.
    pub(crate) fn generator_busy(&self, step: &Step) -> f64 {
        if let Some(one) = step.busiest_generator() {
            return one.useful_work.clamp(0.0, 1.0);
        }
        let useful = if step.generator.useful_work.is_finite() {
            step.generator.useful_work.clamp(0.0, 1.0)
        } else {
            0.0
        };
        let Some(group) = step.usage.generator() else { return useful };
        let own = (group.cores / self.generator_threads(Some(group))).clamp(0.0, 1.0);
        let crowded = set_busy(step, group).is_some_and(|busy| busy >= FULL);
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

/// Cores in use that belong to no watched process, on the hosts of the tiers.
fn unwatched(step: &Step) -> Option<f64> {
    let of_host = |host: &HostUse| {
        let groups = step.usage.groups.iter().filter(|group| host.is(&group.machine));
        (host.busy_cores() - groups.map(|group| group.cores).sum::<f64>()).max(0.0)
    };
    let mut known = step.usage.tier_hosts().filter(|host| !host.cpus.is_empty()).peekable();
    known.peek().is_some().then(|| known.map(of_host).sum())
}

pub(super) fn group<'a>(step: &'a Step, of: &Processes) -> Option<&'a Group> {
    step.usage.groups.iter().find(|group| group.is(of))
}

/// The host whose processors a group uses.
pub(super) fn host_of<'a>(step: &'a Step, of: &Processes) -> Option<&'a HostUse> {
    step.usage.host(&group(step, of)?.machine)
}

/// Busy share of the processors a group may use, whoever keeps them busy; `None` where it is not
/// known which they are.
pub(super) fn set_busy(step: &Step, group: &Group) -> Option<f64> {
    let set: Vec<_> = set(step, group)?;
    let available: f64 = set.iter().map(|cpu| 1.0 - cpu.steal).sum();
    let busy: f64 = set.iter().map(|cpu| cpu.busy).sum();
    (available > 0.0).then(|| (busy / available).min(1.0))
}

/// The processors a group may use: those it named, or all of them if it may use as many as there are.
pub(super) fn set<'a>(step: &'a Step, group: &Group) -> Option<Vec<&'a CpuUse>> {
    let cpus = &step.usage.host(&group.machine)?.cpus;
    let named: Vec<_> = cpus.iter().filter(|cpu| group.allowed.contains(&cpu.number)).collect();
    if !named.is_empty() {
        return Some(named);
    }
    (!cpus.is_empty() && group.allowed_count() >= cpus.len()).then(|| cpus.iter().collect())
}

/// One identity per group for all steps, so that a step's resources are recognised at the next step.
fn processes(steps: &[Step]) -> BTreeMap<GroupKey, Processes> {
    let mut seen: BTreeMap<GroupKey, (BTreeSet<u32>, usize)> = BTreeMap::new();
    for group in steps.iter().flat_map(|step| &step.usage.groups) {
        let (pids, most) = seen.entry(group.key()).or_default();
        pids.extend(&group.pids);
        *most = group.pids.len().max(*most);
    }
    seen.into_iter().map(|(key, (pids, most))| (key.clone(), identity(key, &pids, most))).collect()
}

fn identity(GroupKey { role, name, on }: GroupKey, pids: &BTreeSet<u32>, most: usize) -> Processes {
    let pid = pids.first().copied().filter(|_| pids.len() == 1);
    let processes = if pid.is_some() { 1 } else { most.max(2).min(u32::MAX as usize) as u32 };
    Processes { role, name, pid, processes, on }
}
