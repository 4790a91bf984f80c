//! A closed system in virtual time: users who think, wait for a place, visit stations in turn, and leave.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Time {
    Constant(f64),
    Exponential(f64),
}

impl Time {
    pub(crate) fn mean_us(self) -> f64 {
        let (Self::Constant(us) | Self::Exponential(us)) = self;
        us
    }

    fn draw_us(self, random: &mut fastrand::Rng) -> f64 {
        match self {
            Self::Constant(us) => us,
            Self::Exponential(us) => -us * (1.0 - random.f64()).ln(),
        }
    }
}

/// Servers, and a queue before them; of a delay more servers than users.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Station {
    pub(crate) servers: u32,
    pub(crate) time: Time,
}

/// More servers than any test has users.
pub(crate) const MANY: u32 = 100_000;

/// A constant time for which nobody waits.
pub(crate) fn delay(us: f64) -> Station {
    Station { servers: MANY, time: Time::Constant(us) }
}

/// The system, without users. A request visits the stations inside, holding a place, and then those outside.
#[derive(Debug, Clone)]
pub(crate) struct System {
    pub(crate) think: Time,
    pub(crate) places: u32,
    pub(crate) inside: Vec<Station>,
    pub(crate) outside: Vec<Station>,
    /// What waiting for a place adds to the time of those inside.
    pub(crate) slowing: Slowing,
    /// The kinds of request; empty for one.
    pub(crate) kinds: Vec<Kind>,
}

/// How much longer the stations inside take, as a share.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slowing {
    /// For each request that waits for a place.
    ByEach(f64),
    /// For those that had to wait for theirs.
    OfThose(f64),
}

impl Slowing {
    pub(crate) const NOT: Self = Self::ByEach(0.0);

    fn share(self, waiting: usize, has_waited: bool) -> f64 {
        match self {
            Self::ByEach(share) => share * waiting as f64,
            Self::OfThose(share) if has_waited => share,
            Self::OfThose(_) => 0.0,
        }
    }
}

/// A kind of request: how often it comes, and what the times of the stations are multiplied by, first those inside.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) share: f64,
    pub(crate) times: Vec<f64>,
}

/// What so many users saw.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) users: u32,
    pub(crate) throughput_per_s: f64,
    pub(crate) response_us: Vec<f64>,
    /// The kind of each of them.
    pub(crate) kinds: Vec<usize>,
}

impl Seen {
    pub(crate) fn mean_us(&self) -> f64 {
        self.response_us.iter().sum::<f64>() / self.response_us.len() as f64
    }

    pub(crate) fn quantile_us(&self, share: f64) -> f64 {
        let mut sorted = self.response_us.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[((sorted.len() - 1) as f64 * share) as usize]
    }
}

#[derive(Debug, Clone, Copy)]
struct Request {
    begun_us: f64,
    at: usize,
    kind: usize,
}

struct Run<'a> {
    system: &'a System,
    stations: Vec<Station>,
    random: fastrand::Rng,
    now_us: f64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    requests: Vec<Request>,
    busy: Vec<u32>,
    queues: Vec<VecDeque<usize>>,
    held: u32,
    outside_places: VecDeque<usize>,
    done: Vec<(f64, f64, usize)>,
}

/// Completions that are measured, after a third as many that are not.
const MEASURED: usize = 6_000;

impl System {
    pub(crate) fn run(&self, users: u32, seed: u64) -> Seen {
        let stations = [self.inside.as_slice(), self.outside.as_slice()].concat();
        let mut run = Run {
            system: self,
            busy: vec![0; stations.len()],
            queues: vec![VecDeque::new(); stations.len()],
            stations,
            random: fastrand::Rng::with_seed(seed),
            now_us: 0.0,
            events: BinaryHeap::new(),
            requests: vec![Request { begun_us: 0.0, at: 0, kind: 0 }; users as usize],
            held: 0,
            outside_places: VecDeque::new(),
            done: Vec::new(),
        };
        run.go(users)
    }
}

