//! Several generators elsewhere that make one load together.
//!
//! Users are dealt over them in proportion to what each can make, which is tested first. All begin at one instant, and what
//! they count is merged slice by slice; nothing is averaged. A generator that is lost takes what was being measured with
//! it: nothing of that is used, and the others begin again or the run ends, as asked.

mod joining;
mod lost;
mod own;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use agent::protocol::{Begin, Prepared, Started};
use agent::{BySsh, Endpoint, EndpointError, RemoteGenerator, StartError, TooLarge};
use analysis::run::{GeneratorHost, GeneratorLoss, GeneratorTrouble};
use analysis::ticks::Tick;
use load::fleet::{MEMBERS_MAX, Member as Place, deal};
use load::{Pacing, Plan, ProbeReport, RequestTotal, SLICE_US, Stop, Think};
use observe::monotonic_us;

use self::joining::{ASTRAY_US, Joining, Owner, Slices, Start};
pub use self::lost::Lost;
use crate::driver::{DriveError, Sent, Told};
use crate::elsewhere::{flag_of, unused};

/// Generators are told so long before they begin, so that all have heard it by then.
const LEAD_US: u64 = 100_000;

/// A generator that sends nothing for longer is lost: it sends something fifty times a second.
const SILENT_US: u64 = 5_000_000;

/// A generator whose latest slice is older is lost: it falls behind more than it can have waiting.
const BEHIND_US: u64 = 15_000_000;

/// Not to have looked for longer is no ordinary pause between two looks.
const UNLOOKED_US: u64 = 500_000;

/// Beginning so much later than asked for is told.
const LATE_US: u64 = 20_000;

/// A clock known no better than this is told.
const CLOCK_ERROR_US: f64 = 1_000.0;

/// Time between looks at what has come: a fraction of a slice.
const LOOK: Duration = Duration::from_millis(4);

/// Where load is made, if not here.
#[derive(Debug, Clone, Default)]
pub struct Generators {
    /// The commands and hosts; none: the load is made by this process.
    pub endpoints: Vec<Endpoint>,
    /// Threads of each; `None`: one for each processor that it may use.
    pub threads: Option<u32>,
    /// What happens when one is lost.
    pub on_loss: OnLoss,
    /// How those that are reached by ssh are run there.
    pub by_ssh: BySsh,
    /// Whether to make do with fewer users where limits on open files do not allow all.
    pub fewer_users: bool,
}

/// The word for a generator beside this process.
const HERE: &str = "here";

/// The flag that names generators.
const FLAG: &str = "--generator";

/// Reads where load is to be made: a host to reach by ssh, a command that runs `nstar agent`, or `here`.
///
/// # Errors
/// If it is none of these.
pub fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    if text == HERE { Ok(Endpoint::Here) } else { text.parse() }
}

/// What happens when one of several generators is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// What was being measured is measured again without it, and that is told.
    #[default]
    Repeat,
    /// The run ends, with the steps that are complete by then.
    End,
}

/// Reasons why several generators cannot make a load together.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// One could not be started.
    #[error("{flag}: {source}")]
    Start {
        /// The flag that named it.
        flag: &'static str,
        /// Why not.
        source: StartError,
    },
    /// There are more than can share a load.
    #[error("there are {0} generators, and {MEMBERS_MAX} at most can make a load together")]
    TooMany(usize),
    /// The load cannot be sent to them.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// One was lost, or cannot make the load.
    #[error("the generator on {name} was lost")]
    Lost {
        /// Its name.
        name: String,
        /// How it was lost; `report` puts it into words.
        loss: GeneratorLoss,
    },
    /// One may not have as many users as it is to have.
    #[error(
        "the generator on {name} is to have {users} users, and its limit on open files allows {allowed}: raise it there \
         (`ulimit -n`), or use fewer users; --fewer-users runs with what there is"
    )]
    TooFewFiles {
        /// Its name.
        name: String,
        /// Users that it is to have.
        users: u32,
        /// Users that the limit allows.
        allowed: u32,
    },
}

