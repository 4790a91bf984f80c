//! Synthetic sweeps: a server described in a few words becomes the steps and counters that a real
//! run of it would give. Throughput comes from mean value analysis of its stations.

mod disk;
mod kernel;
mod sessions;

use analysis::conclude::{Conclusion, Context, Provenance, RunKind};
use analysis::counters::{
    ConnectionLimits, Counters, Cpu, CpuQuota, DatabaseSample, Interface, IoLimit, IoRate, Listener, Process,
    Role, Thread, ThreadLook, ThreadState, Tracked,
};
use analysis::laws::mva::{Station, mva, repairman};
use analysis::resources::{Usage, usage};
use analysis::run::{Generator, LoadShape, Measurement, ResponseTime, Step};
use analysis::ticks::ErrorKind;
use analysis::verdict::{DatabaseServer, WatchedDatabase};

pub(super) use disk::Platter;
pub(super) use kernel::{LittleMemory, Softirqs};
pub(super) use sessions::Sessions;
use sessions::asked;

/// The conclusion with its words put in, as a run file holds it.
pub(super) fn conclude(observed: &[Observed], context: &Context) -> Conclusion {
    conclude_steps(observed.iter().map(Observed::step_with_usage).collect(), context)
}

/// Whether the evidence of the bottleneck says so, in these words.
pub(super) fn says(found: &Conclusion, words: &str) -> bool {
    found.verdict.bottleneck.evidence.iter().any(|said| said.contains(words))
}

/// The same from steps.
pub(super) fn conclude_steps(steps: Vec<Step>, context: &Context) -> Conclusion {
    let concluded = analysis::conclude::conclude(steps, context);
    let to_tell = concluded.to_tell;
    let mut run = concluded.into_run(Provenance::default());
    report::put_words(&mut run);
    Conclusion {
        verdict: run.verdict,
        steps: run.steps,
        topology: run.topology,
        laws: run.laws,
        models: run.models,
        warnings: run.warnings,
        confirmation: run.confirmation,
        to_tell,
        kinds: Vec::new(),
    }
}

/// How sure a verdict is, by what its kind of evidence is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Sure {
    /// A resource was counted as full, and nothing comes near.
    Direct,
    /// Something is missing, or another explanation is not far.
    Fairly,
    /// More probable than all others together.
    Rather,
    /// Not enough for a verdict.
    Undecided,
}

/// How sure the verdict is.
pub(super) fn sure(found: &Conclusion) -> Sure {
    match found.verdict.bottleneck.confidence.share() {
        share if share >= 0.95 => Sure::Direct,
        share if share >= 0.8 => Sure::Fairly,
        share if share >= 0.6 => Sure::Rather,
        _ => Sure::Undecided,
    }
}

/// A step, and what was seen meanwhile.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    pub(super) step: Step,
    pub(super) counters: Vec<Counters>,
    pub(super) looks: Vec<ThreadLook>,
    pub(super) database: Vec<DatabaseSample>,
}

impl Observed {
    /// The step with what was used meanwhile.
    pub(super) fn step_with_usage(&self) -> Step {
        let measurement = &self.step.measurement;
        let usage = usage(&self.counters, &self.database, measurement.window).with_looks(&self.looks);
        let windows = measurement.all_windows();
        let usage = usage.with_silences(&self.counters, &windows, &measurement.silences);
        Step { usage, ..self.step.clone() }
    }
}

/// Length of a step and time between samples, microseconds.
const STEP_US: u64 = 4_000_000;
const SAMPLE_US: u64 = 250_000;
/// Counters do not start at nought.
const BASE: f64 = 5_000_000.0;

