//! Whether verdicts that are sure are right where more is to be seen than what stops a server: something else that is busy, tiers
//! behind one another, and kinds of limits that are too rare for [`calibration`](super::calibration).
//!
//! How often each of these servers is met is not what the priors say, so only what is said with 80 % or more is held against the
//! truth.

use analysis::conclude::{Conclusion, Context};
use analysis::counters::{Disk, Hop, ThreadState};
use analysis::resources::usage;
use analysis::run::{Pauses, ResourceKind, Step};
use analysis::ticks::ErrorKind;

use super::calibration::{Tally, Truth, exponential, idle, log_uniform, measured, truth};
use super::hops::{FRONT, hop, users_hop};
use super::lab::{Lab, LittleMemory, Observed, Platter, Softirqs, conclude, conclude_steps, server, sweep};
use super::queue::{Gate, System, Varies};

/// The process number of the second tier in the lab.
const BEHIND: u32 = 912;

/// The most workers of a pool.
const WORKERS_MOST: f64 = 50.0;

/// Workers, each of whom serves one request at a time. A single one is a lock.
struct Workers {
    number: u32,
    hold_us: f64,
    system: System,
}

impl Workers {
    /// A lock in one of four, and otherwise a pool.
    fn any(random: &mut fastrand::Rng) -> Self {
        if random.u32(0..4) == 0 { Self::of(1, random) } else { Self::several(2, random) }
    }

    fn several(least: u32, random: &mut fastrand::Rng) -> Self {
        let number = log_uniform(random, f64::from(least), WORKERS_MOST).round() as u32;
        Self::of(number, random)
    }

    /// Most requests spend nearly all of their time there: then verdicts are as sure as they become.
    fn of(number: u32, random: &mut fastrand::Rng) -> Self {
        let hold_us = log_uniform(random, 5_000.0, 50_000.0);
        let mean = if random.u32(0..5) < 4 { 0.015 } else { 0.5 };
        let beside_us = hold_us * (exponential(random, mean).exp() - 1.0);
        let varies =
            [Varies::Never, Varies::Never, Varies::Somewhat, Varies::Exponentially][random.usize(0..4)];
        Self { number, hold_us, system: System { gate: Gate::Servers(number, hold_us), beside_us, varies } }
    }

    /// What is true if they are those of this tier.
    fn truth(&self, tier: &'static str) -> Truth {
        truth(if self.number == 1 { ResourceKind::Lock } else { ResourceKind::WorkerPool }, tier)
    }

    /// What a request costs that keeps something busy for this share of the time at the maximum throughput, microseconds.
    fn demand_us(&self, busy: f64) -> f64 {
        busy * self.hold_us / f64::from(self.number)
    }

    /// Requests with a worker at a step, on average.
    fn served(&self, observed: &Observed) -> f64 {
        observed.step.throughput_per_s * self.hold_us / 1e6
    }

    /// Requests on their way there or back, on average.
    fn beside(&self, observed: &Observed) -> f64 {
        observed.step.throughput_per_s * self.system.beside_us / 1e6
    }

    /// The verdict on them in a lab that knows of the resources. It was watched before the load as well.
    fn verdict(&self, mut lab: Lab, random: &mut fastrand::Rng, see: impl Fn(&mut Observed)) -> Conclusion {
        let mut before = lab.step(1_000, 0, 0.0, 1.0);
        see(&mut before);
        lab.context.rest = usage(&before.counters, &[], before.step.measurement.window);
        measured(&lab, self.system, random, see)
    }
}

/// What a disk does at a step.
struct Traffic {
    reads_per_s: f64,
    /// Reads under way, on average.
    under_way: f64,
    /// The share of the time with any.
    busy: f64,
}

impl Traffic {
    /// That of so many who ask for one read after the other, each for this share of the time.
    fn of(reads_per_s: f64, readers: f64, share: f64) -> Self {
        Self { reads_per_s, under_way: readers * share, busy: 1.0 - (1.0 - share).powf(readers) }
    }

