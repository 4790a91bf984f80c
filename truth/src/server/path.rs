//! The way of a request through the stages of a server.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    holding::{Collector, Limit, Lock, Workers, World, burn},
    upstream::{Connection, Upstream},
};
use crate::{
    stage::{Stage, Time},
    tier::Course,
};

/// The stages of a server, ready for requests.
pub(super) struct Path {
    stations: Vec<Station>,
    world: Arc<World>,
    course: Option<Course>,
    first_request: OnceLock<Instant>,
    upstream: Option<Upstream>,
    body: usize,
    /// What times are multiplied by for requests of the second kind.
    heavy: f64,
}

/// A stage, with what requests wait for.
enum Station {
    Delay(Time),
    Pool(Workers, Time),
    Lock(Lock, Time, f64),
    Burn(Duration),
    BurnLocked(Mutex<()>, Duration),
    Limit(Limit),
    Collect(Collector),
}

impl Path {
    pub(super) fn new(
        stages: &[Stage],
        course: Option<Course>,
        upstream: Option<Upstream>,
        body: usize,
    ) -> Self {
        let world = Arc::new(World::new());
        let stations = stages.iter().map(|stage| Station::new(*stage, &world)).collect();
        Self { stations, world, course, first_request: OnceLock::new(), upstream, body, heavy: 1.0 }
    }

    /// The same, with requests of a second kind that take so many times as long.
    pub(super) fn with_heavy(self, heavy: f64) -> Self {
        Self { heavy, ..self }
    }

    /// The response to every request.
    pub(super) fn response(&self) -> Vec<u8> {
        let mut response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", self.body).into_bytes();
        response.resize(response.len() + self.body, b'x');
        response
    }

    /// Takes one request, of the second kind or not, through all stages and on to the tier behind.
    pub(super) fn walk(&self, is_heavy: bool, onward: &mut Option<Connection>) -> io::Result<()> {
        let age = self.first_request.get_or_init(Instant::now).elapsed();
        let factor = self.course.map_or(1.0, |course| course.factor(age));
        let factor = if is_heavy { factor * self.heavy } else { factor };
        self.stations.iter().for_each(|station| station.pass(&self.world, factor));
        self.upstream.as_ref().map_or(Ok(()), |upstream| upstream.request(onward))
    }
}

impl Station {
    fn new(stage: Stage, world: &Arc<World>) -> Self {
        match stage {
            Stage::Delay(time) => Self::Delay(time),
            Stage::Pool { workers, hold } => Self::Pool(Workers::new(workers, world), hold),
            Stage::Lock { hold, growth } => Self::Lock(Lock::new(), hold, growth),
            Stage::Burn(time) => Self::Burn(time),
            Stage::BurnLocked(time) => Self::BurnLocked(Mutex::default(), time),
            Stage::Limit(period) => Self::Limit(Limit::new(period)),
            Stage::Collect { pause, every } => Self::Collect(Collector::new(pause, every)),
        }
    }

    fn pass(&self, world: &World, factor: f64) {
        let draw = |time: &Time| time.draw().mul_f64(factor);
        match self {
            Self::Delay(time) => thread::sleep(draw(time)),
            Self::Pool(workers, time) => workers.serve(draw(time)),
            Self::Lock(lock, time, growth) => lock.hold(world, draw(time), *growth),
            Self::Burn(time) => burn(time.mul_f64(factor)),
            Self::BurnLocked(mutex, time) => {
                let _held = mutex.lock().unwrap_or_else(PoisonError::into_inner);
                burn(time.mul_f64(factor));
            }
            Self::Limit(limit) => limit.pass(),
            Self::Collect(collector) => collector.count(world),
        }
    }
}
