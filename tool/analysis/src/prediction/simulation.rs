//! Percentiles for users who think for another time than in the run, from a simulation in virtual time.
//!
//! Users think, are elsewhere for what remains of a request, and queue for the bottleneck, which serves them in the order in
//! which they came. Their think times are exponential, as no run tells how people think. How a request varies is known as a
//! whole, by the percentiles of the step with one user, and not how much of that is the bottleneck's. So both ends are simulated:
//! the bottleneck takes a constant time or what is elsewhere does, and the other has all that varies. What lies between is the
//! answer. A simulation is a sample itself: how far off it may be follows from its parts, by the method of batch means (Law,
//! *Simulation Modeling and Analysis*, 5th ed. 2015, section 9.5.3).
//!
//! Only the ratios of percentiles to the mean are taken, since the model has the mean. Other stations do not queue here, so that
//! there is no answer where another one is nearly as busy.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::model::{At, Model};
use super::outlook::Drawn;
use super::parts::Parts;
use super::quantile::Ratio;
use super::slowdown::Slowed;
use crate::run::{PERCENTILES, ResponseTime, Run};
use crate::statistics::at_share;
use crate::statistics::mean::{half_width, mean};
use crate::statistics::random::Random;

/// The response times that are counted of each simulation.
const COUNTED: usize = 10_000;

/// Batches that they are split into, one after the other. Response times that follow one another are alike; those of batches are
/// hardly.
const BATCHES: usize = 10;

/// Those before them, which are not: some, and several of each user.
const WARM_UP: usize = 1_000;
const WARM_UP_EACH: usize = 4;

/// No more users are simulated.
const USERS_MAX: u32 = 2_000;

/// All others have to allow so many times the throughput that the bottleneck does: then they are at most two thirds busy.
const OTHERS_ALLOW: f64 = 1.5;

/// Fewer percentiles than these do not show how times vary.
const PERCENTILES_MIN: usize = 3;

/// How a time varies: what it is at -ln(1 - p) for the percentiles p that are known, and linear between them and beyond, as an
/// exponential time is everywhere. The first is at 0.
#[derive(Debug, Clone, PartialEq)]
struct Shape(Vec<(f64, f64)>);

/// The system that is simulated.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    think_us: f64,
    elsewhere_us: f64,
    service_us: f64,
    servers: usize,
    slowed: Option<Slowed>,
    /// How both vary, one way and the other.
    ways: [Way; 2],
    seed: u64,
}

/// How what is elsewhere varies, and the service: as multiples of their means.
#[derive(Debug, Clone, PartialEq)]
struct Way {
    elsewhere: Shape,
    service: Shape,
}

impl Shape {
    fn constant() -> Self {
        Self(vec![(0.0, 1.0)])
    }

    /// Of measured times, microseconds: the least of them is such that the mean is right.
    fn of(time: &ResponseTime) -> Option<Self> {
        let known = PERCENTILES.iter().filter_map(|one| Some((-(1.0 - one.share).ln(), one.read(time)?)));
        let mut all: Vec<(f64, f64)> = std::iter::once((0.0, 0.0)).chain(known).collect();
        if all.len() <= PERCENTILES_MIN {
            return None;
        }
        let (end, median_us) = *all.get(1)?;
        let of_least = 1.0 - (1.0 - (-end).exp()) / end;
        let least_us = (time.mean - Self(all.clone()).mean()) / of_least;
        all.first_mut()?.1 = least_us.min(median_us).max(0.0);
        Some(Self(all))
    }

    /// What of it is beyond so much, as multiples of its mean; constant where that is nothing.
    fn beyond(&self, us: f64) -> Self {
        let beyond = Self(self.0.iter().map(|(at, value)| (*at, (value - us).max(0.0))).collect());
        let mean = beyond.mean();
        if mean <= 0.0 {
            return Self::constant();
        }
        Self(beyond.0.into_iter().map(|(at, value)| (at, value / mean)).collect())
    }

