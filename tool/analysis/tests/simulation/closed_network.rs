//! A closed queueing system in virtual time: N users who think, queue for one of m servers, are served, and
//! start again. Seeded; the same seed gives the same ticks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use analysis::ticks::{Counts, GeneratorTick, Tick};

use crate::pace::{Course, Pace};

pub(crate) const TICK_US: u64 = 20_000;

/// How a duration is distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Time {
    Exponential {
        mean_us: f64,
    },
    Constant {
        us: f64,
    },
    /// The logarithm is normal with this deviation.
    LogNormal {
        mean_us: f64,
        deviation: f64,
    },
    /// The chance of more than t falls as t to the power of minus `shape`, which is above one.
    Pareto {
        mean_us: f64,
        shape: f64,
    },
}

impl Time {
    pub(crate) fn mean_us(self) -> f64 {
        match self {
            Self::Exponential { mean_us }
            | Self::LogNormal { mean_us, .. }
            | Self::Pareto { mean_us, .. } => mean_us,
            Self::Constant { us } => us,
        }
    }

    fn draw_ns(self, random: &mut fastrand::Rng) -> u64 {
        let us = match self {
            Self::Exponential { mean_us } => -mean_us * (1.0 - random.f64()).ln(),
            Self::Constant { us } => us,
            Self::LogNormal { mean_us, deviation } => {
                let normal =
                    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos();
                mean_us * (deviation * normal - deviation * deviation / 2.0).exp()
            }
            Self::Pareto { mean_us, shape } => {
                mean_us * (shape - 1.0) / shape * (1.0 - random.f64()).powf(-1.0 / shape)
            }
        };
        (us * 1e3).round() as u64
    }
}

/// The system, without users.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct System {
    pub(crate) service: Time,
    pub(crate) think: Time,
    pub(crate) servers: u32,
    pub(crate) pace: Pace,
    pub(crate) next: Next,
}

/// Which of those that wait is served next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    First,
    Any,
}

impl System {
    /// The same system at another pace.
    pub(crate) fn at(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// The same system, which serves those that wait in any order.
    pub(crate) fn in_any_order(self) -> Self {
        Self { next: Next::Any, ..self }
    }

    /// Exponential service and think times with these means; a mean think time of 0 is none.
    pub(crate) fn exponential(servers: u32, service_us: f64, think_us: f64) -> Self {
        let exponential = |mean_us| Time::Exponential { mean_us };
        Self {
            service: exponential(service_us),
            think: exponential(think_us),
            servers,
            pace: Pace::Steady,
            next: Next::First,
        }
    }

    /// Constant service and think times.
    pub(crate) fn constant(servers: u32, service_us: f64, think_us: f64) -> Self {
        let constant = |us| Time::Constant { us };
        Self {
            service: constant(service_us),
            think: constant(think_us),
            servers,
            pace: Pace::Steady,
            next: Next::First,
        }
    }
}

/// Who does what when the simulation starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Start {
    /// Everyone thinks: the servers are idle.
    AllThink,
    /// Everyone sends at once.
    AllSend,
    /// Everyone sends at once, and this many requests that are nobody's wait before them.
    Backlog(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Sends,
    Completes { arrived_ns: u64, somebodys: bool },
}

pub(crate) struct Simulation {
    system: System,
    random: fastrand::Rng,
    course: Course,
    now_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    waiting: VecDeque<(u64, bool)>,
    idle: u32,
    users: u64,
    thinking: u64,
}

impl Simulation {
    pub(crate) fn new(system: System, users: u32, start: Start, seed: u64) -> Self {
        let mut simulation = Self {
            system,
            random: fastrand::Rng::with_seed(seed),
            course: Course::new(system.pace, seed),
            now_ns: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            waiting: VecDeque::new(),
            idle: system.servers,
            users: u64::from(users),
            thinking: 0,
        };
        if let Start::Backlog(requests) = start {
            (0..requests).for_each(|_| simulation.arrive(false));
        }
        for _ in 0..users {
            if start == Start::AllThink { simulation.think() } else { simulation.arrive(true) }
        }
        simulation
    }

