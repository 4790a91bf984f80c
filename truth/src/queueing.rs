//! The throughput that a server of known parts must have for a given number of users, and the N* that follows.
//!
//! Two kinds of closed networks have exact answers that need no measuring:
//!
//! - *Constant times.* The network is a timed event graph, and its throughput is the least ratio of tokens to time over all
//!   its circuits (Baccelli, Cohen, Olsder and Quadrat 1992, section 2.5): N users over the sum of all times, or k
//!   servers over the time that each is held.
//! - *Exponential times* at every queue, any distribution where nobody waits: exact mean value analysis with
//!   load-dependent stations (Reiser and Lavenberg 1980).
//!
//! Where a tier has requests of two kinds, its times are the means of both. With constant times that is exact if a request
//! spends all of its time at one queue: then X = min(N, k) / mean, whatever the mix.
//!
//! A single queue whose hold depends on who waits, or on the number of the request, is followed request by request.

use std::{collections::VecDeque, time::Duration};

use crate::{
    stage::Stage,
    tier::{Heavy, Surroundings, Tier},
};

/// The share of the maximum throughput that N* reaches, as nstar defines it.
const SATURATED: f64 = 0.95;

/// The most users that N* is looked for among.
const USERS_MAX: u32 = 4_096;

/// Requests after which a followed queue has forgotten its start, and those that are then counted for each user.
const FORGOTTEN: usize = 2_000;
const COUNTED: usize = 10_000;

/// Bytes that TCP, IP and Ethernet add to each segment, and what a segment of Ethernet then carries.
const HEADERS: f64 = 66.0;
const SEGMENT: f64 = 1_448.0;
/// Bytes of the header of a response of the suite's own server.
const RESPONSE_HEADER: f64 = 42.0;

/// A place where requests queue.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Queue {
    /// How many it serves at a time; below one for a quota.
    servers: f64,
    /// How long it serves each, seconds.
    time: f64,
}

/// A closed network with an exact answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Network {
    /// Constant times.
    Constant {
        /// Sum of all times of a request that waits nowhere, seconds.
        total: f64,
        /// Throughput that each circuit of servers allows, requests a second; empty where there is no queue.
        limits: Vec<f64>,
    },
    /// Exponential times.
    Exponential {
        /// Time in stages where nobody waits, seconds.
        delay: f64,
        /// Queues: servers, and mean time of each, seconds.
        queues: Vec<(u32, f64)>,
    },
    /// One queue with one server.
    Serial {
        /// Time before the queue, seconds.
        delay: f64,
        /// Time of service while nobody waits, seconds.
        hold: f64,
        /// Growth of that for each request that waits, as a share.
        growth: f64,
        /// Time added to each n-th request, seconds, and n.
        pause: Option<(f64, u32)>,
    },
}

impl Network {
    /// The network that tiers make, the front first.
    ///
    /// # Errors
    /// Where it has no exact answer.
    pub fn of(tiers: &[Tier], processors: u32) -> Result<Self, String> {
        let stages: Vec<_> = tiers.iter().flat_map(|tier| &tier.stages).collect();
        let follows = |stage: &Stage| {
            matches!(stage, Stage::Lock { growth, .. } if *growth > 0.0)
                || matches!(stage, Stage::Collect { .. })
        };
        let is_exponential = |stage: &Stage| match stage {
            Stage::Pool { hold, .. } | Stage::Lock { hold, .. } => hold.exponential,
            _ => false,
        };
        let is_followed = stages.iter().any(|stage| follows(stage));
        let is_random = stages.iter().any(|stage| is_exponential(stage));
        let is_mixed = tiers.iter().any(|tier| tier.surroundings.heavy.is_some());
        match (is_followed, is_random) {
            (false, false) => Ok(constant(tiers, processors)),
            _ if is_mixed => Err("two kinds of request have an exact answer only with constant times".into()),
            (true, _) => serial(&stages),
            (false, true) => exponential(&stages),
        }
    }

    /// Requests a second of this many users.
    pub fn throughput(&self, users: u32) -> f64 {
        match self {
            Self::Constant { total, limits } => {
                limits.iter().copied().fold(f64::from(users) / total, f64::min)
            }
            Self::Exponential { delay, queues } => mean_values(*delay, queues, users),
            Self::Serial { delay, hold, growth, pause } => {
                followed(*delay, *hold, *growth, *pause, users as usize)
            }
        }
    }