    /// The mean over exponential arguments: the first value, and what each slope adds.
    fn mean(&self) -> f64 {
        let last = self.0.len().saturating_sub(2);
        let slopes = self.0.windows(2).enumerate().map(|(number, pair)| {
            let slope = (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
            let beyond = if number == last { 0.0 } else { (-pair[1].0).exp() };
            slope * ((-pair[0].0).exp() - beyond)
        });
        self.0.first().map_or(0.0, |first| first.1) + slopes.sum::<f64>()
    }

    /// What it is at an argument, which is drawn from the exponential distribution.
    fn at(&self, argument: f64) -> f64 {
        let last = self.0.len().saturating_sub(1).max(1);
        let next = self.0.partition_point(|knot| knot.0 <= argument).max(1).min(last);
        match (self.0.get(next - 1), self.0.get(next)) {
            (Some(from), Some(to)) => {
                (from.1 + (to.1 - from.1) * (argument - from.0) / (to.0 - from.0)).max(0.0)
            }
            (Some(only), None) => only.1,
            (None, _) => 1.0,
        }
    }
}

impl Queue {
    /// The changed system as one queue; `None` where more than one matters, or the run does not show how times vary.
    pub(super) fn of(run: &Run, drawn: &Drawn, parts: &Parts, seed: u64) -> Option<Self> {
        let alone = run.steps.iter().find(|step| step.users == 1 && step.steady)?;
        let measured = Shape::of(&alone.response_time_us)?;
        let (before, after) = (&drawn.before, &drawn.after);
        let at = before.bottleneck(parts)?;
        let (_, before_us) = servers(before, at)?;
        let (servers, service_us) = servers(after, at)?;
        let elsewhere_us = (drawn.solved.before.alone_us - before_us).max(0.0);
        let of_service = Way { elsewhere: Shape::constant(), service: measured.beyond(elsewhere_us) };
        let of_elsewhere = Way { elsewhere: measured.beyond(before_us), service: Shape::constant() };
        Some(Self {
            think_us: after.think_us,
            elsewhere_us: (drawn.solved.after.alone_us - service_us).max(0.0),
            service_us,
            servers,
            slowed: after.slow.filter(|slow| slow.at == at).map(|slow| after.slowed_by(slow)),
            ways: [of_service, of_elsewhere],
            seed,
        })
    }

    /// The ratios of these percentiles to the mean with so many users, half way between both ways, and the outer ends of the
    /// 95 % intervals of both.
    pub(super) fn ratios<const COUNT: usize>(
        &self,
        users: u32,
        shares: [f64; COUNT],
    ) -> [Option<Ratio>; COUNT] {
        if users > USERS_MAX {
            return [None; COUNT];
        }
        let [one, other] = self.ways.each_ref().map(|way| Sample::of(&self.simulated(users, way)));
        shares.map(|share| {
            let ((one, one_off), (other, other_off)) = (one.ratio(share)?, other.ratio(share)?);
            let low = (one - one_off).min(other - other_off).max(0.0);
            Some((low, (one + other) / 2.0, (one + one_off).max(other + other_off)))
        })
    }