impl Run<'_> {
    fn go(&mut self, users: u32) -> Seen {
        // Nobody starts in step with others.
        let cycle_us = self.system.think.mean_us()
            + self.stations.iter().map(|station| station.time.mean_us()).sum::<f64>();
        for user in 0..users as usize {
            let after_us = self.random.f64() * cycle_us;
            self.requests[user].at = usize::MAX;
            self.later(user, after_us);
        }
        let (warm, all) = (MEASURED / 3, MEASURED / 3 + MEASURED);
        while self.done.len() < all {
            let Reverse((at_ns, user)) = self.events.pop().expect("somebody is under way");
            self.now_us = at_ns as f64 / 1e3;
            self.ended(user as usize);
        }
        let measured = &self.done[warm..];
        let span_us = measured.last().expect("some").0 - self.done[warm - 1].0;
        Seen {
            users,
            throughput_per_s: measured.len() as f64 / span_us * 1e6,
            response_us: measured.iter().map(|(_, response, _)| *response).collect(),
            kinds: measured.iter().map(|(_, _, kind)| *kind).collect(),
        }
    }

    fn later(&mut self, user: usize, after_us: f64) {
        self.events.push(Reverse((((self.now_us + after_us) * 1e3) as u64, user as u64)));
    }

    /// A user's think time, or time at a station, ended.
    fn ended(&mut self, user: usize) {
        let at = self.requests[user].at;
        if at == usize::MAX {
            return self.begin(user);
        }
        self.busy[at] -= 1;
        if let Some(next) = self.queues[at].pop_front() {
            self.serve(next, at);
        }
        if at + 1 == self.system.inside.len() {
            self.held -= 1;
            if let Some(next) = self.outside_places.pop_front() {
                self.enter(next);
            }
        }
        match at + 1 < self.stations.len() {
            true => self.arrive(user, at + 1),
            false => self.complete(user),
        }
    }

    fn begin(&mut self, user: usize) {
        self.requests[user].begun_us = self.now_us;
        self.requests[user].kind = self.kind();
        match (self.system.inside.is_empty(), self.held < self.system.places) {
            (true, _) => self.arrive(user, 0),
            (false, true) => self.enter(user),
            (false, false) => self.outside_places.push_back(user),
        }
    }

    /// Draws a kind of request.
    fn kind(&mut self) -> usize {
        let kinds = &self.system.kinds;
        if kinds.is_empty() {
            return 0;
        }
        let mut left = self.random.f64();
        let is_it = |kind: &Kind| {
            left -= kind.share;
            left < 0.0
        };
        kinds.iter().position(is_it).unwrap_or(kinds.len() - 1)
    }

    fn enter(&mut self, user: usize) {
        self.held += 1;
        self.arrive(user, 0);
    }

    fn arrive(&mut self, user: usize, at: usize) {
        match self.busy[at] < self.stations[at].servers {
            true => self.serve(user, at),
            false => self.queues[at].push_back(user),
        }
    }

    fn serve(&mut self, user: usize, at: usize) {
        self.busy[at] += 1;
        self.requests[user].at = at;
        let is_inside = at < self.system.inside.len();
        let waiting = if is_inside { self.outside_places.len() } else { 0 };
        let has_waited = is_inside && self.now_us > self.requests[user].begun_us;
        let longer = 1.0 + self.system.slowing.share(waiting, has_waited);
        let kind = self.system.kinds.get(self.requests[user].kind);
        let of_kind = kind.map_or(1.0, |kind| kind.times[at]);
        let time_us = self.stations[at].time.draw_us(&mut self.random) * longer * of_kind;
        self.later(user, time_us);
    }

    fn complete(&mut self, user: usize) {
        let Request { begun_us, kind, .. } = self.requests[user];
        self.done.push((self.now_us, self.now_us - begun_us, kind));
        self.requests[user].at = usize::MAX;
        let think_us = self.system.think.draw_us(&mut self.random);
        self.later(user, think_us);
    }
}