    /// Each read brings what a tier reads for a request in the lab.
    fn count(&self, observed: &mut Observed) {
        for sample in &mut observed.counters {
            let count = |per_s: f64| (per_s * sample.at_us as f64 / 1e6) as u64;
            let disk = Disk {
                name: "vda".to_owned(),
                reads: count(self.reads_per_s),
                read_bytes: count(1e5 * self.reads_per_s),
                read_us: count(1e6 * self.under_way),
                busy_us: count(1e6 * self.busy),
                weighted_us: count(1e6 * self.under_way),
                ..Disk::default()
            };
            sample.disks = vec![disk];
        }
    }
}

/// A disk that a neighbour keeps busy, whatever the load.
fn neighbours_disk(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = Workers::any(random);
    let under_way = log_uniform(random, 1.0, 8.0);
    let reads_per_s = log_uniform(random, 50.0, 5_000.0);
    let traffic = Traffic { reads_per_s, under_way, busy: 0.9 + 0.1 * random.f64() };
    (workers.truth("app"), workers.verdict(idle(), random, |observed| traffic.count(observed)))
}

/// A disk that serves all workers side by side, and is often or always busy. Of two workers too few reads are under way for that to
/// be seen.
fn disk_of_all_workers(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = Workers::several(3, random);
    let share = 0.3 + 0.7 * random.f64();
    let app = server("app").demand_us(20.0).threads(workers.number).disk_share(1.0).state(ThreadState::Disk);
    let see = |observed: &mut Observed| {
        Traffic::of(observed.step.throughput_per_s, workers.served(observed), share).count(observed);
    };
    (workers.truth("app"), workers.verdict(sweep().tier(app), random, see))
}

/// A disk of several channels that are all in use: each user more waits in front of it.
fn full_disk(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let channels = Workers::any(random);
    let app = server("app").demand_us(20.0).disk_share(1.0).state(ThreadState::Disk).thread_per_user();
    let see = |observed: &mut Observed| {
        let users = f64::from(observed.step.users);
        let share = 1.0 - channels.beside(observed) / users.max(1.0);
        Traffic::of(observed.step.throughput_per_s, users, share.clamp(0.0, 1.0)).count(observed);
    };
    (truth(ResourceKind::Disk, ""), channels.verdict(sweep().tier(app), random, see))
}

/// A neighbour that swaps, while the server needs no page from a disk.
fn swapping_neighbour(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = Workers::any(random);
    (workers.truth("app"), workers.verdict(idle().swapping(), random, |_| {}))
}

/// A thread of another process of the server that polls.
fn full_side_thread(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = Workers::any(random);
    let aside = server("sidecar").polling();
    let aside = if random.bool() { aside.cpus(&[2]) } else { aside };
    (workers.truth("app"), workers.verdict(idle().tier(aside), random, |_| {}))
}

/// A collector that runs beside the workers, and keeps its one thread busy.
fn collector_beside(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = Workers::any(random);
    let demand_us = workers.demand_us(0.9 + 0.1 * random.f64());
    let java = server("java").demand_us(demand_us).thread_names(&["G1 Conc#0"]);
    (workers.truth("java"), workers.verdict(sweep().tier(java), random, |_| {}))
}

/// A processor that is full by its busy share, and has time to spare while users wait at a lock or a semaphore, as their threads
/// show.
fn nearly_full_processor(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = Workers::any(random);
    let app = server("app").state(ThreadState::Futex).thread_per_user().cpus(&[0]);
    let app = app.demand_us(workers.demand_us(0.9 + 0.02 * random.f64()));
    (workers.truth("app"), workers.verdict(sweep().tier(app), random, |_| {}))
}

/// Has every look at the connections of a step see what `hops` makes of it. Of numbers that are not whole the looks are right on
/// average.
fn looked(observed: &mut Observed, hops: impl Fn(&dyn Fn(f64) -> u32) -> Vec<Hop>) {
    for (number, sample) in observed.counters.iter_mut().enumerate() {
        let spread = (number as f64 * 0.618_034).fract();
        sample.hops = Some(hops(&|mean: f64| (mean + spread).max(0.0) as u32));
    }
}