    /// Response times, microseconds, in the order in which they ended.
    fn simulated(&self, users: u32, way: &Way) -> Vec<f64> {
        let mut clock = Clock {
            of: self,
            way,
            random: Random::seeded(self.seed.wrapping_add(users.into())),
            now_ns: 0,
            events: BinaryHeap::new(),
            busy: 0,
            waiting: VecDeque::new(),
            ended_us: Vec::new(),
        };
        (0..users).for_each(|_| clock.think());
        let warm_up = WARM_UP + WARM_UP_EACH * users as usize;
        while clock.ended_us.len() < warm_up + COUNTED {
            let Some(Reverse(event)) = clock.events.pop() else { break };
            clock.take(event);
        }
        clock.ended_us.split_off(warm_up.min(clock.ended_us.len()))
    }
}

/// The servers of the bottleneck, and how long each of them takes where all are busy, microseconds. `None` where others may queue
/// as well, or only its throughput is known.
fn servers(model: &Model, at: At) -> Option<(usize, f64)> {
    let (per_s, held_us) = model.limit_at(at)?;
    let is_alone = held_us > 0.0 && model.others_allow_per_s(at) >= OTHERS_ALLOW * per_s;
    let servers = model.servers_at(at).round().max(1.0);
    is_alone.then(|| (servers as usize, servers / per_s * 1e6))
}

/// The response times of a simulation, ascending: all of them, and those of each batch.
struct Sample {
    all: Vec<f64>,
    batches: Vec<Vec<f64>>,
}

impl Sample {
    /// Of times in the order in which they ended.
    fn of(times: &[f64]) -> Self {
        let batches = times.chunks_exact((times.len() / BATCHES).max(1));
        Self { all: ascending(times), batches: batches.map(ascending).collect() }
    }

    /// A percentile over the mean, and half of its 95 % interval.
    fn ratio(&self, share: f64) -> Option<(f64, f64)> {
        let each: Vec<f64> = self.batches.iter().map(|batch| ratio(batch, share)).collect::<Option<_>>()?;
        // Of one batch nothing is known.
        let off = (each.len() > 1).then(|| half_width(&each, 0.95))?;
        Some((ratio(&self.all, share)?, off))
    }
}

fn ascending(times: &[f64]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A percentile of ascending times over their mean.
fn ratio(ascending: &[f64], share: f64) -> Option<f64> {
    Some(at_share(ascending, share)? / mean(ascending)).filter(|ratio| ratio.is_finite())
}

/// A request comes to the bottleneck, or leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u128,
    leaves: bool,
    begun_ns: u128,
}

/// A simulation that goes on.
struct Clock<'a> {
    of: &'a Queue,
    way: &'a Way,
    random: Random,
    now_ns: u128,
    events: BinaryHeap<Reverse<Event>>,
    busy: usize,
    /// When those who wait began.
    waiting: VecDeque<u128>,
    ended_us: Vec<f64>,
}

impl Clock<'_> {
    fn take(&mut self, event: Event) {
        self.now_ns = event.at_ns;
        if event.leaves {
            return self.end(event.begun_ns);
        }
        if self.busy < self.of.servers {
            self.busy += 1;
            self.serve(event.begun_ns);
        } else {
            self.waiting.push_back(event.begun_ns);
        }
    }

    /// A user thinks, begins a request, and comes to the bottleneck after what is elsewhere.
    fn think(&mut self) {
        let think_us = self.of.think_us * self.random.exponential();
        let begun_ns = self.now_ns.saturating_add(nanoseconds(think_us));
        let elsewhere_us = self.of.elsewhere_us * self.way.elsewhere.at(self.random.exponential());
        let at_ns = begun_ns.saturating_add(nanoseconds(elsewhere_us));
        self.events.push(Reverse(Event { at_ns, leaves: false, begun_ns }));
    }

    fn serve(&mut self, begun_ns: u128) {
        let present = (self.busy + self.waiting.len()) as f64;
        let longer = self.of.slowed.map_or(1.0, |by| by.factor(present));
        let service_us = self.of.service_us * self.way.service.at(self.random.exponential()) * longer;
        let at_ns = self.now_ns.saturating_add(nanoseconds(service_us));
        self.events.push(Reverse(Event { at_ns, leaves: true, begun_ns }));
    }

    fn end(&mut self, begun_ns: u128) {
        self.ended_us.push(self.now_ns.saturating_sub(begun_ns) as f64 / 1e3);
        match self.waiting.pop_front() {
            Some(next) => self.serve(next),
            None => self.busy -= 1,
        }
        self.think();
    }
}

