//! `processes`: one process per connection, forked when it arrives. Only what lies in shared memory is shared; what a
//! connection's service opens is its own.
//!
//! The front accepts. At most `max_connections` children live at a time; further clients wait in the listen queue until
//! one has ended.

use std::{
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use super::{
    children::Children,
    fork::{Exit, become_child, fork},
    front::{self, FrontProcess},
};
use crate::{
    block_on::block_on,
    blocking::{connection::Connection, registry::Registry},
    connection_limit::Permit,
    error::EngineError,
    implementation::{Description, Implementation},
    listen::{Accept, Accepted},
    options::Options,
    panics::contain,
    server::Server,
    service::{Factory, Service},
    shared::Atomics,
};

/// How long accepting pauses when the system is out of descriptors or memory.
const REST: Duration = Duration::from_millis(20);

/// The model `processes`.
pub(crate) struct Processes;

impl Implementation for Processes {
    const DESCRIPTION: Description = Description { forks: true, ..Description::named("processes") };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        // One report comes from the child that tries to make a service.
        front::start(options, 1, |front| {
            let (children, refusal_logged) = (Children::new(), Atomics::new(1));
            Supervisor { front, factory, children, refusal_logged }.run();
        })
    }
}

/// The front process with a child for each connection.
struct Supervisor<F> {
    front: FrontProcess,
    factory: F,
    /// Each child holds its place among the open connections.
    children: Children<Permit>,
    /// Set once any process has logged a refusal.
    refusal_logged: Atomics,
}

impl<F: Factory> Supervisor<F> {
    fn run(mut self) {
        self.try_service();
        while self.front.serving() {
            self.children.reap();
            match self.front.acceptor.as_ref().map_or(Accept::Empty, |acceptor| acceptor.accept()) {
                Accept::Connection(accepted) => self.spawn(accepted),
                Accept::Empty => self.wait_for_connection(),
                Accept::Full => self.front.wait(None, None),
                Accept::Exhausted => self.front.wait(None, Some(REST)),
            }
        }
        self.empty_queue();
        self.front.drain(&mut self.children, |_, _| {});
    }

    /// Makes a service in a child, as every later child will, and reports the outcome to the caller.
    fn try_service(&mut self) {
        let front = self.front.pid;
        let tried = fork(|| {
            // Closed before the report, so that this child does not hold the port of a server that has already stopped.
            self.front.acceptor = None;
            let made = become_child(front).and_then(|()| self.factory.make::<Connection>());
            self.front.report(&made);
            Exit::Done
        });
        if let Err(error) = tried {
            self.front.report::<()>(&Err(error));
        }
    }

    fn wait_for_connection(&mut self) {
        // Taken out because the wait borrows the front mutably.
        let acceptor = self.front.acceptor.take();
        self.front.wait(acceptor.as_ref().map(AsFd::as_fd), None);
        self.front.acceptor = acceptor;
    }

    /// Accepts the clients that have already connected, then stops listening.
    fn empty_queue(&mut self) {
        while let Some(Accept::Connection(accepted)) =
            self.front.acceptor.as_ref().map(|acceptor| acceptor.accept())
        {
            self.spawn(accepted);
        }
        self.front.acceptor = None;
    }

    fn spawn(&mut self, accepted: Accepted) {
        let Accepted { socket, peer, permit } = accepted;
        match fork(|| self.child(socket, peer)) {
            Ok(child) => self.children.insert(child, permit),
            Err(error) => self.refuse(peer, &error),
        }
    }

    /// The whole life of a child.
    fn child(&mut self, socket: OwnedFd, peer: SocketAddr) -> Exit {
        if become_child(self.front.pid).is_err() {
            return Exit::Failed;
        }
        self.front.acceptor = None;
        let registry = Arc::new(Registry::of_child(Arc::clone(&self.front.control)));
        let accepted = Accepted { socket, peer, permit: Permit::held_elsewhere() };
        contain(peer, self.front.limit.counters(), || match self.factory.make() {
            Ok(service) => {
                // This fails only while everything is being closed.
                if let Ok(connection) = Connection::accepted(accepted, registry) {
                    block_on(Service::<Connection>::serve(&service, connection));
                }
            }
            Err(error) => self.refuse(peer, &error),
        });
        Exit::Done
    }

    /// Counts and logs a connection closed unserved, because there is no process for it or no service in it.
    fn refuse(&self, peer: SocketAddr, error: &std::io::Error) {
        self.front.limit.counters().count_refused();
        if self.refusal_logged[0].swap(1, Relaxed) == 0 {
            tracing::warn!(%peer, %error, "a connection was closed unserved; others will only be counted");
        }
    }
}