/// One group of processes.
#[derive(Clone)]
pub(super) struct Tier {
    name: &'static str,
    role: Role,
    demand_us: f64,
    /// Threads that can work at once.
    threads: u32,
    /// Processes they are spread over.
    processes: u32,
    cpus: Vec<u32>,
    quota: Option<(f64, &'static str)>,
    /// The work moves between this many threads.
    spread: u32,
    state: ThreadState,
    open_files_limit: u64,
    /// Busy this much of a core however small the load.
    polls: bool,
    /// Share of its CPU time used by children that nobody saw.
    unseen: f64,
    /// Whether it waits for those children, and so is charged for them.
    reaps: bool,
    disk_share: f64,
    /// Bytes that it writes for a request.
    writes: f64,
    /// Page faults of a request that read from a disk.
    faults: f64,
    /// Share of its work that the kernel counts as interrupts, not as its own.
    interrupts: f64,
    /// What its threads are called, in turn; like the tier where there is none.
    thread_names: &'static [&'static str],
    /// Share of its CPU time that is in no thread's account.
    lost: f64,
    /// How many threads it has, where samples leave some out.
    thread_count: Option<u32>,
    /// Writes a second that its cgroup may, and writes of a request; `None`: it uses the limit whole, whatever the load.
    io_limit: Option<(u64, Option<f64>)>,
    /// Its threads wait for a disk one after the other.
    turns: bool,
    /// How its threads come to their states.
    found: Found,
}

/// How samples find the threads of a tier.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    /// All in the tier's state, but for one that runs where that is waiting for a lock.
    Alike,
    /// Running as often as they are busy, each for itself, and else in the tier's state.
    Independent,
    /// One for each user, in the tier's state but for one that runs.
    OnePerUser,
}

pub(super) fn server(name: &'static str) -> Tier {
    Tier {
        name,
        role: Role::Server,
        demand_us: 30.0,
        threads: 1,
        processes: 1,
        cpus: vec![0, 1, 2],
        quota: None,
        spread: 1,
        state: ThreadState::Sleeping,
        open_files_limit: 1024,
        polls: false,
        unseen: 0.0,
        reaps: false,
        disk_share: 0.0,
        writes: 0.0,
        faults: 0.0,
        interrupts: 0.0,
        thread_names: &[],
        lost: 0.0,
        thread_count: None,
        io_limit: None,
        turns: false,
        found: Found::Alike,
    }
}

impl Tier {
    pub(super) fn downstream(self) -> Self {
        Self { role: Role::Downstream, ..self }
    }
    pub(super) fn demand_us(self, demand_us: f64) -> Self {
        Self { demand_us, ..self }
    }
    pub(super) fn threads(self, threads: u32) -> Self {
        Self { threads, ..self }
    }
    pub(super) fn processes(self, processes: u32) -> Self {
        Self { processes, ..self }
    }
    pub(super) fn cpus(self, cpus: &[u32]) -> Self {
        Self { cpus: cpus.to_vec(), ..self }
    }
    pub(super) fn quota(self, cores: f64, cgroup: &'static str) -> Self {
        Self { quota: Some((cores, cgroup)), ..self }
    }
    /// One thread's worth of work that moves between many threads, as under a global lock.
    pub(super) fn taking_turns(self, spread: u32) -> Self {
        Self { spread, state: ThreadState::Futex, ..self }
    }
    pub(super) fn state(self, state: ThreadState) -> Self {
        Self { state, ..self }
    }
    pub(super) fn open_files_limit(self, limit: u64) -> Self {
        Self { open_files_limit: limit, ..self }
    }
    pub(super) fn polling(self) -> Self {
        Self { polls: true, ..self }
    }
    pub(super) fn unseen_children(self, unseen: f64) -> Self {
        Self { unseen, ..self }
    }
    pub(super) fn reaping(self) -> Self {
        Self { reaps: true, ..self }
    }
    pub(super) fn interrupts(self, interrupts: f64) -> Self {
        Self { interrupts, ..self }
    }
    pub(super) fn thread_names(self, names: &'static [&'static str]) -> Self {
        Self { thread_names: names, ..self }
    }
    /// This share of its CPU time is spent by threads that come and go between two samples.
    pub(super) fn short_lived_threads(self, lost: f64) -> Self {
        Self { lost, ..self }
    }
    /// It has this many threads, more than are sampled.
    pub(super) fn too_many_threads(self, count: u32) -> Self {
        Self { thread_count: Some(count), ..self }
    }
    /// Its cgroup may write this often a second, and a request writes so often.
    pub(super) fn write_limit(self, per_s: u64, each: f64) -> Self {
        Self { io_limit: Some((per_s, Some(each))), ..self }
    }
    /// Its cgroup may write this often a second, and does, whatever the load.
    pub(super) fn write_limit_used_whole(self, per_s: u64) -> Self {
        Self { io_limit: Some((per_s, None)), ..self }
    }
    /// In any sample one of its threads waits for a disk, each in turn.
    pub(super) fn turns_at_the_disk(self) -> Self {
        Self { turns: true, ..self }
    }
    /// Each thread works for itself: samples find some running and some not.
    pub(super) fn independent_threads(self) -> Self {
        Self { found: Found::Independent, ..self }
    }
    /// Every user has a thread, and all but one wait in the tier's state.
    pub(super) fn thread_per_user(self) -> Self {
        Self { found: Found::OnePerUser, ..self }
    }
    pub(super) fn writes(self, bytes: f64) -> Self {
        Self { writes: bytes, ..self }
    }
    /// A request waits for so many pages that come from a disk.
    pub(super) fn faults(self, faults: f64) -> Self {
        Self { faults, ..self }
    }
    pub(super) fn disk_share(self, disk_share: f64) -> Self {
        Self { disk_share, ..self }
    }
}

