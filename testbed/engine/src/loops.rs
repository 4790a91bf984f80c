//! What the families with loops share: starting the loops, their tasks, and how a task waits.
//!
//! A [`Loop`] is a thread with a listening socket and a service of its own. Its [`Crew`] polls the tasks,
//! each straight from what makes it ready; what makes them ready is the family's own.

mod arena;
mod crew;
mod tasks;
mod timers;
mod turn;
mod wait;

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    os::fd::OwnedFd,
    sync::{Arc, mpsc},
    task::Poll,
    thread::{self, JoinHandle},
    time::Duration,
};

pub(crate) use self::{
    arena::{Arena, Key},
    crew::Crew,
    tasks::Remote,
    timers::{Target, Timers},
    turn::Turn,
    wait::Wait,
};
use crate::{
    clock::{self, Micros, NEVER},
    control::{Control, Notifier},
    counters::{Counters, Gate},
    error::EngineError,
    listen::{self, Trouble},
    server::{Options, Server},
    service::Factory,
};

/// How long accepting rests when the system is short of something, in microseconds.
pub(crate) const REST_US: Micros = 20_000;
/// Longest wait, well below what a poller counts in 32 bits of milliseconds.
const WAIT_MAX_US: Micros = 3_600_000_000;

/// One loop: made and run on its own thread.
pub(crate) trait Loop<F>: Sized {
    /// Makes it ready to run.
    fn new(parts: Parts<F>) -> Result<Self, EngineError>;

    /// The calling thread runs it from now on.
    fn begin(&self);

    /// Whether the server has drained.
    fn is_finished(&self) -> bool;

    /// Waits for something to do, and does it.
    fn turn(&mut self) -> io::Result<()>;
}

/// Runs it until the server has drained.
fn run<F>(mut worker: impl Loop<F>) {
    worker.begin();
    while !worker.is_finished() {
        if let Err(error) = worker.turn() {
            tracing::error!(%error, "a loop cannot go on and ends");
            return;
        }
    }
}

/// What a loop is made of.
pub(crate) struct Parts<F> {
    pub(crate) factory: Arc<F>,
    pub(crate) listener: OwnedFd,
    pub(crate) control: Arc<Control>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) trouble: Arc<Trouble>,
    pub(crate) remote: Arc<Remote>,
}

/// Starts the loops, each a thread with a listening socket and a service of its own.
pub(crate) fn start<L: Loop<F>, F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    let (local, listeners) = listen::open(options.listen, options.backlog, options.loops.max(1))?;
    let remotes = remotes(listeners.len())?;
    let control =
        Arc::new(Control::new(remotes.iter().map(|remote| Arc::clone(remote.notifier())).collect()));
    let counters = Arc::clone(&options.counters);
    let gate = Arc::new(Gate::new(options.max_connections, Arc::clone(&counters), Arc::clone(&control)));
    let (factory, trouble) = (Arc::new(factory), Arc::default());
    let (started, outcomes) = mpsc::channel();
    let mut server =
        Server { local, counters: Arc::clone(&counters), control: Arc::clone(&control), workers: Vec::new() };
    // An error drops the server, which stops the loops already running.
    for (listener, remote) in listeners.into_iter().zip(remotes) {
        let parts = Parts {
            factory: Arc::clone(&factory),
            listener,
            control: Arc::clone(&control),
            counters: Arc::clone(&counters),
            gate: Arc::clone(&gate),
            trouble: Arc::clone(&trouble),
            remote,
        };
        let worker = spawn::<L, F>(&options.name, parts, started.clone());
        server.workers.push(worker.map_err(EngineError::system("a thread"))?);
    }
    drop(started);
    outcomes.iter().collect::<Result<(), _>>()?;
    Ok(server)
}

fn remotes(count: usize) -> Result<Vec<Arc<Remote>>, EngineError> {
    let remote = |_| Ok(Arc::new(Remote::new(Arc::new(Notifier::new()?))));
    (0..count).map(remote).collect::<Result<_, _>>().map_err(EngineError::system("an event descriptor"))
}

fn spawn<L: Loop<F>, F: Factory>(
    name: &str,
    parts: Parts<F>,
    started: mpsc::Sender<Result<(), EngineError>>,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(move || match L::new(parts) {
        Ok(worker) => {
            // The starter waits for every outcome.
            let _ = started.send(Ok(()));
            drop(started);
            run(worker);
        }
        Err(error) => {
            let _ = started.send(Err(error));
        }
    })
}

/// Waits: the task being polled has its turn again once the time is over.
pub(crate) async fn sleep(turn: &Turn, timers: &RefCell<Timers>, how_long: Duration) {
    let end = clock::after(clock::now(), how_long);
    poll_fn(|_| match clock::now() >= end {
        true => Poll::Ready(()),
        false => {
            timers.borrow_mut().set(end, Target::Task(turn.current()));
            Poll::Pending
        }
    })
    .await;
}

/// How long a loop may wait that has nothing to do before `next`; none is for ever.
///
/// Rounded up to milliseconds, which every system call can wait, so that the loop does not spin before the time.
pub(crate) fn timeout(next: Micros) -> Option<Duration> {
    (next != NEVER).then(|| Duration::from_millis(clock::until(next).min(WAIT_MAX_US).div_ceil(1_000)))
}