    /// The maximum throughput, requests a second, and N*; `None` where there is no limit.
    pub fn saturation(&self) -> Option<(f64, u32)> {
        let maximum = match self {
            Self::Constant { limits, .. } => limits.iter().copied().reduce(f64::min)?,
            Self::Exponential { queues, .. } => {
                queues.iter().map(|(servers, time)| f64::from(*servers) / time).reduce(f64::min)?
            }
            // It may fall with more users: the maximum is near where the queue begins.
            Self::Serial { delay, hold, .. } => {
                let most = 2 * (delay / hold).ceil() as u32 + 20;
                (1..=most).map(|users| self.throughput(users)).fold(0.0, f64::max)
            }
        };
        (1..=USERS_MAX)
            .find(|users| self.throughput(*users) >= SATURATED * maximum * (1.0 - 1e-9))
            .map(|users| (maximum, users))
    }
}

fn constant(tiers: &[Tier], processors: u32) -> Network {
    let (mut total, mut limits) = (0.0, Vec::new());
    // From the back, so that a pool of connections knows how long each is used.
    for tier in tiers.iter().rev() {
        let around = &tier.surroundings;
        limits.extend(around.forward.map(|connections| f64::from(connections) / total));
        let (queues, delays) = parts(tier, processors);
        total += delays + queues.iter().map(|queue| queue.time).sum::<f64>();
        limits.extend(queues.iter().map(|queue| queue.servers / queue.time));
        limits.extend(paces(tier).map(|period| 1.0 / period.as_secs_f64()));
    }
    Network::Constant { total, limits }
}

/// The queues of a tier, and the time that requests spend without waiting, seconds.
fn parts(tier: &Tier, processors: u32) -> (Vec<Queue>, f64) {
    let around = &tier.surroundings;
    let (mut queues, mut delays) = (Vec::new(), around.statement.map_or(0.0, |time| time.as_secs_f64()));
    let mut queue = |servers, time: Duration| queues.push(Queue { servers, time: time.as_secs_f64() });
    let of_both = |time: Duration| time.mul_f64(around.heavy.map_or(1.0, Heavy::mean));
    for stage in &tier.stages {
        match *stage {
            Stage::Delay(time) => delays += of_both(time.mean).as_secs_f64(),
            Stage::Pool { workers, hold } => queue(f64::from(workers), of_both(hold.mean)),
            Stage::Lock { hold, .. } => queue(1.0, of_both(hold.mean)),
            Stage::Burn(time) => queue(cores(tier, processors), of_both(time)),
            Stage::BurnLocked(time) => queue(1.0, of_both(time)),
            Stage::Limit(_) | Stage::Collect { .. } => {}
        }
    }
    around.row.inspect(|time| queue(1.0, *time));
    around.link.inspect(|rate| queue(1.0, Duration::from_secs_f64(8.0 * wire_bytes(around) / rate)));
    (queues, delays)
}

/// The times between two requests that a tier lets through, however short it keeps each.
fn paces(tier: &Tier) -> impl Iterator<Item = Duration> {
    let limits = tier.stages.iter().filter_map(|stage| match stage {
        Stage::Limit(period) => Some(*period),
        _ => None,
    });
    limits.chain(tier.surroundings.accept)
}

/// How many requests may compute at a time.
fn cores(tier: &Tier, processors: u32) -> f64 {
    let around = &tier.surroundings;
    // Python computes in one thread at a time, Node in one thread.
    let one_at_a_time = around.cpu.is_some() || ["python", "node"].contains(&tier.stack.as_str());
    around.quota.unwrap_or(if one_at_a_time { 1.0 } else { f64::from(processors) })
}

/// Bytes of a response on the link.
fn wire_bytes(around: &Surroundings) -> f64 {
    let bytes = around.body as f64 + RESPONSE_HEADER;
    bytes + HEADERS * (bytes / SEGMENT).ceil()
}