/// What makes a link.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    pub(super) name: &'static str,
    pub(super) bits_per_request: f64,
    pub(super) speed: Option<u64>,
    pub(super) shaped: Option<u64>,
    /// Whether the speed holds traffic back, or is only stated.
    pub(super) real: bool,
}

/// A whole experiment.
#[derive(Clone)]
pub(super) struct Lab {
    cores: u32,
    users: Vec<u32>,
    tiers: Vec<Tier>,
    generator: Tier,
    /// Users wait this long for nothing that is counted.
    delay_us: f64,
    /// This many at a time wait this long: a pool of sleepers.
    pool: Option<(u32, f64)>,
    disk: Option<Platter>,
    link: Option<Link>,
    softirqs: Option<Softirqs>,
    memory: Option<LittleMemory>,
    connection_limits: Option<ConnectionLimits>,
    /// Cores used by processes that are not part of the test.
    interference: f64,
    steal: f64,
    swapping: bool,
    overflows_per_s: f64,
    retried_per_s: f64,
    /// Users beyond whom connections find the listen queue full.
    room_for: u32,
    waiting: u64,
    /// Share of requests that fail from this many users on.
    errors: Option<(u32, f64, ErrorKind)>,
    /// Most users that get a connection.
    admitted: Option<u32>,
    /// Throughput lost per user beyond 16, as a share.
    falling: f64,
    noise: Option<u64>,
    hidden: bool,
    /// Share of time outside the wait for events while it had no processor.
    crowded_useful_work: Option<f64>,
    lag_us: f64,
    /// What the sessions of a database do.
    sessions: Option<Sessions>,
    pub(super) context: Context,
}

/// Four cores, the generator alone on the last one, 5 us a request.
pub(super) fn sweep() -> Lab {
    Lab {
        cores: 4,
        users: vec![1, 2, 4, 8, 16, 32, 64],
        tiers: Vec::new(),
        generator: Tier { role: Role::Generator, ..server("nstar") }.demand_us(5.0).cpus(&[3]),
        delay_us: 60.0,
        pool: None,
        disk: None,
        link: None,
        softirqs: None,
        memory: None,
        connection_limits: None,
        interference: 0.0,
        steal: 0.0,
        swapping: false,
        overflows_per_s: 0.0,
        retried_per_s: 0.0,
        room_for: 4,
        waiting: 0,
        errors: None,
        admitted: None,
        falling: 0.0,
        noise: None,
        hidden: false,
        crowded_useful_work: None,
        lag_us: 20.0,
        sessions: None,
        context: Context {
            load: LoadShape { threads: 1, ..LoadShape::default() },
            kind: RunKind::Sweep { users_max: 64 },
            ..Context::default()
        },
    }
}

