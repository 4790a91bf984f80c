//! The readiness family: loops that ask the system which sockets are ready, and poll tasks in between.
//!
//! Generic over the [`Poller`], resolved at compile time.

mod arena;
mod connection;
mod poller;
mod reactor;
mod tasks;
mod timers;
mod worker;

use std::{
    os::fd::OwnedFd,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use rustix::net::SocketFlags;

pub(crate) use self::{
    arena::Key,
    poller::{Event, Interest, Poller},
};
use self::{tasks::Remote, worker::Worker};
use crate::{
    control::{Control, Notifier},
    counters::Gate,
    error::EngineError,
    listen::{self, Acceptor, Trouble},
    server::{Options, Server},
    service::Factory,
};

/// Starts the loops, each a thread with a listening socket, a poller and a service of its own.
pub(crate) fn start<P: Poller, F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    let (local, listeners) = listen::open(options.listen, options.backlog, options.loops.max(1))?;
    let remotes = remotes(listeners.len())?;
    let control =
        Arc::new(Control::new(remotes.iter().map(|remote| Arc::clone(remote.notifier())).collect()));
    let counters = Arc::clone(&options.counters);
    let gate = Arc::new(Gate::new(options.max_connections, Arc::clone(&counters), Arc::clone(&control)));
    let parts = Parts { factory: Arc::new(factory), control, gate, trouble: Arc::default() };
    let (started, outcomes) = mpsc::channel();
    let mut server = Server { local, counters, control: Arc::clone(&parts.control), workers: Vec::new() };
    // An error drops the server, which stops the loops already running.
    for (listener, remote) in listeners.into_iter().zip(remotes) {
        let worker = spawn::<P, F>(&options.name, parts.clone(), listener, remote, started.clone());
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

/// What the loops share.
struct Parts<F> {
    factory: Arc<F>,
    control: Arc<Control>,
    gate: Arc<Gate>,
    trouble: Arc<Trouble>,
}

impl<F> Clone for Parts<F> {
    fn clone(&self) -> Self {
        Self {
            factory: Arc::clone(&self.factory),
            control: Arc::clone(&self.control),
            gate: Arc::clone(&self.gate),
            trouble: Arc::clone(&self.trouble),
        }
    }
}

fn spawn<P: Poller, F: Factory>(
    name: &str,
    parts: Parts<F>,
    listener: OwnedFd,
    remote: Arc<Remote>,
    started: mpsc::Sender<Result<(), EngineError>>,
) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let acceptor = Acceptor::new(listener, SocketFlags::NONBLOCK, parts.gate, parts.trouble);
        match Worker::<P, F>::new(&*parts.factory, acceptor, parts.control, remote) {
            Ok(worker) => {
                // The starter waits for every outcome.
                let _ = started.send(Ok(()));
                drop(started);
                worker.run();
            }
            Err(error) => {
                let _ = started.send(Err(error));
            }
        }
    })
}
