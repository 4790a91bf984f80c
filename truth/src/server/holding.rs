//! Holding something for an exact time.
//!
//! A sleep ends late, by more on a busy host. Whoever holds something next while others wait therefore counts from when
//! the one before was due, not from when it woke up, so that a hold of h allows exactly 1/h a second.

use std::{
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// Sleeps until then; not at all if that has passed.
pub(super) fn sleep_until(then: Instant) {
    thread::sleep(then.saturating_duration_since(Instant::now()));
}

/// Computes for this much processor time of this thread.
pub(super) fn burn(time: Duration) {
    let end = thread_time() + time;
    while thread_time() < end {
        std::hint::black_box((0..200u64).fold(0, |sum, number| sum ^ std::hint::black_box(number)));
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// All that runs unless a collector stops it. Holds when it was last set going again.
pub(super) struct World(RwLock<Instant>);

impl World {
    pub(super) fn new() -> Self {
        Self(RwLock::new(Instant::now()))
    }

    /// Sleeps for `time`, counted from when both the request and what it holds were there.
    pub(super) fn hold(&self, arrived: Instant, free: &mut Instant, time: Duration) {
        let going = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let begin = arrived.max(*free).max(*going);
        *free = begin + time;
        sleep_until(*free);
    }

    fn stop(&self, collect: impl FnOnce()) {
        let mut going = self.0.write().unwrap_or_else(PoisonError::into_inner);
        collect();
        *going = Instant::now();
    }
}

/// A mutex that each request holds for a while.
pub(super) struct Lock {
    /// When it became free.
    free: Mutex<Instant>,
    waiting: AtomicU32,
}

impl Lock {
    pub(super) fn new() -> Self {
        Self { free: Mutex::new(Instant::now()), waiting: AtomicU32::new(0) }
    }

    /// Holds it for `time`, longer by the share `growth` of that for each request that waits.
    pub(super) fn hold(&self, world: &World, time: Duration, growth: f64) {
        let arrived = Instant::now();
        self.waiting.fetch_add(1, Relaxed);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.waiting.fetch_sub(1, Relaxed) - 1;
        world.hold(arrived, &mut free, time.mul_f64(1.0 + growth * f64::from(waiting)));
    }
}

/// Lets one request through in each period.
pub(super) struct Limit {
    next: Mutex<Instant>,
    period: Duration,
}

impl Limit {
    pub(super) fn new(period: Duration) -> Self {
        Self { next: Mutex::new(Instant::now()), period }
    }

    pub(super) fn pass(&self) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = Instant::now().max(*next);
        *next = turn + self.period;
        drop(next);
        sleep_until(turn);
    }
}

/// Runs after every so many requests, with everything else stopped.
pub(super) struct Collector {
    requests: AtomicU32,
    every: u32,
    order: mpsc::SyncSender<mpsc::SyncSender<()>>,
}

impl Collector {
    pub(super) fn new(pause: Duration, every: u32) -> Self {
        let (order, orders) = mpsc::sync_channel::<mpsc::SyncSender<()>>(0);
        let collect = move || {
            for done in orders {
                let end = Instant::now() + pause;
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
                let _ = done.send(());
            }
        };
        // Named as Java's, which is what a reader of thread names can go by.
        let _detached = thread::Builder::new().name("GC Thread#0".into()).spawn(collect);
        Self { requests: AtomicU32::new(0), every, order }
    }

    pub(super) fn count(&self, world: &World) {
        if (self.requests.fetch_add(1, Relaxed) + 1).is_multiple_of(self.every) {
            world.stop(|| {
                let (done, wait) = mpsc::sync_channel(0);
                let _ = self.order.send(done).map(|()| wait.recv());
            });
        }
    }
}

/// Workers that take requests from a queue, and sleep for each.
pub(super) struct Workers(mpsc::Sender<Job>);

struct Job {
    arrived: Instant,
    time: Duration,
    done: mpsc::SyncSender<()>,
}

impl Workers {
    pub(super) fn new(number: u32, world: &std::sync::Arc<World>) -> Self {
        let (queue, jobs) = mpsc::channel::<Job>();
        let jobs = std::sync::Arc::new(Mutex::new(jobs));
        for _ in 0..number {
            let (jobs, world) = (std::sync::Arc::clone(&jobs), std::sync::Arc::clone(world));
            thread::spawn(move || work(&jobs, &world));
        }
        Self(queue)
    }

    /// Has a worker sleep for `time`, and waits for it.
    pub(super) fn serve(&self, time: Duration) {
        let (done, wait) = mpsc::sync_channel(1);
        let job = Job { arrived: Instant::now(), time, done };
        let _ = self.0.send(job).map(|()| wait.recv());
    }
}

fn work(jobs: &Mutex<mpsc::Receiver<Job>>, world: &World) {
    let mut free = Instant::now();
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        world.hold(job.arrived, &mut free, job.time);
        let _ = job.done.send(());
    }
}