impl Lab {
    pub(super) fn cores(self, cores: u32) -> Self {
        Self { cores, ..self }
    }
    pub(super) fn users(self, users: &[u32]) -> Self {
        Self { users: users.to_vec(), ..self }
    }
    pub(super) fn tier(mut self, tier: Tier) -> Self {
        self.tiers.push(tier);
        self
    }
    pub(super) fn generator(self, change: impl Fn(Tier) -> Tier) -> Self {
        let generator = change(self.generator.clone());
        let mut lab = Self { generator, ..self };
        lab.context.load.threads = lab.generator.threads;
        lab
    }
    pub(super) fn delay_us(self, delay_us: f64) -> Self {
        Self { delay_us, ..self }
    }
    pub(super) fn pool(self, workers: u32, sleep_us: f64) -> Self {
        Self { pool: Some((workers, sleep_us)), ..self }
    }
    pub(super) fn disk(self, disk: Platter) -> Self {
        Self { disk: Some(disk), ..self }
    }
    pub(super) fn link(self, link: Link) -> Self {
        Self { link: Some(link), ..self }
    }
    pub(super) fn softirqs(self, softirqs: Softirqs) -> Self {
        Self { softirqs: Some(softirqs), ..self }
    }
    pub(super) fn memory(self, memory: LittleMemory) -> Self {
        Self { memory: Some(memory), ..self }
    }
    /// What is found in every look; what was refused grows by as much a second.
    pub(super) fn connection_limits(self, limits: ConnectionLimits) -> Self {
        Self { connection_limits: Some(limits), ..self }
    }
    pub(super) fn interference(self, interference: f64) -> Self {
        Self { interference, ..self }
    }
    pub(super) fn steal(self, steal: f64) -> Self {
        Self { steal, ..self }
    }
    pub(super) fn swapping(self) -> Self {
        Self { swapping: true, ..self }
    }
    pub(super) fn listen_queue(self, overflows_per_s: f64, waiting: u64) -> Self {
        Self { overflows_per_s, waiting, ..self }
    }
    /// The generator's handshakes are tried again so often where the listen queue overflows.
    pub(super) fn handshakes_retried(self, retried_per_s: f64) -> Self {
        Self { retried_per_s, ..self }
    }
    /// The listen queue overflows only with more users than this.
    pub(super) fn room_for(self, users: u32) -> Self {
        Self { room_for: users, ..self }
    }
    pub(super) fn errors(self, from_users: u32, share: f64, kind: ErrorKind) -> Self {
        Self { errors: Some((from_users, share, kind)), ..self }
    }
    pub(super) fn admitted(self, users: u32) -> Self {
        Self { admitted: Some(users), ..self }
    }
    pub(super) fn falling(self, falling: f64) -> Self {
        Self { falling, ..self }
    }
    pub(super) fn noise(self, seed: u64) -> Self {
        Self { noise: Some(seed), ..self }
    }
    pub(super) fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }
    pub(super) fn crowded_useful_work(self, share: f64) -> Self {
        Self { crowded_useful_work: Some(share), ..self }
    }
    /// The database behind the server is watched, and its sessions do this.
    pub(super) fn sessions(self, sessions: Sessions) -> Self {
        let mut lab = Self { sessions: Some(sessions), ..self };
        lab.context.database = Some(WatchedDatabase {
            name: "mysql://ann@db/rooms".into(),
            server: DatabaseServer::Mysql,
            trouble: None,
        });
        lab
    }
    pub(super) fn lag_us(self, lag_us: f64) -> Self {
        Self { lag_us, ..self }
    }

    pub(super) fn conclude(&self) -> Conclusion {
        conclude(&self.observed(), &Context { rest: self.rest(), ..self.context.clone() })
    }

    /// What was used before the load began.
    pub(super) fn rest(&self) -> Usage {
        let rest = self.step(1_000, 0, 0.0, 1.0);
        usage(&rest.counters, &[], rest.step.measurement.window)
    }

    pub(super) fn observed(&self) -> Vec<Observed> {
        let mut random = fastrand::Rng::with_seed(self.noise.unwrap_or(0));
        let amount = if self.noise.is_some() { 0.008 } else { 0.0 };
        self.users
            .iter()
            .enumerate()
            .map(|(index, users)| {
                let jitter = 1.0 + amount * (2.0 * random.f64() - 1.0);
                let throughput = self.throughput(*users) * jitter;
                let wobble = 1.0 + amount * (2.0 * random.f64() - 1.0);
                self.step(index as u64, *users, throughput, wobble)
            })
            .collect()
    }

    fn throughput(&self, users: u32) -> f64 {
        let admitted = self.admitted.map_or(users, |most| users.min(most));
        let fall = 1.0 - self.falling * f64::from(users.saturating_sub(16));
        let think_us = self.context.load.think_time_us;
        let of_stations = |stations: &[Station]| {
            mva(stations, think_us, admitted).last().map_or(0.0, |step| step.throughput_per_s)
        };
        let solved = match self.pool {
            Some((workers, us)) => {
                let others_us: f64 = self.stations().iter().map(demand_us).sum();
                let in_pool = repairman(workers, (others_us + think_us) / us, admitted) / us * 1e6;
                in_pool.min(of_stations(&self.stations()))
            }
            None => of_stations(&self.stations()),
        };
        solved * fall.max(0.1)
    }

    /// Where requests spend time, but for the pool.
    fn stations(&self) -> Vec<Station> {
        let mut stations: Vec<Station> = self.shared_station().into_iter().collect();
        let shared = !stations.is_empty();
        for tier in self.tiers.iter().chain([&self.generator]) {
            // Shared processors are one station, so alone a tier is only held by its own threads.
            let (demand_us, servers) = match tier.quota {
                Some((cores, _)) => (tier.demand_us / cores, 1),
                None => (tier.demand_us, tier.threads.min(tier.cpus.len() as u32)),
            };
            if !shared || tier.quota.is_some() {
                stations.push(Station::Queue { demand_us, servers });
            }
        }
        for tier in &self.tiers {
            if let Some((per_s, Some(each))) = tier.io_limit {
                stations.push(Station::Queue { demand_us: each / per_s as f64 * 1e6, servers: 1 });
            }
        }
        if let Some(softirqs) = self.softirqs.filter(|softirqs| softirqs.demand_us > 0.0) {
            let demand_us = softirqs.demand_us / (1.0 - softirqs.background);
            stations.push(Station::Queue { demand_us, servers: 1 });
        }
        // What the workers of a pool wait for side by side is in the pool.
        if let Some(disk) = self.disk.filter(|disk| disk.at_once == 1 || self.pool.is_none()) {
            stations.push(disk.station());
        }
        if let Some(link) = self.link.filter(|link| link.real)
            && let Some(rate) = link.shaped.or(link.speed)
        {
            stations
                .push(Station::Queue { demand_us: link.bits_per_request / rate as f64 * 1e6, servers: 1 });
        }
        stations.push(Station::Delay { demand_us: self.delay_us });
        stations
    }

    /// Where the generator may run where the tiers may, they queue for the same processors.
    fn shared_station(&self) -> Option<Station> {
        let overlap =
            self.tiers.iter().any(|tier| tier.cpus.iter().any(|cpu| self.generator.cpus.contains(cpu)));
        let demand: f64 =
            self.tiers.iter().map(|tier| tier.demand_us).sum::<f64>() + self.generator.demand_us;
        let free = (f64::from(self.cores) - self.interference) / f64::from(self.cores);
        overlap.then(|| Station::Queue { demand_us: demand / free, servers: self.cores })
    }

    pub(super) fn step(&self, index: u64, users: u32, throughput: f64, wobble: f64) -> Observed {
        let start = 1_000_000_000 + index * 10 * STEP_US;
        let share = self.errors.filter(|(from, ..)| users >= *from).map_or(0.0, |(_, share, _)| share);
        let completed = (throughput * (1.0 - share) * STEP_US as f64 / 1e6) as u64;
        let rate = completed as f64 / STEP_US as f64 * 1e6;
        let mean = f64::from(users) / throughput * 1e6 - self.context.load.think_time_us;
        let around = |value: f64, half: f64| [value * (1.0 - half), value * (1.0 + half)];
        let own = throughput * self.generator.demand_us / 1e6 / f64::from(self.generator.threads);
        let window = (start, start + STEP_US);
        let samples = (0..=STEP_US / SAMPLE_US + 2).map(|sample| {
            let at_us = start + sample * SAMPLE_US - SAMPLE_US;
            self.sample(at_us, (sample * SAMPLE_US) as f64 * wobble, users, throughput)
        });
        let database = self.sessions.map_or_else(Vec::new, |sessions| asked(sessions, start, users));
        let step = Step {
            users,
            elapsed_s: STEP_US as f64 / 1e6,
            completed,
            throughput_per_s: rate,
            throughput_ci_per_s: Some(around(rate, 0.01)),
            response_time_us: ResponseTime {
                mean,
                mean_ci: Some(around(mean, 0.01)),
                p99: 3.0 * mean,
                ..ResponseTime::default()
            },
            errors: self
                .errors
                .filter(|_| share > 0.0)
                .map(|(_, _, kind)| (kind, (completed as f64 * share / (1.0 - share)) as u64))
                .into_iter()
                .collect(),
            steady: true,
            generator: Generator {
                useful_work: self.crowded_useful_work.unwrap_or(own).min(1.0),
                lag_us_p99: self.lag_us,
                ..Generator::default()
            },
            measurement: Measurement { window, uncorrelated: true, ..Measurement::default() },
            ..Step::default()
        };
        Observed { step, counters: samples.collect(), looks: Vec::new(), database }
    }

    fn sample(&self, at_us: u64, t: f64, users: u32, throughput: f64) -> Counters {
        let mut counters = Counters { at_us, cpus: self.cpus(t, throughput), ..Counters::default() };
        let count = |rate_per_s: f64| (BASE + rate_per_s * t / 1e6) as u64;
        for (index, tier) in self.tiers.iter().chain([&self.generator]).enumerate() {
            if tier.role == Role::Generator || !self.hidden {
                // On full processors what is not asleep for another reason waits to run.
                let full = counters.cpus.iter().all(|cpu| cpu.idle_us < (BASE + 0.05 * t) as u64);
                let starved = full && self.pool.is_none() && tier.state == ThreadState::Sleeping;
                let tier = &if starved { tier.clone().state(ThreadState::Running) } else { tier.clone() };
                counters.processes.extend(processes(tier, index as u32, t, users, throughput));
            }
        }
        if let Some(disk) = self.disk {
            counters.disks.push(disk.counted(t, users, throughput));
            let waits = throughput * disk.demand_us > 0.5e6;
            counters.pressure.io_some_us = count(if waits { 600_000.0 } else { 10_000.0 });
        }
        counters.interfaces.push(interface(
            Link { name: "lo", bits_per_request: 80_000.0, ..Link::default() },
            t,
            throughput,
            true,
        ));
        if let Some(link) = self.link {
            counters.interfaces.push(interface(link, t, throughput, true));
        }
        counters.tcp.listen_overflows = count(if users > self.room_for { self.overflows_per_s } else { 0.0 });
        counters.tcp.listen_drops = counters.tcp.listen_overflows;
        counters.generator_tcp.handshakes_retried =
            count(if users > self.room_for { self.retried_per_s } else { 0.0 });
        counters.generator_tcp.retransmits = counters.generator_tcp.handshakes_retried;
        counters.generator_tcp.segments_sent = count(2.0 * throughput);
        let waiting = if users > 8 { self.waiting } else { 0 };
        counters.listeners.push(Listener { port: 80, pid: 812, waiting, backlog: 128 });
        if self.swapping && users > 4 {
            counters.memory.swapped_in_pages = count(2_000.0);
            counters.pressure.memory_some_us = count(500_000.0);
        }
        let looked = (at_us / SAMPLE_US).is_multiple_of(4);
        if let Some(limits) = self.connection_limits.clone().filter(|_| looked) {
            let tracked =
                limits.tracked.map(|tracked| Tracked { refused: count(tracked.refused as f64), ..tracked });
            counters.connection_limits = Some(vec![ConnectionLimits { tracked, ..limits }]);
        }
        if let Some(memory) = self.memory {
            counters.memory_limits = looked.then(|| vec![memory.limit(self.tiers.first(), t, throughput)]);
        }
        counters
    }

    fn cpus(&self, t: f64, throughput: f64) -> Vec<Cpu> {
        let mut busy = vec![self.interference / f64::from(self.cores); self.cores as usize];
        for tier in self.tiers.iter().chain([&self.generator]) {
            for cpu in &tier.cpus {
                busy[*cpu as usize] += used(tier, throughput) / tier.cpus.len() as f64;
            }
        }
        let mut softirq = vec![0.0; self.cores as usize];
        if let Some(Softirqs { cpu, demand_us, background }) = self.softirqs {
            softirq[cpu as usize] = (throughput * demand_us / 1e6 + background).min(1.0);
            busy[cpu as usize] += softirq[cpu as usize];
        }
        let cpu = |(number, busy): (usize, &f64)| {
            let busy = busy.min(1.0 - self.steal);
            Cpu {
                number: number as u32,
                user_us: (BASE + t * busy * 0.5) as u64,
                system_us: (BASE + t * busy * 0.5) as u64,
                idle_us: (BASE + t * (1.0 - self.steal - busy)) as u64,
                iowait_us: 0,
                steal_us: (BASE + t * self.steal) as u64,
                softirq_us: (BASE + t * softirq[number]) as u64,
                squeezes: (BASE + t * softirq[number] / 1e3) as u64,
                ..Cpu::default()
            }
        };
        busy.iter().enumerate().map(cpu).collect()
    }
}