fn exponential(stages: &[&Stage]) -> Result<Network, String> {
    let (mut delay, mut queues) = (0.0, Vec::new());
    for stage in stages {
        match stage {
            Stage::Delay(time) => delay += time.mean.as_secs_f64(),
            Stage::Pool { workers, hold } if hold.exponential => {
                queues.push((*workers, hold.mean.as_secs_f64()))
            }
            Stage::Lock { hold, .. } if hold.exponential => queues.push((1, hold.mean.as_secs_f64())),
            other => return Err(format!("beside exponential times, {other} has no exact answer")),
        }
    }
    Ok(Network::Exponential { delay, queues })
}

/// Exact mean value analysis, with stations of several servers.
fn mean_values(delay: f64, queues: &[(u32, f64)], users: u32) -> f64 {
    // Probability of j requests at each queue, with the users so far.
    let mut present = vec![vec![1.0]; queues.len()];
    let mut throughput = 0.0;
    for number in 1..=users {
        let rate = |servers: u32, j: u32| f64::from(j.min(servers));
        let time = |(&(servers, time), present): (&(u32, f64), &Vec<f64>)| -> f64 {
            (1..=number).map(|j| time * f64::from(j) / rate(servers, j) * present[j as usize - 1]).sum()
        };
        let response: f64 = queues.iter().zip(&present).map(time).sum();
        throughput = f64::from(number) / (delay + response);
        for (&(servers, time), present) in queues.iter().zip(&mut present) {
            let next = (1..=number).map(|j| throughput * time / rate(servers, j) * present[j as usize - 1]);
            let next: Vec<f64> = next.collect();
            *present = [(1.0 - next.iter().sum::<f64>()).max(0.0)].into_iter().chain(next).collect();
        }
    }
    throughput
}

fn serial(stages: &[&Stage]) -> Result<Network, String> {
    let (mut delay, mut hold, mut growth, mut pause) = (0.0, 0.0, 0.0, None);
    for (place, stage) in stages.iter().enumerate() {
        match stage {
            Stage::Delay(time) if hold == 0.0 && !time.exponential => delay += time.mean.as_secs_f64(),
            Stage::Lock { hold: time, growth: grows } if !time.exponential && hold == 0.0 => {
                (hold, growth) = (time.mean.as_secs_f64(), *grows);
            }
            Stage::Collect { pause: time, every } if place + 1 == stages.len() && growth == 0.0 => {
                pause = Some((time.as_secs_f64(), *every));
            }
            other => {
                return Err(format!(
                    "{other} here has no exact answer: delays, then a lock, then a collector"
                ));
            }
        }
    }
    // A collector after a lock stops both: requests that hold the lock wait for it.
    Ok(Network::Serial { delay, hold, growth, pause })
}