/// Generators that make a load together.
pub(crate) struct Fleet {
    members: Vec<Member>,
    addresses: Vec<SocketAddr>,
    on_loss: OnLoss,
    /// Requests per second of all together, in an open loop.
    rate_per_s: Option<f64>,
    users: u32,
    think: Option<Think>,
    /// Whether the generators have not been told the number of users yet.
    pending: bool,
    /// The number of what is under way, and when it was to begin.
    under_way: (u64, u64),
    /// When it was looked last whether anything came.
    looked_us: u64,
    joining: Joining,
    stall_limit_us: u64,
    /// The kinds of request, before anything was counted of them.
    totals: Vec<RequestTotal>,
    troubles: Vec<(String, GeneratorTrouble)>,
    /// How many of them had come when something was measured last.
    settled: usize,
}

/// One of them.
struct Member {
    name: Arc<str>,
    /// `None` once it is lost.
    remote: Option<RemoteGenerator>,
    prepared: Prepared,
    weight: u32,
    users: u32,
    slices: Slices,
    /// When a slice came last.
    heard_us: u64,
    /// The end of that slice.
    reached_us: u64,
    /// For how long nobody looked since something began.
    unlooked_us: u64,
    /// When what is under way ended by itself.
    finished_us: Option<u64>,
    /// By how much it began something later than asked for, at worst.
    late_us: u64,
    /// By how much its clock is ahead of ours, and how well that was known at worst, microseconds.
    clock: (i64, f64),
}

impl Fleet {
    /// Starts all, tests what each can make, deals the load, and sends the first request of each to each server. There may be
    /// as many users then as it says.
    pub(crate) fn start(
        generators: &Generators,
        (plan, users_max): (&Plan, u32),
        interrupt: &AtomicBool,
    ) -> Result<(Self, Vec<ProbeReport>, u32), FleetError> {
        let (members, answers) = made_ready(generators, plan, interrupt).map_err(|error| {
            // Whatever else was not heard then, nobody waited for it.
            let is_interrupted = interrupt.load(Ordering::Relaxed);
            if is_interrupted { interrupted(generators) } else { error }
        })?;
        let addresses: BTreeSet<_> = answers.iter().flat_map(|started| &started.addresses).copied().collect();
        let mut fleet = Self {
            members,
            addresses: addresses.into_iter().collect(),
            on_loss: generators.on_loss,
            rate_per_s: match plan.pacing {
                Pacing::Open { rate_per_s, .. } => Some(rate_per_s),
                Pacing::Closed { .. } => None,
            },
            users: 0,
            think: None,
            pending: false,
            under_way: (0, 0),
            looked_us: monotonic_us(),
            joining: Joining::new(Start::Together),
            stall_limit_us: load::stall_limit_us(plan),
            totals: load::totals(&plan.scenario),
            troubles: Vec::new(),
            settled: 0,
        };
        let users_max = fleet.allow(users_max, generators.fewer_users)?;
        let probes = answers.into_iter().flat_map(|started| started.probes).collect();
        Ok((fleet, probes, users_max))
    }
}

/// Starts all, and has them make ready. Returns how the servers answered each.
fn made_ready(
    generators: &Generators,
    plan: &Plan,
    interrupt: &AtomicBool,
) -> Result<(Vec<Member>, Vec<Started>), FleetError> {
    let mut members = started(generators, interrupt)?;
    prepare(&mut members, (plan, generators.threads), interrupt)?;
    let answers = share(&members, plan, interrupt)?;
    Ok((members, answers))
}

/// Somebody asked to stop before all had made ready.
fn interrupted(generators: &Generators) -> FleetError {
    let flag = generators.endpoints.first().map_or(FLAG, |endpoint| flag_of(endpoint, FLAG));
    FleetError::Start { flag, source: StartError::Interrupted }
}