fn demand_us(station: &Station) -> f64 {
    match *station {
        Station::Queue { demand_us, .. } | Station::Delay { demand_us } => demand_us,
    }
}

/// Cores a tier uses.
fn used(tier: &Tier, throughput: f64) -> f64 {
    if tier.polls { f64::from(tier.threads) } else { throughput * tier.demand_us / 1e6 }
}

fn processes(tier: &Tier, index: u32, t: f64, users: u32, throughput: f64) -> Vec<Process> {
    let seen =
        used(tier, throughput) * (1.0 - tier.unseen) * (1.0 - tier.interrupts) / f64::from(tier.processes);
    let (pid, started) = if tier.role == Role::Generator { (4000, 900) } else { (812 + 100 * index, 500) };
    let all_threads = if tier.found == Found::OnePerUser { users } else { tier.threads.max(tier.spread) };
    let threads_each = (all_threads / tier.processes).max(1);
    let per_thread = seen * (1.0 - tier.lost) / f64::from(threads_each);
    let open = (u64::from(users) + 6).min(tier.open_files_limit);
    let one = |worker: u32| Process {
        pid: pid + worker,
        started_ticks: started,
        name: tier.name.to_owned(),
        role: tier.role,
        user_us: (BASE + t * seen * 0.4) as u64,
        system_us: (BASE + t * seen * 0.6) as u64,
        reaped_children_us: if tier.reaps {
            (BASE + t * used(tier, throughput) * tier.unseen) as u64
        } else {
            0
        },
        run_queue_wait_us: (BASE + t * seen * 0.05) as u64,
        threads: (0..threads_each)
            .map(|thread| {
                let turn = tier.turns && (t / SAMPLE_US as f64).round() as u32 % threads_each == thread;
                let seen = one_thread(tier, pid + worker, thread, (t, per_thread));
                if turn { Thread { state: ThreadState::Disk, ..seen } } else { seen }
            })
            .collect(),
        thread_count: tier.thread_count.unwrap_or(threads_each),
        allowed_cpus: tier.cpus.len() as u32,
        allowed_cpu_numbers: tier.cpus.clone(),
        open_files: Some(open),
        open_files_limit: Some(tier.open_files_limit),
        disk_read_bytes: Some((BASE + throughput * 1e5 * tier.disk_share * t / 1e6) as u64),
        disk_written_bytes: Some((BASE + throughput * tier.writes * t / 1e6) as u64),
        major_faults: (BASE + throughput * tier.faults * t / 1e6) as u64,
        cpu_quota: quota(tier, t, throughput),
        io_limits: io_limit(tier, t, throughput).into_iter().collect(),
        ..Process::default()
    };
    (0..tier.processes).map(one).collect()
}