/// Follows a single queue, first come, first served: every request begins when it is there and the one before is done.
fn followed(delay: f64, hold: f64, growth: f64, pause: Option<(f64, u32)>, users: usize) -> f64 {
    let mut arrivals: VecDeque<f64> = vec![delay; users].into();
    let (mut free, mut counted_from) = (0.0, 0.0);
    for request in 0..FORGOTTEN + COUNTED {
        let Some(arrival) = arrivals.pop_front() else { return 0.0 };
        let begin = f64::max(free, arrival);
        let waiting = arrivals.partition_point(|arrival| *arrival <= begin);
        let collected =
            pause.filter(|(_, every)| (request + 1) % *every as usize == 0).map_or(0.0, |(pause, _)| pause);
        free = begin + hold * (1.0 + growth * waiting as f64) + collected;
        arrivals.push_back(free + delay);
        if request + 1 == FORGOTTEN {
            counted_from = free;
        }
    }
    COUNTED as f64 / (free - counted_from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(tiers: &[&str]) -> Network {
        let tiers: Vec<Tier> = tiers.iter().map(|tier| tier.parse().expect("a tier")).collect();
        Network::of(&tiers, 2).expect("an exact answer")
    }

    /// Throughput and N*.
    fn saturation(tiers: &[&str]) -> (f64, u32) {
        let (throughput, users) = network(tiers).saturation().expect("a limit");
        ((throughput * 100.0).round() / 100.0, users)
    }

    #[test]
    fn constant_times_follow_the_tightest_circuit() {
        assert_eq!(saturation(&["rust pool=4x20ms"]), (200.0, 4));
        assert_eq!(saturation(&["rust delay=40ms lock=20ms"]), (50.0, 3));
        assert_eq!(saturation(&["nginx", "python delay=40ms lock=10ms"]), (100.0, 5));
        // The rate limit takes no time of its own.
        assert_eq!(saturation(&["rust delay=50ms limit=10ms"]), (100.0, 5));
        // Four connections, each used for the 40 ms of the tier behind.
        assert_eq!(saturation(&["rust delay=10ms forward=4", "rust delay=40ms"]), (100.0, 5));
        assert_eq!(saturation(&["node burn=10ms"]), (100.0, 1));
        assert_eq!(saturation(&["rust burn=10ms"]), (200.0, 2));
        assert_eq!(saturation(&["rust burn=10ms quota=50%"]), (50.0, 1));
        // Three requests of 20 ms and one of 80: 35 ms each.
        assert_eq!(saturation(&["rust pool=4x20ms heavy=4/25%"]), (114.29, 4));
        assert!(network(&["rust delay=10ms"]).saturation().is_none());
    }

    #[test]
    fn a_link_carries_headers_too() {
        // 50 042 bytes in 35 segments: 52 352 bytes, 20.94 ms.
        assert_eq!(saturation(&["rust link=20mbit body=50000"]), (47.75, 1));
    }

    #[test]
    fn exponential_times_follow_the_machine_repairman() {
        // M/M/1//N with N users of 100 ms think time and 20 ms service: Erlang's loss formula, B(N, 5) = 1 - X s.
        let erlang = |users: i32| {
            let term = |n: i32| (1..=n).fold(1.0, |product, n| product * 5.0 / f64::from(n));
            let sum: f64 = (0..=users).map(term).sum();
            (1.0 - term(users) / sum) / 0.02
        };
        let network = network(&["rust delay=100ms lock=~20ms"]);
        for users in [1, 2, 5, 12] {
            let error = network.throughput(users) / erlang(users as i32) - 1.0;
            assert!(error.abs() < 1e-9, "{users} users: {error}");
        }
    }

    #[test]
    fn several_exponential_servers_agree_with_one_where_they_are_one() {
        let one = network(&["rust delay=30ms lock=~10ms"]);
        let pool = network(&["rust delay=30ms pool=1x~10ms"]);
        assert_eq!(one.throughput(7), pool.throughput(7));
        // With as many servers as users nobody waits.
        let error = network(&["rust delay=30ms pool=8x~10ms"]).throughput(8) / 200.0 - 1.0;
        assert!(error.abs() < 1e-9, "{error}");
    }

    #[test]
    fn a_growing_lock_is_best_before_anybody_waits() {
        let network = network(&["rust delay=40ms lock=10ms+10%"]);
        assert_eq!(
            network.saturation().map(|(throughput, users)| (throughput.round(), users)),
            Some((100.0, 5))
        );
        // All but four are in the queue: 1 / (10 ms x (1 + 0.1 w)) with about w waiting.
        assert!(network.throughput(40) < 30.0, "{}", network.throughput(40));
    }

    #[test]
    fn a_followed_queue_agrees_with_constant_times() {
        let serial = Network::Serial { delay: 0.04, hold: 0.01, growth: 0.0, pause: None };
        let constant = network(&["rust delay=40ms lock=10ms"]);
        for users in [1, 3, 5, 9] {
            let error = serial.throughput(users) / constant.throughput(users) - 1.0;
            assert!(error.abs() < 1e-3, "{users} users: {error}");
        }
    }

    #[test]
    fn a_collector_is_part_of_what_each_request_costs() {
        // Ten requests of 2 ms, then 80 ms of collection: 100 ms for ten.
        assert_eq!(saturation(&["rust lock=2ms collect=80ms/10"]), (100.0, 1));
    }

    #[test]
    fn what_has_no_exact_answer_is_refused() {
        let mixed = ["rust lock=~20ms heavy=4/25%", "rust lock=9ms+5% heavy=4/25%"];
        for tier in mixed.into_iter().chain(["rust pool=2x10ms lock=~20ms"]) {
            let tiers = [tier.parse().expect("a tier")];
            assert!(Network::of(&tiers, 2).is_err(), "{tier}");
        }
    }
}
