//! What the families with loops share: starting the loops, their tasks, and how a task waits.
//!
//! A [`Loop`] is a thread with a listening socket and a service of its own. Its [`Tasks`] polls each task straight from
//! the event that makes it ready. Which events those are depends on the family.

mod arena;
mod task;
mod tasks;
mod timers;

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
    task::{Turn, WakeQueue},
    tasks::Tasks,
    timers::{Timers, Wait, Wakeup},
};
use crate::{
    clock::{self, Micros, NEVER},
    connection_limit::ConnectionLimit,
    control::{Control, Notifier},
    counters::Counters,
    error::EngineError,
    listen::{self, AcceptLog},
    options::Options,
    server::Server,
    service::Factory,
};

/// How long accepting pauses when the system is out of descriptors or memory, in microseconds.
pub(crate) const REST_US: Micros = 20_000;
/// The longest wait, well below what fits in a poller's 32 bits of milliseconds.
const WAIT_MAX_US: Micros = 3_600_000_000;

/// One loop, which is made and run on its own thread.
pub(crate) trait Loop<F>: Sized {
    /// Prepares the loop.
    fn new(parts: LoopParts<F>) -> Result<Self, EngineError>;

    /// Declares that the calling thread runs the loop from now on.
    fn begin(&self);

    /// Whether the server has drained.
    fn is_finished(&self) -> bool;

    /// Waits for something to do, and does it.
    fn turn(&mut self) -> io::Result<()>;
}

/// Runs a loop until the server has drained. If it ends before, by an error or a panic, the server has failed.
fn run<F>(mut running: impl Loop<F>, control: &Control) {
    let unasked = EndsUnasked(control);
    running.begin();
    while !running.is_finished() {
        if let Err(error) = running.turn() {
            tracing::error!(%error, "a loop has failed and ends");
            return;
        }
    }
    std::mem::forget(unasked);
}

/// Dropped when a loop ends unasked.
struct EndsUnasked<'c>(&'c Control);

impl Drop for EndsUnasked<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}

/// What a loop is made of.
pub(crate) struct LoopParts<F> {
    pub(crate) factory: Arc<F>,
    pub(crate) listener: OwnedFd,
    pub(crate) control: Arc<Control>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) limit: Arc<ConnectionLimit>,
    pub(crate) log: Arc<AcceptLog>,
    pub(crate) wake_queue: Arc<WakeQueue>,
}

/// Starts the loops, each with a thread, a listening socket and a service of its own.
pub(crate) fn start<L: Loop<F>, F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    let (local, listeners) = listen::open(options, options.loops.max(1))?;
    let queues = wake_queues(listeners.len())?;
    let control = Arc::new(Control::new(queues.iter().map(|queue| Arc::clone(queue.notifier())).collect()));
    let counters = Arc::clone(&options.counters);
    let limit = Arc::new(ConnectionLimit::new(options, Arc::clone(&control)));
    let (factory, log) = (Arc::new(factory), Arc::default());
    let (started, outcomes) = mpsc::channel();
    let mut server =
        Server { local, counters: Arc::clone(&counters), control: Arc::clone(&control), threads: Vec::new() };
    // An error drops the server, which stops the loops already running.
    for (listener, wake_queue) in listeners.into_iter().zip(queues) {
        let parts = LoopParts {
            factory: Arc::clone(&factory),
            listener,
            control: Arc::clone(&control),
            counters: Arc::clone(&counters),
            limit: Arc::clone(&limit),
            log: Arc::clone(&log),
            wake_queue,
        };
        let thread = spawn::<L, F>(&options.name, parts, started.clone());
        server.threads.push(thread.map_err(EngineError::system("a thread"))?);
    }
    drop(started);
    outcomes.iter().collect::<Result<(), _>>()?;
    Ok(server)
}