fn one_thread(tier: &Tier, pid: u32, thread: u32, (t, busy): (f64, f64)) -> Thread {
    let runs = match tier.found {
        Found::Alike | Found::OnePerUser => tier.state == ThreadState::Futex && thread == 0,
        Found::Independent => fastrand::Rng::with_seed(t as u64 * 64 + u64::from(thread)).f64() < busy,
    };
    let names = if tier.thread_names.is_empty() { &[tier.name] } else { tier.thread_names };
    Thread {
        tid: pid + 1000 * thread,
        name: names[thread as usize % names.len()].to_owned(),
        cpu_us: (BASE + t * busy) as u64,
        state: if runs { ThreadState::Running } else { tier.state },
        ..Thread::default()
    }
}

fn io_limit(tier: &Tier, t: f64, throughput: f64) -> Option<IoLimit> {
    let (per_s, each) = tier.io_limit?;
    let rate = each.map_or(per_s as f64, |each| each * throughput);
    Some(IoLimit {
        cgroup: "/db".to_owned(),
        device: "vda".to_owned(),
        of: IoRate::Writes,
        per_s,
        done: (BASE + rate * t / 1e6) as u64,
    })
}

fn quota(tier: &Tier, t: f64, throughput: f64) -> Option<CpuQuota> {
    let (cores, cgroup) = tier.quota?;
    let spent = (used(tier, throughput) / cores).min(1.0);
    let periods = t / 100_000.0;
    Some(CpuQuota {
        cgroup: cgroup.to_owned(),
        cores,
        periods: (1000.0 + periods) as u64,
        throttled_periods: if spent > 0.8 { (100.0 + periods * 0.9) as u64 } else { 100 },
        throttled_us: if spent > 0.8 { (BASE + t * 0.5) as u64 } else { BASE as u64 },
        usage_us: (BASE + t * spent * cores) as u64,
    })
}

fn interface(link: Link, t: f64, throughput: f64, carries_load: bool) -> Interface {
    let bytes_per_s = throughput * link.bits_per_request / 8.0;
    let count = |rate_per_s: f64| (BASE + rate_per_s * t / 1e6) as u64;
    let full = link.shaped.is_some_and(|rate| bytes_per_s * 8.0 > 0.85 * rate as f64);
    Interface {
        name: link.name.to_owned(),
        sent_bytes: count(bytes_per_s),
        received_bytes: count(bytes_per_s / 20.0),
        link_bits_per_s: link.speed,
        shaped_bits_per_s: link.shaped,
        shaper_overlimits: if full { count(5_000.0) } else { BASE as u64 },
        qdisc_backlog_bytes: if full { 60_000 } else { 0 },
        carries_load,
        ..Interface::default()
    }
}