/// An idle proxy in front of them.
fn behind_a_proxy(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = Workers::any(random);
    let proxy = server("nginx").demand_us(20.0).threads(8);
    let lab = sweep().tier(proxy).tier(server("app").downstream().demand_us(20.0).threads(8));
    let see = |observed: &mut Observed| {
        let (users, beside) = (observed.step.users, workers.beside(observed));
        looked(observed, |some| {
            vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users, some(f64::from(users) - beside))]
        });
    };
    (workers.truth("app"), workers.verdict(lab, random, see))
}

/// They call a tier that has room, each over a connection of its own, for some or all of their time. It may be quite busy.
fn before_a_tier_with_room(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = Workers::any(random);
    let busy = 0.3 + 0.57 * random.f64();
    let share = random.f64().max(busy / f64::from(workers.number));
    let back = server("back").downstream().demand_us(workers.demand_us(busy)).cpus(&[1]);
    let lab = sweep().tier(server("app").demand_us(20.0).threads(8)).tier(back);
    let reads_all = random.bool();
    let see = |observed: &mut Observed| {
        let (users, served) = (observed.step.users, workers.served(observed));
        looked(observed, |some| {
            let at_work = some(served).min(users);
            let unread = if reads_all { 0 } else { users - at_work };
            let front = Hop { unread: unread.into(), held: (users - unread).into(), ..users_hop(users) };
            vec![front, hop(Some(BEHIND), &[FRONT], users.min(workers.number), some(share * served))]
        });
    };
    (workers.truth("app"), workers.verdict(lab, random, see))
}

/// Sessions of a database, of which each request takes one.
fn too_few_connections(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let sessions = Workers::several(2, random);
    let database = server("postgres").downstream().demand_us(20.0).threads(8);
    let lab = sweep().tier(server("app").demand_us(20.0).threads(8)).tier(database);
    let see = |observed: &mut Observed| {
        let (users, served) = (observed.step.users, sessions.served(observed));
        looked(observed, |some| {
            vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users.min(sessions.number), some(served))]
        });
    };
    (truth(ResourceKind::ConnectionPool, "app"), sessions.verdict(lab, random, see))
}

/// A processor full of the kernel's work on packets.
fn soft_interrupts(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let demand_us = log_uniform(random, 20.0, 400.0);
    let nginx = server("nginx").demand_us(0.4 * demand_us).threads(2).processes(2).cpus(&[1, 2]);
    let lab = sweep().tier(nginx).delay_us(log_uniform(random, 20.0, 1_000.0)).noise(random.u64(..));
    let lab = lab.softirqs(Softirqs { cpu: 0, demand_us, background: 0.0 });
    (truth(ResourceKind::Softirq, ""), lab.conclude())
}

/// A cgroup that evicts what its processes read again from a disk.
fn little_memory(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let files = server("files").demand_us(50.0).threads(4).disk_share(1.0);
    let files = files.state(ThreadState::Disk).thread_per_user();
    let disk = Platter { demand_us: log_uniform(random, 500.0, 5_000.0), ..Platter::default() };
    let memory = LittleMemory { again: 0.6 + 0.4 * random.f64(), background: 0.0, stalled: Some(0.9) };
    let lab = sweep().tier(files).delay_us(log_uniform(random, 20.0, 500.0)).noise(random.u64(..));
    (truth(ResourceKind::Memory, "files"), lab.disk(disk).memory(memory).conclude())
}

/// A collector that stops all other threads.
fn stopped_by_a_collector(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let java = server("java").demand_us(700.0 + 200.0 * random.f64()).threads(2);
    let java = java.thread_names(&["GC Thread#0", "http-1"]);
    let lab = sweep().tier(java).noise(random.u64(..)).pool(1, 1_000.0);
    let share = 0.22 + 0.38 * random.f64();
    let paused = |observed: &Observed| {
        let mut step = observed.step_with_usage();
        step.measurement.pauses = Pauses { share, count: 12, longest_us: 180_000 };
        step
    };
    let steps: Vec<Step> = lab.observed().iter().map(paused).collect();
    (truth(ResourceKind::GarbageCollection, "java"), conclude_steps(steps, &lab.context))
}

