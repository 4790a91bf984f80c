//! A bounded pool of threads for long computations and blocking calls: hashing, a database, a slow disk.

mod fair;

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    thread,
};

use futures_channel::oneshot;

use self::fair::FairQueue;
pub use self::fair::Ticket;

/// The group of jobs that belong to none.
const ALL: Ticket = Ticket { group: 0, is_known: true };

/// A bounded pool of threads, shared through an [`Arc`]. After it is dropped, its threads finish the queue and end.
///
/// Threads are started only when there are jobs for them, so a process forked before the first job gets threads of its
/// own, and no more than it needs.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

impl Pool {
    /// Makes a pool of at most `threads` threads (at least one) named `name`, and a queue for `queue` waiting jobs.
    pub fn new(name: &str, threads: usize, queue: usize) -> Self {
        let state = State { unstarted: threads.max(1), ..State::default() };
        let (name, state) = (name.to_owned(), Mutex::new(state));
        Self { shared: Arc::new(Shared { name, queue, state, changed: Condvar::new() }) }
    }

    /// Queues `job` at once and returns a future for its result, which works under every model and on any executor.
    ///
    /// A job whose future is dropped before a thread takes it is not run.
    pub fn run<T, F>(&self, job: F) -> Run<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.run_for(ALL, job)
    }

    /// Queues `job` like [`run`](Self::run), fairly among the groups that have jobs there: if the queue is full, the longest
    /// one makes room for others, and its newest job fails with [`Error::Full`].
    pub fn run_for<T, F>(&self, ticket: Ticket, job: F) -> Run<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let work = move |turn: Turn| {
            if !sender.is_canceled() {
                let result = match turn {
                    Turn::Run => catch_unwind(AssertUnwindSafe(job)).map_err(|_| Error::Panicked),
                    Turn::Refused => Err(Error::Full),
                };
                // If the receiver is gone, nobody wants the result.
                let _ = sender.send(result);
            }
        };
        Run(self.shared.push(ticket, Box::new(work)).map(|()| receiver))
    }

    /// The number of jobs waiting for a thread now.
    pub fn queued(&self) -> usize {
        self.shared.lock().jobs.len()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
    }
}

/// A future for the result of a job.
#[derive(Debug)]
#[must_use = "dropping it withdraws the job"]
pub struct Run<T>(Result<oneshot::Receiver<Result<T, Error>>, Error>);

impl<T> Future for Run<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let receiver = match &mut self.0 {
            Ok(receiver) => receiver,
            Err(error) => return Poll::Ready(Err(*error)),
        };
        // A lost sender means that the job was dropped without running, by a panic elsewhere in its thread.
        Pin::new(receiver).poll(context).map(|sent| sent.unwrap_or(Err(Error::Panicked)))
    }
}

/// Why a job gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Every thread is busy and the queue is full: try again later.
    #[error("the worker pool is busy and its queue is full; try again later")]
    Full,
    /// The system refused to start the pool's first thread: try again later.
    #[error("the worker pool cannot start a thread; try again later")]
    NoThread,
    /// The job panicked. The pool keeps working.
    #[error("a job of the worker pool panicked, which is a bug in the program")]
    Panicked,
}

type Job = Box<dyn FnOnce(Turn) + Send>;

/// What becomes of a job.
enum Turn {
    /// A thread runs it.
    Run,
    /// It made room for another.
    Refused,
}

#[derive(Default)]
struct State {
    jobs: FairQueue<Job>,
    /// Threads that run no job.
    idle: usize,
    /// Threads that run a job.
    busy: usize,
    /// Threads that may still be started.
    unstarted: usize,
    closing: bool,
}