/// Starts an agent at each endpoint, all at the same time.
fn started(generators: &Generators, interrupt: &AtomicBool) -> Result<Vec<Member>, FleetError> {
    if generators.endpoints.len() > MEMBERS_MAX {
        return Err(FleetError::TooMany(generators.endpoints.len()));
    }
    let remotes: Vec<_> = thread::scope(|scope| {
        let start = |endpoint| scope.spawn(move || start(endpoint, generators.by_ssh, interrupt));
        let starting: Vec<_> = generators.endpoints.iter().map(start).collect();
        starting
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut names = BTreeSet::new();
    remotes.into_iter().map(|remote| Ok(Member::new(remote?, &mut names))).collect()
}

fn start(endpoint: &Endpoint, by_ssh: BySsh, interrupt: &AtomicBool) -> Result<RemoteGenerator, FleetError> {
    let flag = flag_of(endpoint, FLAG);
    RemoteGenerator::start(endpoint, by_ssh, interrupt).map_err(|source| FleetError::Start { flag, source })
}

/// Has all make ready, and finds out how much each can make.
fn prepare(
    members: &mut [Member],
    (plan, threads): (&Plan, Option<u32>),
    interrupt: &AtomicBool,
) -> Result<(), FleetError> {
    for remote in members.iter().filter_map(|member| member.remote.as_ref()) {
        remote.prepare(plan, threads)?;
    }
    for member in members.iter_mut() {
        member.prepared = member.ask(|remote| remote.prepared(interrupt))?;
    }
    // Where one could not be tested, threads stand for what each can make.
    let all_tested = members.iter().all(|member| member.prepared.ceiling_per_s.is_some());
    for member in members {
        let ceiling_per_s = member.prepared.ceiling_per_s.filter(|ceiling| all_tested && *ceiling >= 1.0);
        member.weight = ceiling_per_s.map_or(member.prepared.threads, |ceiling| ceiling as u32).max(1);
    }
    Ok(())
}

/// Tells each its place, and returns how the servers answered it.
fn share(members: &[Member], plan: &Plan, interrupt: &AtomicBool) -> Result<Vec<Started>, FleetError> {
    let weights: Vec<u32> = members.iter().map(|member| member.weight).collect();
    for (index, member) in members.iter().enumerate() {
        if let (Some(remote), Some(place)) = (&member.remote, Place::new(weights.clone(), index)) {
            remote.start_load(place);
        }
    }
    let servers = plan.scenario.bases().len();
    let longest = plan.timeout.saturating_mul(u32::try_from(servers).unwrap_or(u32::MAX));
    let started = |remote: &RemoteGenerator| {
        let started = remote.started(longest, interrupt)?;
        of_each(servers, started)
    };
    members.iter().map(|member| member.ask(started)).collect()
}

/// What a generator tells of so many servers, if that is one address and one answer of each: it decides which processes are
/// watched, and what observers are asked.
fn of_each(servers: usize, started: Started) -> Result<Started, GeneratorLoss> {
    let is_of_each = [started.addresses.len(), started.probes.len()] == [servers; 2];
    is_of_each.then_some(started).ok_or(GeneratorLoss::Malformed)
}

impl Fleet {
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The process numbers of those that run beside this process.
    pub(crate) fn beside(&self) -> Vec<u32> {
        let here = agent::serve::about();
        let abouts =
            self.members.iter().filter_map(|member| member.remote.as_ref()).map(RemoteGenerator::about);
        abouts.filter(|about| about.is_beside(&here)).map(|about| about.pid).collect()
    }

    /// Changes the number of users of all together from what is collected next on.
    pub(crate) fn set_users(&mut self, users: u32) {
        self.users = users;
        self.pending = true;
    }

    /// Changes the think time from then on.
    pub(crate) fn set_think(&mut self, think: Think) {
        self.think = Some(think);
        self.pending = true;
    }

    /// Collects ticks for this long, or until interrupted.
    pub(crate) fn collect(&mut self, for_us: u64, interrupt: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
        self.check_not_over()?;
        if self.pending {
            self.begin(None)?;
        }
        let mut ticks = Vec::new();
        loop {
            self.hear()?;
            while ticks.len() as u64 * SLICE_US < for_us
                && let Some(tick) = self.next_tick()
            {
                ticks.push(tick);
            }
            if ticks.len() as u64 * SLICE_US >= for_us || interrupt.load(Ordering::Relaxed) {
                self.settled = self.troubles.len();
                return Ok(ticks);
            }
            thread::sleep(LOOK);
        }
    }

    /// Runs until `stop`, or until interrupted. A number of requests ends too where the servers are gone.
    pub(crate) fn run(&mut self, stop: Stop, interrupt: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
        if let Stop::Time(time) = stop {
            return self.collect(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), interrupt);
        }
        self.check_not_over()?;
        self.begin(Some(stop))?;
        let (mut ticks, begun_us) = (Vec::<Tick>::new(), self.under_way.1);
        loop {
            self.hear()?;
            ticks.extend(std::iter::from_fn(|| self.next_tick()));
            // Slices of a generator may lie half a slice later here than there, and what they hold with them.
            let reached_us = ticks.last().map_or(0, |tick| tick.start_us);
            let finished_us =
                self.finished_us().filter(|us| *us <= reached_us).map(|us| us.max(end_of(&ticks)));
            let is_over = interrupt.load(Ordering::Relaxed) || load::stalled_us(&ticks) > self.stall_limit_us;
            if finished_us.is_some() || is_over {
                return Ok(load::trim(ticks, begun_us, finished_us));
            }
            thread::sleep(LOOK);
        }
    }

    /// What is known by now of each.
    pub(crate) fn told(&self) -> Told {
        let of_members = self.members.iter().flat_map(Member::troubles);
        Told {
            hosts: self.members.iter().map(Member::host).collect(),
            troubles: self.troubles.iter().cloned().chain(of_members).collect(),
        }
    }

    /// Ends the load. Returns the totals of every kind of request, of the generators that were not lost, and which were.
    pub(crate) fn finish(self) -> Sent {
        let mut uncounted = Lost::first_of(&self.troubles);
        let mut lost = match self.check_not_over() {
            Err(DriveError::Over(error)) => Lost::meanwhile(&error),
            _ => None,
        };
        let alive = self.members.into_iter().filter_map(|member| Some((member.name, member.remote?)));
        let alive: Vec<_> = alive.collect();
        alive.iter().for_each(|(_, remote)| remote.finish());
        let (mut totals, mut are_told) = (self.totals, false);
        for (name, remote) in &alive {
            match remote.totals().and_then(|of_one| add_all(&mut totals, &of_one)) {
                Ok(()) => are_told = true,
                Err(loss) => {
                    let last = Lost { name: name.to_string(), loss };
                    lost.get_or_insert_with(|| last.clone());
                    uncounted.get_or_insert(last);
                }
            }
        }
        if !are_told {
            totals.clear();
        }
        Sent { totals, lost, uncounted }
    }

    /// Users of each that is not lost, in their order.
    fn dealt(&self, users: u32) -> Vec<u32> {
        let alive = self.members.iter().filter(|member| member.remote.is_some());
        deal(&alive.map(|member| member.weight).collect::<Vec<_>>(), users)
    }

    /// How many of so many users the limits on open files allow: all, or fewer where that will do.
    fn allow(&mut self, asked: u32, fewer: bool) -> Result<u32, FleetError> {
        let Err(error) = self.check_files(&self.dealt(asked)) else { return Ok(asked) };
        let allowed = most(asked, |users| self.check_files(&self.dealt(users)).is_ok());
        match error {
            FleetError::TooFewFiles { name, allowed: of_this, .. } if fewer && allowed > 0 => {
                self.troubles.push((name, GeneratorTrouble::FewerUsers { asked, allowed, of_this }));
                Ok(allowed)
            }
            error => Err(error),
        }
    }

    fn check_files(&self, dealt: &[u32]) -> Result<(), FleetError> {
        let alive = self.members.iter().filter(|member| member.remote.is_some());
        for (member, &users) in alive.zip(dealt) {
            let allowed = member.prepared.users_max;
            if users > allowed {
                return Err(FleetError::TooFewFiles { name: member.name.to_string(), users, allowed });
            }
        }
        Ok(())
    }

    /// Fails once the run is over: what ended it, ends whatever else is asked for.
    fn check_not_over(&self) -> Result<(), DriveError> {
        let why = |(name, trouble): &(String, GeneratorTrouble)| {
            let name = name.clone();
            Some(DriveError::Over(match *trouble {
                GeneratorTrouble::Lost { ended_run: true, ref loss, .. } => {
                    FleetError::Lost { name, loss: loss.clone() }
                }
                GeneratorTrouble::TooFewFiles { users, allowed } => {
                    FleetError::TooFewFiles { name, users, allowed }
                }
                _ => return None,
            }))
        };
        self.troubles.iter().find_map(why).map_or(Ok(()), Err)
    }

    /// Has all begin at one instant. Those that are left may have too few files for the users of those that were lost.
    fn begin(&mut self, stop: Option<Stop>) -> Result<(), DriveError> {
        let dealt = self.dealt(self.users);
        if let Err(error) = self.check_files(&dealt) {
            if let FleetError::TooFewFiles { ref name, users, allowed } = error {
                self.troubles.push((name.clone(), GeneratorTrouble::TooFewFiles { users, allowed }));
            }
            return Err(DriveError::Over(error));
        }
        self.pending = false;
        let (number, at_us) = (self.under_way.0 + 1, monotonic_us() + LEAD_US);
        self.under_way = (number, at_us);
        self.joining = Joining::new(if stop.is_some() { Start::First } else { Start::Together });
        let stops = stops(stop, &dealt);
        let alive = self.members.iter_mut().filter(|member| member.remote.is_some());
        for ((member, users), stop) in alive.zip(dealt).zip(stops) {
            // The rate goes with the connections; one without connections sends nothing, whatever its rate.
            let share = f64::from(users.max(1)) / f64::from(self.users.max(1));
            let rate_per_s = self.rate_per_s.map(|rate| rate * share);
            member.begin(Begin { number, at_us, users, think: self.think, rate_per_s, stop });
        }
        Ok(())
    }

    /// Takes what has come from each.
    fn hear(&mut self) -> Result<(), DriveError> {
        let (under_way, now_us) = (self.under_way, monotonic_us());
        // While nobody looked, nobody was silent: this process may have been stopped itself.
        let unlooked_us = now_us.saturating_sub(self.looked_us);
        self.looked_us = now_us;
        if unlooked_us > UNLOOKED_US {
            self.members.iter_mut().for_each(|member| member.excuse(unlooked_us));
        }
        for index in 0..self.members.len() {
            let heard = self.members.get_mut(index).map_or(Ok(()), |member| member.hear(under_way, now_us));
            heard.map_err(|loss| self.lose(index, loss))?;
        }
        Ok(())
    }

    /// Goes on without one, or not at all.
    fn lose(&mut self, index: usize, loss: GeneratorLoss) -> DriveError {
        self.pending = true;
        let name = self.members.get_mut(index).map_or_else(String::new, |member| {
            member.remote = None;
            member.name.to_string()
        });
        let error = FleetError::Lost { name: name.clone(), loss: loss.clone() };
        let ended_run =
            self.on_loss == OnLoss::End || self.members.iter().all(|member| member.remote.is_none());
        self.troubles.push((name, GeneratorTrouble::Lost { users: self.users, loss, ended_run }));
        if ended_run {
            // What takes all, such as a bus that is gone, takes one after the other.
            end_with(self.troubles.get_mut(self.settled..).unwrap_or_default());
            DriveError::Over(error)
        } else {
            DriveError::Again(error)
        }
    }

    fn next_tick(&mut self) -> Option<Tick> {
        let alive = self.members.iter_mut().filter(|member| member.remote.is_some());
        let mut all: Vec<_> = alive.map(Member::owned).collect();
        self.joining.next(&mut all)
    }

    /// When the last request of all ended, once every generator has made its number.
    fn finished_us(&self) -> Option<u64> {
        let alive = self.members.iter().filter(|member| member.remote.is_some());
        alive.map(|member| member.finished_us).try_fold(0, |latest, one| Some(one?.max(latest)))
    }
}

/// Says of generators that were lost one after the other, and nothing measured meanwhile, that the run ended with all of them.
fn end_with(troubles: &mut [(String, GeneratorTrouble)]) {
    for (_, trouble) in troubles {
        if let GeneratorTrouble::Lost { ended_run, .. } = trouble {
            *ended_run = true;
        }
    }
}

/// Adds what one generator counted of all kinds of request.
fn add_all(all: &mut [RequestTotal], of_one: &[RequestTotal]) -> Result<(), GeneratorLoss> {
    if all.len() != of_one.len() {
        return Err(GeneratorLoss::Malformed);
    }
    all.iter_mut().zip(of_one).for_each(|(all, one)| all.add(one));
    Ok(())
}

/// The most users, of so many, for whom something holds that holds for fewer too; 0 if for none.
fn most(asked: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut holding, mut failing) = (0, asked.saturating_add(1));
    while failing - holding > 1 {
        let middle = holding + (failing - holding) / 2;
        if holds(middle) { holding = middle } else { failing = middle }
    }
    holding
}

