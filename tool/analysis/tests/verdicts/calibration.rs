//! Whether verdicts are right as often as they say: servers of every kind, with random sizes and delays.
//!
//! Whatever users wait for while nothing is busy is simulated in virtual time; servers with something busy come from mean
//! value analysis with noise. How often each kind comes up is what the method takes for granted, so the test holds the
//! likelihoods against servers, and not the priors against the world. Servers of which more is to be seen than what stops
//! them are those of [`decoys`](super::decoys).

use analysis::conclude::Conclusion;
use analysis::counters::{ProcessLook, ThreadLook, ThreadState};
use analysis::run::{Identity, ResourceKind};

use super::hops::{FRONT, hop, users_hop};
use super::lab::{Lab, Link, Observed, Platter, conclude, server, sweep};
use super::queue::{Gate, System, Varies};

/// What is true of a server.
pub(super) struct Truth {
    kind: ResourceKind,
    holder: &'static str,
}

pub(super) fn truth(kind: ResourceKind, holder: &'static str) -> Truth {
    Truth { kind, holder }
}

pub(super) fn log_uniform(random: &mut fastrand::Rng, low: f64, high: f64) -> f64 {
    (low.ln() + (high / low).ln() * random.f64()).exp()
}

pub(super) fn exponential(random: &mut fastrand::Rng, mean: f64) -> f64 {
    -mean * (1.0 - random.f64()).ln()
}

/// A server of which something is busy.
fn busy(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    use ResourceKind::{Cpu, CpuQuota, Disk, Network, SingleThread};
    let demand_us = log_uniform(random, 20.0, 400.0);
    let lab = sweep().delay_us(log_uniform(random, 20.0, 2_000.0)).noise(random.u64(..));
    let small = || server("front").demand_us(0.1 * demand_us).threads(4);
    let (truth, lab) = match random.u32(0..9) {
        0 => (truth(Cpu, "app"), lab.tier(server("app").demand_us(demand_us).cpus(&[0]))),
        1 => (truth(SingleThread, "app"), lab.tier(server("app").demand_us(demand_us))),
        2 => (truth(Cpu, "app"), lab.tier(server("app").demand_us(demand_us).threads(random.u32(3..9)))),
        3 => {
            let cores = log_uniform(random, 0.3, 2.0);
            (
                truth(CpuQuota, "app"),
                lab.tier(server("app").demand_us(demand_us).threads(4).quota(cores, "/app")),
            )
        }
        4 => (truth(SingleThread, "app"), lab.tier(server("app").demand_us(demand_us).taking_turns(8))),
        5 => {
            let disk = Platter { demand_us: 20.0 * demand_us, ..Platter::default() };
            (truth(Disk, ""), lab.tier(server("app").demand_us(20.0).threads(4).disk_share(1.0)).disk(disk))
        }
        6 => {
            let link = Link {
                name: "eth0",
                bits_per_request: 4e5,
                speed: Some(1_000_000_000),
                real: true,
                ..Link::default()
            };
            (truth(Network, ""), lab.tier(server("app").demand_us(20.0).threads(4)).link(link))
        }
        7 => {
            let behind = server("db").downstream().demand_us(demand_us).cpus(&[1]);
            (truth(Cpu, "db"), lab.tier(small()).tier(behind))
        }
        _ => {
            let ratio = (0.2 * (random.f64() - 0.5)).exp();
            let front = server("front").demand_us(demand_us).cpus(&[0]);
            let behind = server("db").downstream().demand_us(demand_us * ratio).cpus(&[1]);
            (truth(Cpu, if ratio > 1.0 { "db" } else { "front" }), lab.tier(front).tier(behind))
        }
    };
    (truth, lab.conclude())
}