/// Times are whole nanoseconds, so that they can be put in order. Thousands of think times of a month are more of them than 64 bits
/// hold.
fn nanoseconds(us: f64) -> u128 {
    (us * 1e3) as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::mva::repairman;

    fn exponential() -> Shape {
        Shape(vec![(0.0, 0.0), (1.0, 1.0)])
    }

    /// Servers that take a millisecond, and nothing elsewhere.
    fn queue(servers: usize, think_us: f64, service: Shape, seed: u64) -> Queue {
        let way = Way { elsewhere: Shape::constant(), service };
        let ways = [way.clone(), way];
        Queue { think_us, elsewhere_us: 0.0, service_us: 1e3, servers, slowed: None, ways, seed }
    }

    /// How probable it is that so many departures at a rate take longer than `time`.
    fn erlang_tail(departures: usize, rate: f64, time: f64) -> f64 {
        let terms = (0..departures).scan(1.0, |term, count| {
            let now = *term;
            *term *= rate * time / (count as f64 + 1.0);
            Some(now)
        });
        terms.sum::<f64>() * (-rate * time).exp()
    }

    /// The same for a request that finds `found` others at the servers, in units of the mean service time: it waits until one
    /// of the servers is free, and is served.
    fn tail(found: usize, servers: usize, time: f64) -> f64 {
        if found < servers {
            return (-time).exp();
        }
        let (rate, departures) = (servers as f64, found - servers + 1);
        let waits = |time: f64| erlang_tail(departures, rate, time);
        // What is waited in each of many short parts of the time, and service for the rest of it.
        let parts = 400;
        let part = time / f64::from(parts);
        let served: f64 = (0..parts)
            .map(|number| {
                let begins = f64::from(number) * part;
                (waits(begins) - waits(begins + part)) * (begins + part / 2.0 - time).exp()
            })
            .sum();
        waits(time) + served
    }

    /// The exact percentile of M/M/m//N, in units of the mean service time: a request finds as many there as there are on average
    /// with one user fewer (the arrival theorem; Sevcik and Mitrani, JACM 28(2), 1981).
    fn exact(servers: usize, think: f64, users: usize, share: f64) -> f64 {
        let others = users - 1;
        let mut weights = vec![1.0];
        for present in 1..=others {
            let comes = (others + 1 - present) as f64 / think;
            weights.push(weights[present - 1] * comes / present.min(servers) as f64);
        }
        let total: f64 = weights.iter().sum();
        let longer = |time: f64| {
            let each = weights.iter().enumerate().map(|(found, weight)| weight * tail(found, servers, time));
            each.sum::<f64>() / total
        };
        let (mut low, mut high) = (0.0, 100.0);
        for _ in 0..30 {
            let middle = (low + high) / 2.0;
            if longer(middle) > 1.0 - share { low = middle } else { high = middle }
        }
        high
    }

    /// By hand: one who finds two others at one server waits for three exponential times in all.
    #[test]
    fn exact_tail_by_hand() {
        assert!((tail(2, 1, 2.0) - 5.0 * (-2.0f64).exp()).abs() < 1e-4);
        assert!((exact(2, 0.5, 2, 0.95) - 20.0f64.ln()).abs() < 1e-3, "two users at two servers never wait");
    }

    #[test]
    fn percentiles_are_those_of_the_machine_repairman() {
        for (servers, think, users) in [(1, 5.0, 6), (1, 10.0, 8), (4, 3.0, 16), (2, 0.5, 2)] {
            let simulated = |seed: u64| {
                let queue = queue(servers, think * 1e3, exponential(), 1_000 * seed);
                let mut times = queue.simulated(users as u32, &queue.ways[0]);
                times.sort_by(f64::total_cmp);
                times
            };
            let runs: Vec<Vec<f64>> = (1..=12).map(simulated).collect();
            for share in [0.5, 0.95, 0.99] {
                let of = |times: &Vec<f64>| times[((times.len() - 1) as f64 * share) as usize] / 1e3;
                let found = runs.iter().map(of).sum::<f64>() / 12.0;
                let exact = exact(servers, think, users, share);
                let error = found / exact - 1.0;
                assert!(error.abs() < 0.04, "{servers} servers, {users} users, {share}: {found} not {exact}");
            }
        }
    }

    /// Both ways are the same here, so that nothing but the error of the simulation is within the interval: 95 % of them hold what
    /// is exact, or nearly so many.
    #[test]
    fn a_single_simulation_tells_how_far_off_it_may_be() {
        let (mut held, mut all) = (0, 0);
        for (servers, think, users) in [(1, 5.0, 6), (4, 3.0, 16)] {
            let mean = f64::from(users) / repairman(servers, think, users) - think;
            let exact = |share| exact(servers as usize, think, users as usize, share) / mean;
            let exact = [0.95, 0.99].map(exact);
            for seed in 1..=12 {
                let queue = queue(servers as usize, think * 1e3, exponential(), 1_000 * seed);
                let found = queue.ratios(users, [0.95, 0.99]);
                for (found, exact) in found.into_iter().zip(exact) {
                    let (low, ratio, high) = found.expect("a ratio");
                    assert!(low < ratio && ratio < high && high - low < 0.5 * ratio, "{low} {ratio} {high}");
                    (all, held) = (all + 1, held + u32::from((low..=high).contains(&exact)));
                }
            }
        }
        assert!(f64::from(held) >= 0.8 * f64::from(all), "{held} of {all}");
    }

    /// Four users who do not think, and one server of constant time: each waits for the three others.
    #[test]
    fn users_who_do_not_think_wait_for_all_others() {
        let queue = queue(1, 0.0, Shape::constant(), 1);
        let [found] = queue.ratios(4, [0.95]);
        let (low, ratio, high) = found.expect("a ratio");
        assert!([low, ratio, high].iter().all(|ratio| (ratio - 1.0).abs() < 1e-6), "{low} {ratio} {high}");
        assert_eq!(queue.ratios(USERS_MAX + 1, [0.95]), [None]);
    }

    /// Nobody ever waits for another, so that times are those of the service, however long users think.
    #[test]
    fn users_who_think_for_years_meet_nobody() {
        let queue = queue(1, 1e15, exponential(), 1);
        let [found] = queue.ratios(4, [0.95]);
        let (_, ratio, _) = found.expect("a ratio");
        assert!((ratio / 20.0f64.ln() - 1.0).abs() < 0.06, "{ratio}");
    }

    fn measured(mean: f64, at: impl Fn(f64) -> f64) -> Shape {
        let [p50, p90, p95, p99, p999] = [0.5, 0.1, 0.05, 0.01, 0.001].map(|left: f64| at(-left.ln()));
        let time = ResponseTime { mean, p50, p90, p95: Some(p95), p99, p999, ..ResponseTime::default() };
        Shape::of(&time).expect("percentiles")
    }

    /// 40 ms that are always the same, and 10 ms that are exponential.
    #[test]
    fn how_times_vary_is_read_from_their_percentiles() {
        let shape = measured(50e3, |argument| 40e3 + 10e3 * argument);
        for argument in [0.0, 0.3, 1.0, 2.5, 9.0] {
            let expected = 40e3 + 10e3 * argument;
            assert!((shape.at(argument) / expected - 1.0).abs() < 1e-6, "{argument}: {}", shape.at(argument));
        }
        assert!((shape.mean() / 50e3 - 1.0).abs() < 1e-9);
        let service = shape.beyond(40e3);
        assert!((service.mean() - 1.0).abs() < 1e-9 && (service.at(3.0) - 3.0).abs() < 1e-6, "{service:?}");
        let constant = measured(20e3, |_| 20e3);
        assert!((constant.beyond(5e3).at(7.0) - 1.0).abs() < 1e-6, "{constant:?}");
        assert_eq!(constant.beyond(30e3), Shape::constant());
        assert_eq!(Shape::of(&ResponseTime { mean: 20e3, samples: 20, ..ResponseTime::default() }), None);
    }
}