/// A time within the last tick in which a request ended, microseconds; 0 where none did.
fn end_of(ticks: &[Tick]) -> u64 {
    let ended = |tick: &&Tick| tick.completed > 0 || !tick.errors.is_empty();
    ticks.iter().rev().find(ended).map_or(0, |tick| tick.start_us + 1)
}

/// What each is to make: of a total its part, in proportion to its users.
fn stops(stop: Option<Stop>, users: &[u32]) -> Vec<Option<Stop>> {
    let Some(Stop::Total(total)) = stop else { return vec![stop; users.len()] };
    let all = users.iter().map(|users| u128::from(*users)).sum::<u128>().max(1);
    let up_to = |users: u128| u64::try_from(u128::from(total) * users / all).unwrap_or(u64::MAX);
    let mut before = 0;
    let part = |users: &u32| {
        let after = before + u128::from(*users);
        let part = up_to(after) - up_to(before);
        before = after;
        Some(Stop::Total(part))
    };
    users.iter().map(part).collect()
}

impl Member {
    fn new(remote: RemoteGenerator, names: &mut BTreeSet<String>) -> Self {
        let name = unused(&remote.about().host, names).into();
        Self { remote: Some(remote), ..Self::named(name) }
    }

    /// One that nothing was heard of yet.
    fn named(name: Arc<str>) -> Self {
        Self {
            name,
            remote: None,
            prepared: Prepared::default(),
            weight: 1,
            users: 0,
            slices: Slices::default(),
            heard_us: 0,
            reached_us: 0,
            unlooked_us: 0,
            finished_us: None,
            late_us: 0,
            clock: (0, 0.0),
        }
    }