struct Shared {
    name: String,
    /// How many jobs may wait, not counting those that an idle thread is about to take.
    queue: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run outside the lock, so the state is consistent even after a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, ticket: Ticket, job: Job) -> Result<(), Error> {
        let mut state = self.lock();
        let free = state.idle + state.unstarted;
        if let Some(refused) = state.jobs.push(ticket, job, (free, self.queue)) {
            drop(state);
            // If it is the new job, its future hears so like any other's.
            refused(Turn::Refused);
            return Ok(());
        }
        if state.jobs.len() > state.idle && state.unstarted > 0 {
            return self.start_thread(state);
        }
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Starts a thread for the job just queued. If that fails, the job waits for the existing threads.
    fn start_thread(self: &Arc<Self>, mut state: MutexGuard<'_, State>) -> Result<(), Error> {
        let shared = Arc::clone(self);
        match thread::Builder::new().name(self.name.clone()).spawn(move || shared.work()) {
            Ok(_) => {
                state.unstarted -= 1;
                state.idle += 1;
                Ok(())
            }
            Err(_) if state.idle + state.busy > 0 => Ok(()),
            Err(_) => {
                // Without a thread there was no other job.
                state.jobs.pop();
                Err(Error::NoThread)
            }
        }
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // The job catches its own panics; this catches those of values dropped with it.
            let _ = catch_unwind(AssertUnwindSafe(|| job(Turn::Run)));
            let mut state = self.lock();
            (state.idle, state.busy) = (state.idle + 1, state.busy - 1);
        }
    }

    /// Waits for the next job. Returns `None` once the pool is closing and its queue is empty.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        while state.jobs.is_empty() && !state.closing {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let job = state.jobs.pop()?;
        (state.idle, state.busy) = (state.idle - 1, state.busy + 1);
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::block_on;

    #[test]
    fn a_job_runs_on_a_thread_of_the_pool() {
        let pool = Pool::new("hashers", 2, 4);
        let name = block_on(pool.run(|| thread::current().name().map(str::to_owned))).unwrap();
        assert_eq!(name.as_deref(), Some("hashers"));
    }

    #[test]
    fn a_job_beyond_threads_and_queue_is_refused_at_once_and_room_comes_back() {
        let pool = Pool::new("full", 1, 1);
        let (release, wait) = mpsc::channel::<()>();
        let running = pool.run(move || wait.recv().is_ok());
        let queued = pool.run(|| 2);
        // Two places in all: one on the thread, one in the queue.
        assert_eq!(block_on(pool.run(|| 3)), Err(Error::Full));
        release.send(()).unwrap();
        assert_eq!(block_on(running), Ok(true));
        assert_eq!(block_on(queued), Ok(2));
        assert_eq!(block_on(pool.run(|| 4)), Ok(4));
    }

    #[test]
    fn a_job_that_makes_room_for_that_of_another_group_fails() {
        let pool = Pool::new("fair", 1, 4);
        let (release, wait) = mpsc::channel::<()>();
        let held = pool.run(move || wait.recv().is_ok());
        while pool.queued() > 0 {
            thread::yield_now();
        }
        let stranger = |group| Ticket { group, is_known: false };
        let mut flood: Vec<_> = (0..3).map(|n| pool.run_for(stranger(1), move || n)).collect();
        let other = pool.run_for(stranger(2), || 10);
        assert_eq!(block_on(pool.run_for(stranger(1), || 3)), Err(Error::Full));
        assert_eq!(block_on(flood.remove(2)), Err(Error::Full));
        let known = pool.run_for(Ticket { group: 3, is_known: true }, || 20);
        release.send(()).unwrap();
        assert_eq!(block_on(held), Ok(true));
        assert_eq!((block_on(other), block_on(known)), (Ok(10), Ok(20)));
        assert_eq!(flood.into_iter().map(block_on).collect::<Vec<_>>(), [Ok(0), Ok(1)]);
    }

    #[test]
    fn no_more_threads_are_started_than_there_are_jobs_at_once() {
        let pool = Pool::new("lazy", 8, 0);
        assert_eq!(pool.shared.lock().unstarted, 8);
        for number in 0..20 {
            assert_eq!(block_on(pool.run(move || number)), Ok(number));
            // The thread counts itself idle only after it has delivered its job's result.
            while pool.shared.lock().idle == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(pool.shared.lock().unstarted, 7);
    }

    #[test]
    fn an_idle_thread_takes_a_job_even_without_a_queue() {
        let pool = Pool::new("none", 1, 0);
        assert_eq!(block_on(pool.run(|| 1)), Ok(1));
    }

    #[test]
    fn a_panic_is_an_error_and_the_thread_goes_on() {
        let pool = Pool::new("panics", 1, 1);
        let panicked: Result<(), Error> = block_on(pool.run(|| panic!("on purpose")));
        assert_eq!(panicked, Err(Error::Panicked));
        // The thread counts itself idle only after it has delivered its result, so this job may have to queue.
        assert_eq!(block_on(pool.run(|| 1)), Ok(1));
    }

    #[test]
    fn a_withdrawn_job_is_not_run_and_the_queue_is_finished_after_the_pool_is_dropped() {
        let pool = Pool::new("back", 1, 2);
        let (release, wait) = mpsc::channel::<()>();
        let (ran, runs) = mpsc::channel();
        let held = pool.run(move || wait.recv().is_ok());
        let withdrawn = pool.run({
            let ran = ran.clone();
            move || ran.send("withdrawn")
        });
        let last = pool.run(move || ran.send("last").is_ok());
        drop(withdrawn);
        drop(pool);
        release.send(()).unwrap();
        assert_eq!(block_on(held), Ok(true));
        assert_eq!(block_on(last), Ok(true));
        assert_eq!(runs.iter().collect::<Vec<_>>(), ["last"]);
    }
}
