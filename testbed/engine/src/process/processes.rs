//! `processes`: one process per connection, forked when it arrives. Only what lies in shared memory is shared; what a
//! connection's service opens is its own.
//!
//! The parent accepts. At most `max_connections` children live at a time; further clients wait in the listen queue until
//! one has ended. While they wait, the children are told in turn to end connections that have been idle for a second.

use std::{
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use super::{
    children::Children,
    fork::{Exit, become_child, fork},
    parent::{self, ParentProcess},
};
use crate::{
    block_on::block_on,
    blocking::{connection::Connection, registry::Registry},
    connection_limit::Permit,
    error::EngineError,
    idle::{LOOK_EVERY, Looks},
    implementation::{Description, Implementation},
    listen::{Accept, Accepted, Acceptor},
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
        parent::start(options, 1, |parent| {
            let (children, refusal_logged, looks) = (Children::new(), Atomics::new(1), Looks::default());
            Supervisor { parent, factory, children, refusal_logged, looks }.run();
        })
    }
}

/// The parent process with a child for each connection.
struct Supervisor<F> {
    parent: ParentProcess,
    factory: F,
    /// Each child holds its place among the open connections.
    children: Children<Permit>,
    /// Set once any process has logged a refusal.
    refusal_logged: Atomics,
    looks: Looks,
}

impl<F: Factory> Supervisor<F> {
    fn run(mut self) {
        self.try_service();
        while self.parent.serving() {
            self.children.reap();
            match self.parent.acceptor.as_ref().map_or(Accept::Empty, |acceptor| acceptor.accept()) {
                Accept::Connection(accepted) => self.spawn(accepted),
                Accept::Refused => {}
                Accept::Empty => self.wait_for_connection(),
                Accept::Full => self.make_room(),
                Accept::Exhausted => self.parent.wait(None, Some(REST)),
            }
        }
        self.empty_queue();
        self.parent.drain(&mut self.children, |_, _| {});
    }

    /// Makes a service in a child, as every later child will, and reports the outcome to the caller.
    fn try_service(&mut self) {
        let parent = self.parent.pid;
        let tried = fork(|| {
            // Closed before the report, so that this child does not hold the port of a server that has already stopped.
            self.parent.acceptor = None;
            let made = become_child(parent).and_then(|()| self.factory.make::<Connection>());
            self.parent.report(&made);
            Exit::Done
        });
        if let Err(error) = tried {
            self.parent.report::<()>(&Err(error));
        }
    }

    /// Waits until another connection may be accepted, and ends idle ones if clients wait.
    fn make_room(&mut self) {
        let waiting = self.parent.acceptor.as_ref().map_or(0, Acceptor::waiting);
        if waiting == 0 {
            return self.wait_for_connection();
        }
        if self.looks.take() {
            self.children.close_idle(waiting);
        }
        self.parent.wait(None, Some(LOOK_EVERY));
    }

    fn wait_for_connection(&mut self) {
        // Taken out because the wait borrows the parent mutably.
        let acceptor = self.parent.acceptor.take();
        self.parent.wait(acceptor.as_ref().map(AsFd::as_fd), None);
        self.parent.acceptor = acceptor;
    }

    /// Accepts the clients that have already connected, then stops listening.
    fn empty_queue(&mut self) {
        let mut refusals = self.parent.acceptor.as_ref().map_or(0, Acceptor::waiting);
        let mut next = |acceptor: &Option<Acceptor>| acceptor.as_ref()?.accept_last(&mut refusals);
        while let Some(accepted) = next(&self.parent.acceptor) {
            self.spawn(accepted);
        }
        self.parent.acceptor = None;
    }

    fn spawn(&mut self, accepted: Accepted) {
        let Accepted { socket, peer, permit } = accepted;
        self.factory.refresh();
        match fork(|| self.child(socket, peer)) {
            Ok(child) => self.children.insert(child, permit),
            Err(error) => self.refuse(peer, &error),
        }
    }

    /// The whole life of a child.
    fn child(&mut self, socket: OwnedFd, peer: SocketAddr) -> Exit {
        if become_child(self.parent.pid).is_err() {
            return Exit::Failed;
        }
        self.parent.acceptor = None;
        let registry = Arc::new(Registry::of_child(Arc::clone(&self.parent.control)));
        let accepted = Accepted { socket, peer, permit: Permit::held_elsewhere() };
        contain(peer, self.parent.limit.counters(), || match self.factory.make() {
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
        self.parent.limit.counters().count_refused();
        if self.refusal_logged[0].swap(1, Relaxed) == 0 {
            tracing::warn!(%peer, %error, "a connection was closed unserved; others will only be counted");
        }
    }
}