    /// Asks for something without which the load cannot be made.
    fn ask<T>(
        &self,
        ask: impl FnOnce(&RemoteGenerator) -> Result<T, GeneratorLoss>,
    ) -> Result<T, FleetError> {
        let lost = |loss| FleetError::Lost { name: self.name.to_string(), loss };
        let gone = GeneratorLoss::Ended { code: None, stderr: String::new() };
        self.remote.as_ref().map_or(Err(gone), ask).map_err(lost)
    }

    fn begin(&mut self, begin: Begin) {
        self.users = begin.users;
        self.slices = Slices::since(begin.at_us);
        self.finished_us = None;
        (self.heard_us, self.reached_us, self.unlooked_us) = (begin.at_us, begin.at_us, 0);
        if let Some(remote) = &self.remote {
            let (ahead_us, error_us) = remote.clock();
            self.clock = (ahead_us, error_us.max(self.clock.1));
            remote.begin(begin);
        }
    }

    /// Takes what came of what has this number and was to begin then.
    fn hear(&mut self, (number, at_us): (u64, u64), now_us: u64) -> Result<(), GeneratorLoss> {
        let Some(remote) = &self.remote else { return Ok(()) };
        let progress = remote.take()?;
        for (_, tick) in progress.ticks.into_iter().filter(|(of, _)| *of == number) {
            let near_us = remote.near_us(tick.start_us);
            self.slices.add(tick, near_us, now_us)?;
            (self.heard_us, self.reached_us) = (now_us, near_us.saturating_add(SLICE_US));
        }
        let of_this = |(of, us): (u64, u64)| (of == number).then_some(us);
        self.finished_us = progress.finished.and_then(of_this);
        if self.finished_us.is_some_and(|us| us > now_us.saturating_add(ASTRAY_US)) {
            return Err(GeneratorLoss::Malformed);
        }
        let begun_us = progress.begun.and_then(of_this).unwrap_or(at_us);
        self.late_us = begun_us.saturating_sub(at_us).max(self.late_us);
        if number > 0 { self.keeps_up(now_us) } else { Ok(()) }
    }

