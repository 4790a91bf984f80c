//! The experiments that tell one explanation from another, on simulated servers of either kind.

use analysis::tell_apart::{Pair, Plan, Side, Trial};

/// A server that takes a request `delay_us` before it queues for one of `servers`, each of which keeps it for `hold_us`.
#[derive(Debug, Clone, Copy)]
struct Server {
    delay_us: f64,
    servers: usize,
    hold_us: f64,
    /// Whether the hold is exponential, not constant.
    random: bool,
    /// Standard deviation of what else is in a response time, microseconds.
    noise_us: f64,
}

impl Server {
    fn alone_us(self) -> f64 {
        self.delay_us + self.hold_us
    }

    fn at_a_time(self) -> f64 {
        self.servers as f64 * self.alone_us() / self.hold_us
    }

    fn plan(self, processor_us: f64) -> Plan {
        let times_us = [self.alone_us(), self.hold_us / self.servers as f64, processor_us];
        Plan::new(self.at_a_time(), times_us).expect("more than one at a time")
    }

    /// The mean response time of so many users, from `requests` of each.
    fn mean_us(self, users: u32, think_us: f64, requests: usize, random: &mut fastrand::Rng) -> f64 {
        let exponential = |mean: f64, random: &mut fastrand::Rng| -mean * (1.0 - random.f64()).ln();
        let mut arrives: Vec<f64> =
            (0..users).map(|_| exponential(think_us, random) + self.delay_us).collect();
        let mut free = vec![0.0_f64; self.servers];
        let (mut sum, count) = (0.0, users as usize * requests);
        for _ in 0..count {
            let next = earliest(&arrives);
            let server = earliest(&free);
            let hold = if self.random { exponential(self.hold_us, random) } else { self.hold_us };
            let ends = arrives[next].max(free[server]) + hold;
            sum +=
                ends - arrives[next] + self.delay_us + self.noise_us * (random.f64() - 0.5) * 12_f64.sqrt();
            free[server] = ends;
            arrives[next] = ends + exponential(think_us, random) + self.delay_us;
        }
        sum / count as f64
    }

    /// The experiment until it is decided, of as many pairs as a sweep makes at most.
    fn tried(self, processor_us: f64, seed: u64) -> Trial {
        let (plan, mut random) = (self.plan(processor_us), fastrand::Rng::with_seed(seed));
        let mut trial = Trial { plan, pairs: Vec::new() };
        while trial.pairs.len() < 12 && !trial.is_decided() {
            let mut mean_us = |Side { users, think_us }| self.mean_us(users, think_us, 8, &mut random);
            let [first_us, second_us] = plan.sides().map(&mut mean_us);
            trial.pairs.push(Pair { first_us, second_us });
        }
        trial
    }
}

fn earliest(times: &[f64]) -> usize {
    (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0)
}

/// Of so many servers, how often one at a time was said, and how often several.
fn said(server: Server, processor_us: f64) -> [usize; 2] {
    let told = (0..200).filter_map(|seed| server.tried(processor_us, seed).result()?.told());
    let (one, several): (Vec<bool>, Vec<bool>) = told.partition(|one| *one);
    [one.len(), several.len()]
}

const LOCK: Server =
    Server { delay_us: 25_000.0, servers: 1, hold_us: 20_000.0, random: false, noise_us: 100.0 };

#[test]
fn a_lock_behind_a_delay_makes_users_at_random_wait() {
    for delay_us in [25_000.0, 60_000.0] {
        let [one, several] = said(Server { delay_us, ..LOCK }, 0.0);
        assert!(one >= 150 && several <= 4, "delay {delay_us}: {one} locks, {several} pools");
        // Exponential times scatter by as much as they last, so that fewer are told.
        let [one, several] = said(Server { delay_us, random: true, ..LOCK }, 0.0);
        assert!(one >= 30 && several <= 4, "delay {delay_us}, exponential: {one} locks, {several} pools");
    }
}

#[test]
fn a_pool_keeps_nobody_waiting_while_it_has_workers_for_all() {
    for servers in [2, 3, 4, 8, 20] {
        let pool = Server { delay_us: 500.0, servers, ..LOCK };
        for random in [false, true] {
            let [one, several] = said(Server { random, ..pool }, 0.0);
            assert!(one <= 10, "{servers} workers, random {random}: {one} locks, {several} pools");
            // A wait of a hundredth of exponential times drowns in their scatter.
            assert!(random || several >= 190, "{servers} workers: {one} locks, {several} pools");
        }
    }
}