/// The verdict on a server that serves so many requests at a time at most, each for so long, and rejects what exceeds that as too
/// many.
fn rejecting(most: f64, service_us: f64, random: &mut fastrand::Rng) -> Conclusion {
    let lab = idle();
    let observe = |(index, users): (u64, u32)| {
        let served = f64::from(users).min(most) * (1.0 + 0.05 * (2.0 * random.f64() - 1.0));
        let mut observed = lab.step(index, users, served / service_us * 1e6, 1.0);
        let step = &mut observed.step;
        let x = step.throughput_per_s;
        step.throughput_ci_per_s = Some([0.95 * x, 1.05 * x]);
        step.response_time_us.mean = service_us;
        step.response_time_us.mean_ci = Some([0.99 * service_us, 1.01 * service_us]);
        if f64::from(users) > most {
            step.errors = [(ErrorKind::Status, 20_000)].into();
            step.measurement.unexpected_statuses = [(429, 20_000)].into();
        }
        observed
    };
    let observed: Vec<Observed> = (0..).zip([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64]).map(observe).collect();
    conclude(&observed, &Context { rest: lab.rest(), ..lab.context.clone() })
}

/// A limit on the rate.
fn rejected_beyond_a_rate(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let served = log_uniform(random, 0.2, 20.0);
    let service_us = log_uniform(random, 1_000.0, 50_000.0);
    (truth(ResourceKind::RateLimit, "app"), rejecting(served, service_us, random))
}

/// A limit on how many are served at a time.
fn rejected_beyond_a_number(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    let workers = random.u32(1..30);
    let service_us = log_uniform(random, 1_000.0, 50_000.0);
    let kind = if workers == 1 { ResourceKind::Lock } else { ResourceKind::WorkerPool };
    (truth(kind, "app"), rejecting(workers.into(), service_us, random))
}

type Make = fn(&mut fastrand::Rng) -> (Truth, Conclusion);

/// The kinds of servers, and of how many of each the verdict is sure at least.
const KINDS: [(&str, Make, u32); 15] = [
    ("a neighbour's disk", neighbours_disk, 9),
    ("a disk of all workers", disk_of_all_workers, 0),
    ("a full disk", full_disk, 30),
    ("a swapping neighbour", swapping_neighbour, 11),
    ("a full side thread", full_side_thread, 0),
    ("a collector beside", collector_beside, 0),
    ("a nearly full processor", nearly_full_processor, 14),
    ("behind a proxy", behind_a_proxy, 5),
    ("before a tier with room", before_a_tier_with_room, 9),
    ("too few connections", too_few_connections, 30),
    ("soft interrupts", soft_interrupts, 28),
    ("little memory", little_memory, 30),
    ("stopped by a collector", stopped_by_a_collector, 30),
    ("rejected beyond a rate", rejected_beyond_a_rate, 19),
    ("rejected beyond a number", rejected_beyond_a_number, 0),
];

/// Servers of each kind.
const EACH: u64 = 40;

#[test]
fn what_else_is_to_be_seen_misleads_no_verdict_that_is_sure() {
    let (mut sure, mut surely_wrong) = (0, 0);
    let mut misled = Vec::new();
    for (kind, (name, make, least)) in (0..).zip(KINDS) {
        let mut tally = Tally::default();
        for number in 0..EACH {
            let seed = EACH * kind + number;
            let (truth, found) = make(&mut fastrand::Rng::with_seed(seed));
            tally.add(seed, &truth, &found);
        }
        println!("{name}: {} of {} wrong", tally.surely_wrong(), tally.sure());
        tally.print();
        if tally.sure() < least || 20 * tally.surely_wrong() > tally.sure().max(20) {
            misled.push(name);
        }
        sure += tally.sure();
        surely_wrong += tally.surely_wrong();
    }
    println!("{surely_wrong} of {sure} wrong, of {}", EACH as usize * KINDS.len());
    assert!(misled.is_empty(), "too few that are sure, or too many of them wrong: {misled:?}");
    assert!(100 * surely_wrong <= sure, "{surely_wrong} of {sure}");
}