    /// Takes no offence at what nobody could hear.
    fn excuse(&mut self, unlooked_us: u64) {
        self.heard_us = self.heard_us.saturating_add(unlooked_us);
        self.unlooked_us = self.unlooked_us.saturating_add(unlooked_us);
    }

    /// Fails where it sends nothing any more, or ever older slices: others would wait for it, and their slices with them.
    fn keeps_up(&self, now_us: u64) -> Result<(), GeneratorLoss> {
        let silent_us = now_us.saturating_sub(self.heard_us);
        let behind_us = now_us.saturating_sub(self.reached_us).saturating_sub(self.unlooked_us);
        let lost_us = if silent_us > SILENT_US { silent_us } else { behind_us };
        let is_lost = silent_us > SILENT_US || behind_us > BEHIND_US;
        if is_lost { Err(GeneratorLoss::Silent { silent_s: lost_us as f64 / 1e6 }) } else { Ok(()) }
    }

    fn owned(&mut self) -> (Owner, &mut Slices) {
        (Owner { name: Arc::clone(&self.name), users: self.users }, &mut self.slices)
    }

    fn host(&self) -> GeneratorHost {
        GeneratorHost {
            name: self.name.to_string(),
            threads: self.prepared.threads,
            ceiling_per_s: self.prepared.ceiling_per_s,
            clock_offset_us: self.clock.0,
            clock_error_us: self.clock.1,
            started_late_us: self.late_us,
        }
    }