fn wake_queues(count: usize) -> Result<Vec<Arc<WakeQueue>>, EngineError> {
    let queue = |_| Ok(Arc::new(WakeQueue::new(Arc::new(Notifier::new()?))));
    (0..count).map(queue).collect::<Result<_, _>>().map_err(EngineError::system("an event descriptor"))
}

fn spawn<L: Loop<F>, F: Factory>(
    name: &str,
    parts: LoopParts<F>,
    started: mpsc::Sender<Result<(), EngineError>>,
) -> io::Result<JoinHandle<()>> {
    let control = Arc::clone(&parts.control);
    thread::Builder::new().name(name.to_owned()).spawn(move || match L::new(parts) {
        Ok(ready) => {
            // The receiver waits for every outcome, so sending cannot fail.
            let _ = started.send(Ok(()));
            drop(started);
            run(ready, &control);
        }
        Err(error) => {
            let _ = started.send(Err(error));
        }
    })
}

/// Puts the current task to sleep.
pub(crate) async fn sleep(turn: &Turn, timers: &RefCell<Timers>, how_long: Duration) {
    let end = clock::after(clock::now(), how_long);
    poll_fn(|_| match clock::now() >= end {
        true => Poll::Ready(()),
        false => {
            timers.borrow_mut().set(end, Wakeup::Task(turn.current()));
            Poll::Pending
        }
    })
    .await;
}

/// How long a loop may wait that has nothing to do before `next`. `None` means for ever.
///
/// The time is rounded up to milliseconds, which every system call can wait, so that the loop does not spin at the end.
pub(crate) fn timeout(next: Micros) -> Option<Duration> {
    (next != NEVER).then(|| Duration::from_millis(clock::until(next).min(WAIT_MAX_US).div_ceil(1_000)))
}

#[cfg(test)]
mod tests {
    use std::{
        net::SocketAddr,
        sync::atomic::{AtomicU32, Ordering::SeqCst},
        time::Instant,
    };

    use super::*;
    use crate::service::{Connection, Service};

    /// Makes loops of which the first ends unasked.
    struct Ending {
        made: AtomicU32,
        panics: bool,
    }

    struct FakeLoop {
        parts: LoopParts<Ending>,
        number: u32,
    }

    impl Loop<Ending> for FakeLoop {
        fn new(parts: LoopParts<Ending>) -> Result<Self, EngineError> {
            let number = parts.factory.made.fetch_add(1, SeqCst);
            Ok(Self { parts, number })
        }

        fn begin(&self) {}

        fn is_finished(&self) -> bool {
            self.parts.control.draining()
        }

        fn turn(&mut self) -> io::Result<()> {
            thread::sleep(Duration::from_millis(1));
            match self.number {
                0 if self.parts.factory.panics => panic!("this is part of a test"),
                0 => Err(io::ErrorKind::Other.into()),
                _ => Ok(()),
            }
        }
    }

    struct Nothing;

    impl<C: Connection> Service<C> for Nothing {
        async fn serve(&self, _: C) {}
    }

    impl Factory for Ending {
        type Service<C: Connection> = Nothing;

        fn make<C: Connection>(&self) -> io::Result<Nothing> {
            Ok(Nothing)
        }
    }

    /// That a loop had ended was noticed only once all had.
    #[test]
    fn a_loop_that_ends_unasked_is_noticed_while_the_others_run() {
        for panics in [false, true] {
            let options = Options { loops: 3, ..Options::new(SocketAddr::from(([127, 0, 0, 1], 0))) };
            let server = start::<FakeLoop, _>(&options, Ending { made: AtomicU32::new(0), panics }).unwrap();
            let end = Instant::now() + Duration::from_secs(20);
            while !server.is_finished() {
                assert!(Instant::now() < end, "not noticed (panics: {panics})");
                thread::sleep(Duration::from_millis(1));
            }
            assert!(server.threads.iter().any(|thread| !thread.is_finished()), "the others serve on");
        }
    }
}