    /// The ticks of the next `for_us` microseconds.
    pub(crate) fn run(&mut self, for_us: u64) -> Vec<Tick> {
        (0..for_us / TICK_US).map(|_| self.tick()).collect()
    }

    fn tick(&mut self) -> Tick {
        let start_ns = self.now_ns;
        let end_ns = start_ns + TICK_US * 1_000;
        let mut response_times_ns = Vec::new();
        let mut thinking_user_ns = 0;
        while let Some(&Reverse((at_ns, _, event))) = self.events.peek().filter(|next| next.0.0 < end_ns) {
            self.events.pop();
            thinking_user_ns += self.thinking * (at_ns - self.now_ns);
            self.now_ns = at_ns;
            self.handle(event, &mut response_times_ns);
        }
        thinking_user_ns += self.thinking * (end_ns - self.now_ns);
        self.now_ns = end_ns;
        Tick {
            start_us: start_ns / 1_000,
            length_us: TICK_US,
            completed: response_times_ns.len() as u64,
            response_time_ns_sum: response_times_ns.iter().sum(),
            response_times: histogram(response_times_ns),
            generator: GeneratorTick {
                thinking_user_us: thinking_user_ns / 1_000,
                threads: 1,
                in_flight: Some(self.users - self.thinking),
                ..Default::default()
            },
            ..Tick::default()
        }
    }

    fn handle(&mut self, event: Event, response_times_ns: &mut Vec<u64>) {
        match event {
            Event::Sends => {
                self.thinking -= 1;
                self.arrive(true);
            }
            Event::Completes { arrived_ns, somebodys } => {
                self.idle += 1;
                if let Some((arrived_ns, somebodys)) = self.next() {
                    self.serve(arrived_ns, somebodys);
                }
                if somebodys {
                    response_times_ns.push(self.now_ns - arrived_ns);
                    self.think();
                }
            }
        }
    }

    fn next(&mut self) -> Option<(u64, bool)> {
        match self.system.next {
            Next::First => self.waiting.pop_front(),
            Next::Any if self.waiting.is_empty() => None,
            Next::Any => self.waiting.swap_remove_back(self.random.usize(..self.waiting.len())),
        }
    }

    fn think(&mut self) {
        if self.system.think.mean_us() == 0.0 {
            return self.arrive(true);
        }
        self.thinking += 1;
        let think_ns = self.system.think.draw_ns(&mut self.random);
        self.at(self.now_ns + think_ns, Event::Sends);
    }

    fn arrive(&mut self, somebodys: bool) {
        if self.idle > 0 {
            self.serve(self.now_ns, somebodys);
        } else {
            self.waiting.push_back((self.now_ns, somebodys));
        }
    }

    fn serve(&mut self, arrived_ns: u64, somebodys: bool) {
        self.idle -= 1;
        let service_ns = self.system.service.draw_ns(&mut self.random);
        let end_ns = self.course.after(self.now_ns, service_ns);
        self.at(end_ns, Event::Completes { arrived_ns, somebodys });
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at_ns, self.sequence, event)));
    }
}

/// Microseconds at three significant digits.
fn histogram(mut times_ns: Vec<u64>) -> Counts {
    times_ns.sort_unstable();
    let mut values_us: Vec<(u64, u64)> = Vec::new();
    for time_ns in times_ns {
        let us = (time_ns / 1_000).max(1);
        let unit = 10u64.pow(us.ilog10().saturating_sub(2));
        let value = us / unit * unit;
        match values_us.last_mut() {
            Some((last, count)) if *last == value => *count += 1,
            _ => values_us.push((value, 1)),
        }
    }
    Counts { values_us, beyond: 0 }
}

#[test]
fn same_seed_same_ticks() {
    let ticks = |seed| {
        Simulation::new(System::exponential(2, 1_000.0, 5_000.0), 10, Start::AllThink, seed).run(500_000)
    };
    assert_eq!(ticks(3), ticks(3));
    assert_ne!(ticks(3), ticks(4));
}