    fn troubles(&self) -> Vec<(String, GeneratorTrouble)> {
        let error_us = self.clock.1;
        let clock = (error_us > CLOCK_ERROR_US).then_some(GeneratorTrouble::Clock { error_us });
        let late =
            (self.late_us > LATE_US).then_some(GeneratorTrouble::StartedLate { late_us: self.late_us });
        let own = self.remote.as_ref().map_or_else(Vec::new, |remote| own::troubles(remote.own_use()));
        let all = clock.into_iter().chain(late).chain(own);
        all.map(|trouble| (self.name.to_string(), trouble)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_users_as_fit_are_found() {
        for limit in 0..20 {
            assert_eq!(most(12, |users| users <= limit), limit.min(12));
        }
        assert_eq!(most(u32::MAX, |users| users < 70_000), 69_999);
    }

    #[test]
    fn a_run_ends_with_all_that_were_lost_together() {
        let lost = |ended_run| {
            let loss = GeneratorLoss::Malformed;
            (String::new(), GeneratorTrouble::Lost { users: 3, loss, ended_run })
        };
        let other = (String::new(), GeneratorTrouble::StartedLate { late_us: 30_000 });
        let mut troubles = [lost(false), other.clone(), lost(true)];
        end_with(&mut troubles);
        assert_eq!(troubles, [lost(true), other, lost(true)]);
    }

    /// A member whose stream is none: what it sent is said by the test.
    fn member() -> Member {
        Member { users: 1, ..Member::named("far".into()) }
    }

    #[test]
    fn a_generator_that_falls_behind_is_lost_however_often_it_sends() {
        let mut far = member();
        // One slice every 4.9 s, which is never a silence.
        let mut lost_us = None;
        for number in 1..=10 {
            let now_us = number * 4_900_000;
            if lost_us.is_none() && far.keeps_up(now_us).is_err() {
                lost_us = Some(now_us);
            }
            (far.heard_us, far.reached_us) = (now_us, number * SLICE_US);
        }
        assert_eq!(lost_us, Some(19_600_000));
        let mut slow = Member { heard_us: 40_000_000, reached_us: 26_000_000, ..member() };
        assert_eq!(slow.keeps_up(40_000_000), Ok(()), "what was in its queue comes late");
        (slow.heard_us, slow.reached_us) = (44_990_000, 30_000_000);
        assert_eq!(slow.keeps_up(44_990_000), Ok(()));
    }

    #[test]
    fn a_generator_is_not_behind_by_the_time_in_which_nobody_looked() {
        let mut far = Member { heard_us: 1_000_000, reached_us: 1_000_000, ..member() };
        far.excuse(60_000_000);
        assert_eq!(far.keeps_up(61_500_000), Ok(()));
        assert!(far.keeps_up(67_000_000).is_err(), "it is silent since");
    }

    #[test]
    fn totals_are_of_the_kinds_of_the_load_whatever_a_generator_calls_them() {
        let none = RequestTotal::default;
        let counted = |name: &str, begun| RequestTotal { name: name.into(), begun, ..none() };
        let mut all = vec![counted("read", 0), counted("write", 0)];
        let short = [counted("read", 5)];
        assert_eq!(add_all(&mut all, &short), Err(GeneratorLoss::Malformed));
        assert_eq!(add_all(&mut all, &[counted("read", 5), counted("write", 2)]), Ok(()));
        assert_eq!(add_all(&mut all, &[counted("\x1b[2J", 1), counted("", u64::MAX)]), Ok(()));
        assert_eq!(all, [counted("read", 6), counted("write", u64::MAX)]);
    }

    #[test]
    fn a_generator_tells_one_address_of_each_server_and_no_more() {
        let address = SocketAddr::from(([10, 0, 0, 9], 22));
        let probe = || ProbeReport {
            address,
            status: 200,
            status_expected: true,
            request: 0,
            nothing_to_keep: false,
            elapsed: Duration::ZERO,
            tls: None,
        };
        let told = |addresses, probes| Started {
            addresses: vec![address; addresses],
            probes: std::iter::repeat_with(probe).take(probes).collect(),
        };
        assert_eq!(of_each(2, told(2, 2)), Ok(told(2, 2)));
        for (addresses, probes) in [(3, 2), (2, 3), (1, 2), (0, 0), (10_000, 2)] {
            assert_eq!(of_each(2, told(addresses, probes)), Err(GeneratorLoss::Malformed));
        }
    }

    #[test]
    fn a_total_is_split_without_loss() {
        let total = |total, users: &[u32]| -> Vec<u64> {
            let of = |stop| if let Some(Stop::Total(part)) = stop { part } else { panic!("{stop:?}") };
            stops(Some(Stop::Total(total)), users).into_iter().map(of).collect()
        };
        assert_eq!(total(100, &[1, 1, 2]), [25, 25, 50]);
        assert_eq!(total(10, &[3, 0, 4]), [4, 0, 6]);
        assert_eq!(
            total(u64::MAX, &[1, 1, 1]).iter().map(|part| u128::from(*part)).sum::<u128>(),
            u64::MAX.into()
        );
        assert_eq!(stops(Some(Stop::PerUser(7)), &[1, 2]), [Some(Stop::PerUser(7)); 2]);
        assert_eq!(stops(None, &[1, 2]), [None; 2]);
    }
}