/// A server of which nothing is busy.
fn waits(random: &mut fastrand::Rng) -> (Truth, Conclusion) {
    use ResourceKind::{AcceptQueue, Lock, RateLimit, Unknown, Upstream, WorkerPool};
    let varies = [Varies::Never, Varies::Never, Varies::Somewhat, Varies::Exponentially][random.usize(0..4)];
    let hold_us = log_uniform(random, 1_000.0, 50_000.0);
    let beside_one = |random: &mut fastrand::Rng| match random.u32(0..4) {
        0 => (exponential(random, 3.0) % 5.0).exp() - 1.0,
        _ => exponential(random, 0.03),
    };
    let one = |random: &mut fastrand::Rng| System {
        gate: Gate::Servers(1, hold_us),
        beside_us: hold_us * beside_one(random),
        varies,
    };
    match random.u32(0..50) {
        0..20 => {
            let system = one(random);
            // Half of the programs show their waiting threads, and one in a hundred tries again after a pause.
            let state = if random.bool() { ThreadState::Futex } else { ThreadState::Sleeping };
            let app = server("app").demand_us(20.0).threads(8).state(state).thread_per_user();
            let tries_again = random.u32(0..100) == 0;
            let see = |observed: &mut Observed| {
                if tries_again {
                    all_asleep(observed);
                }
            };
            (truth(Lock, "app"), measured(&sweep().tier(app), system, random, see))
        }
        20..40 => {
            let workers = log_uniform(random, 1.5, 200.0).round().max(2.0);
            let mean = if random.u32(0..5) < 3 { 0.015 } else { 0.5 };
            let beside_us = hold_us * (exponential(random, mean).exp() - 1.0);
            let system = System { gate: Gate::Servers(workers as u32, hold_us), beside_us, varies };
            (truth(WorkerPool, "app"), measured(&idle(), system, random, |_| {}))
        }
        40..43 => {
            let beside_us = hold_us * log_uniform(random, 0.01, 30.0);
            let system = System { gate: Gate::Rate(hold_us), beside_us, varies };
            let threads_sleep = random.u32(0..5) == 0;
            let see = |observed: &mut Observed| {
                if threads_sleep {
                    all_asleep(observed);
                }
            };
            (truth(RateLimit, "app"), measured(&idle(), system, random, see))
        }
        43 => {
            let system = one(random);
            (
                truth(AcceptQueue, ""),
                measured(&idle().listen_queue(40.0, 128).room_for(1), system, random, |_| {}),
            )
        }
        44 => {
            let system = one(random);
            let at_the_upstream = |observed: &mut Observed| {
                let users = observed.step.users;
                let hops = vec![users_hop(users), hop(None, &[FRONT], users, users)];
                observed.counters.iter_mut().for_each(|sample| sample.hops = Some(hops.clone()));
            };
            (truth(Upstream, ""), measured(&idle(), system, random, at_the_upstream))
        }
        // A device that nobody sees.
        _ => {
            let system = one(random);
            (truth(Unknown, ""), measured(&idle(), system, random, |_| {}))
        }
    }
}

/// Closer looks found a thread asleep for each user.
pub(super) fn all_asleep(observed: &mut Observed) {
    asleep(observed, observed.step.users);
}

/// Closer looks found so many threads asleep, now and then one more.
pub(super) fn asleep(observed: &mut Observed, threads: u32) {
    let start_us = observed.step.measurement.window.0;
    let look = |number: u32| {
        let asleep = threads + u32::from(number.is_multiple_of(3));
        let seen = ProcessLook {
            name: "app".into(),
            threads: 200,
            looked_at: 200,
            asleep,
            ..ProcessLook::default()
        };
        ThreadLook { at_us: start_us + u64::from(number) * 40_000, processes: vec![seen] }
    };
    observed.looks = (0..50).map(look).collect();
}

pub(super) fn idle() -> Lab {
    sweep().tier(server("app").demand_us(20.0).threads(8))
}