#[test]
fn waits_for_a_processor_are_granted_to_both() {
    let busy = LOCK.tried(15_000.0, 1).plan;
    let longer = |wait_us: f64| {
        let pair = |number: u32| Pair {
            first_us: 45_000.0,
            second_us: 45_000.0 + wait_us + f64::from(number) * 20.0,
        };
        Trial { plan: busy, pairs: (0..8).map(pair).collect() }.result().expect("enough pairs")
    };
    assert_eq!(longer(3_000.0).told(), None, "both may add 3 ms: {:?}", longer(3_000.0));
    assert_eq!(longer(6_000.0).told(), Some(true));
}

#[test]
fn what_would_not_be_decided_in_the_end_is_not_gone_on_with() {
    let plan = LOCK.tried(15_000.0, 1).plan;
    let made = |wait_us: f64, pairs: u32| {
        let pair = |number: u32| Pair {
            first_us: 45_000.0,
            second_us: 45_000.0 + wait_us + f64::from(number) * 20.0,
        };
        Trial { plan, pairs: (0..pairs).map(pair).collect() }
    };
    assert!(made(3_000.0, 8).is_futile(12), "both may add 3 ms: {:?}", made(3_000.0, 8).result());
    assert!(!made(3_000.0, 5).is_futile(12), "too few to judge by");
    assert!(!made(6_000.0, 8).is_futile(12), "it tells: {:?}", made(6_000.0, 8).result());
    assert!(!made(3_000.0, 8).is_futile(1_000), "in the end even a little adds up");
}

#[test]
fn too_few_pairs_say_nothing() {
    let mut trial = LOCK.tried(0.0, 1);
    trial.pairs.truncate(3);
    assert_eq!(trial.result(), None);
    assert!(!trial.is_decided());
}

#[test]
fn a_pause_saves_time_at_a_limit_on_the_rate_and_none_at_a_lock() {
    let plan = Plan::new(1.05, [20_500.0, 20_000.0, 0.0]).expect("a lock, or a limit on the rate");
    assert_eq!(plan.sides(), [Side { users: 1, think_us: 0.0 }, Side { users: 1, think_us: 10_250.0 }]);
    let told = |saved_us: f64| {
        let pair = |number: u32| Pair {
            first_us: 20_500.0,
            second_us: 20_500.0 - saved_us + f64::from(number % 3) * 300.0,
        };
        Trial { plan, pairs: (0..6).map(pair).collect() }.result().expect("enough pairs").told()
    };
    assert_eq!(told(8_500.0), Some(true), "a pause makes up for most of it");
    assert_eq!(told(19_000.0), Some(true), "a limit that saves up");
    assert_eq!(told(300.0), Some(false), "a lock");
}

/// Python's own server ends a thread and closes a connection for each request once it has answered.
#[test]
fn work_after_an_answer_is_no_limit_on_the_rate() {
    let told = |processor_us: f64, saved_us: f64| {
        let plan = Plan::new(1.05, [560.0, 540.0, processor_us]).expect("a lock, or a limit on the rate");
        let pair = |number: u32| Pair {
            first_us: 560.0,
            second_us: 560.0 - saved_us + f64::from(number % 3) * 10.0,
        };
        Trial { plan, pairs: (0..6).map(pair).collect() }.result().expect("enough pairs").told()
    };
    assert_eq!(told(400.0, 95.0), Some(false), "a request costs enough processor time to explain it");
    assert_eq!(told(400.0, 10.0), Some(false), "a lock that saves next to nothing");
    assert_eq!(told(10.0, 220.0), Some(true), "hardly any processor time");
}

#[test]
fn what_is_no_number_plans_nothing() {
    assert_eq!(Plan::new(f64::NAN, [1.0, 1.0, 0.0]), None);
    assert_eq!(Plan::new(4.0, [1.0, 0.0, 0.0]), None);
    let plan = Plan::new(3.98, [40_000.0, 10_000.0, 0.0]).expect("a pool of four, or a lock");
    assert_eq!((plan.users, plan.think_us), (4, 20_000.0));
}