/// The verdict on a system as simulated, of whose resources a lab knows.
pub(super) fn measured(
    lab: &Lab,
    system: System,
    random: &mut fastrand::Rng,
    see: impl Fn(&mut Observed),
) -> Conclusion {
    let mut steps: Vec<Observed> = Vec::new();
    let mut users = 1;
    let mut most = 0.0f64;
    loop {
        let ((rate, rate_ci), (time, time_ci)) = system.measure(users, random);
        let mut observed = lab.step(steps.len() as u64, users, rate, 1.0);
        observed.step.throughput_per_s = rate;
        observed.step.throughput_ci_per_s = Some(rate_ci);
        observed.step.measurement.batches = 20;
        observed.step.response_time_us.mean = time;
        observed.step.response_time_us.mean_ci = Some(time_ci);
        see(&mut observed);
        steps.push(observed);
        let grows = rate > 1.03 * most;
        most = most.max(rate);
        let level = steps.iter().filter(|one| one.step.throughput_per_s > 0.97 * most).count();
        if (!grows && level >= 3 && users >= 16) || users >= 1_024 {
            break;
        }
        users *= 2;
    }
    conclude(&steps, &lab.context)
}

/// Verdicts said with a probability in a range.
#[derive(Default)]
struct Bin {
    said: u32,
    right: u32,
    expected: f64,
}

/// A verdict that is wrong: the number of the server, what is true of it, what was said, and how probable that was said to be.
type Wrong = (u64, ResourceKind, &'static str, ResourceKind, String, f64);

const BINS: [f64; 5] = [0.6, 0.8, 0.9, 0.95, 1.01];

/// Verdicts on servers of which it is known what stops them.
#[derive(Default)]
pub(super) struct Tally {
    bins: [Bin; 4],
    silent: u32,
    wrong: Vec<Wrong>,
}

impl Tally {
    /// Counts a verdict on the server of this number.
    pub(super) fn add(&mut self, number: u64, truth: &Truth, found: &Conclusion) {
        let said = &found.verdict.bottleneck;
        if !found.verdict.is_conclusive() || matches!(said.kind, ResourceKind::Unknown | ResourceKind::None) {
            self.silent += 1;
            return;
        }
        let share = said.confidence.share();
        let bin = BINS.windows(2).position(|ends| ends[0] <= share && share < ends[1]);
        let bin = &mut self.bins[bin.expect("a verdict that is said is at least 60 % sure")];
        let name = said.identity.as_ref().and_then(Identity::processes).map_or("", |of| of.name.as_str());
        let right = said.kind == truth.kind && (truth.holder.is_empty() || name == truth.holder);
        bin.said += 1;
        bin.right += u32::from(right);
        bin.expected += share;
        if !right {
            self.wrong.push((number, truth.kind, truth.holder, said.kind, said.holder.to_string(), share));
        }
    }

    /// How many were said with 80 % or more.
    pub(super) fn sure(&self) -> u32 {
        self.bins[1..].iter().map(|bin| bin.said).sum()
    }

    /// How many of those were wrong.
    pub(super) fn surely_wrong(&self) -> u32 {
        self.wrong.iter().filter(|one| one.5 >= BINS[1]).count() as u32
    }

    /// Shown with a test that fails.
    pub(super) fn print(&self) {
        for (bin, ends) in self.bins.iter().zip(BINS.windows(2)) {
            println!(
                "{:.2}..{:.2}: right {} of {}, expected {:.1}",
                ends[0], ends[1], bin.right, bin.said, bin.expected
            );
        }
        println!("silent {}, wrong {}", self.silent, self.wrong.len());
        self.wrong.iter().for_each(|one| println!("{one:?}"));
    }
}

const SERVERS: u64 = 900;

#[test]
fn verdicts_are_right_as_often_as_they_say() {
    let mut tally = Tally::default();
    for seed in 0..SERVERS {
        let mut random = fastrand::Rng::with_seed(seed);
        let (truth, found) = if seed % 3 == 0 { waits(&mut random) } else { busy(&mut random) };
        tally.add(seed, &truth, &found);
    }
    tally.print();
    for bin in &tally.bins {
        let noise = 2.0 * (bin.expected * (1.0 - bin.expected / f64::from(bin.said.max(1)))).sqrt();
        assert!(f64::from(bin.right) >= bin.expected - noise, "right {} of {}", bin.right, bin.said);
    }
    let (sure, surely_wrong) = (tally.sure(), tally.surely_wrong());
    assert!(100 * surely_wrong <= sure, "{surely_wrong} of {sure}");
    assert!(2 * sure >= SERVERS as u32, "only {sure} of {SERVERS}");
}
