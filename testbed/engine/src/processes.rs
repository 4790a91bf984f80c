//! `processes`: one process per connection, forked when it comes. Nothing is shared but what lies in shared memory;
//! what a connection's service opens is its own.
//!
//! The front accepts, and no more than `max_connections` children live at one time: further peers wait in the listen
//! queue until one has ended.

use std::{
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use crate::{
    block_on::block_on,
    blocking::{Connection, Registry},
    counters::Permit,
    error::EngineError,
    listen::{Accept, Accepted},
    panics::contain,
    process::{self, Ended, Front, Household, become_child, fork},
    server::{Options, Server},
    service::{Factory, Service},
    shared::Atomics,
};

/// How long accepting rests when the system is short of something.
const REST: Duration = Duration::from_millis(20);

pub(crate) fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    // Its child that tries to make a service reports whether it could.
    process::start(options, 1, |front| {
        Host { front, factory, children: Household::new(), told_refusal: Atomics::new(1) }.run();
    })
}

/// The front, with a child for each connection.
struct Host<F> {
    front: Front,
    factory: F,
    /// Each holds its place among the open connections.
    children: Household<Permit>,
    /// Whether a refusal was told, by whatever process.
    told_refusal: Atomics,
}

impl<F: Factory> Host<F> {
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

    /// Makes a service in a child, as every child will, and tells the caller how that went.
    fn try_service(&mut self) {
        let front = self.front.pid;
        let tried = fork(|| {
            // Before it reports: nobody may find the port held by a server that has started and stopped since.
            self.front.acceptor = None;
            let made = become_child(front).and_then(|()| self.factory.make::<Connection>());
            self.front.report().send(&made);
            Ended::Done
        });
        if let Err(error) = tried {
            self.front.report().send::<()>(&Err(error));
        }
    }

    fn wait_for_connection(&mut self) {
        // Taken out for the time, as the front is changed by the wait.
        let acceptor = self.front.acceptor.take();
        self.front.wait(acceptor.as_ref().map(AsFd::as_fd), None);
        self.front.acceptor = acceptor;
    }

    /// Takes in what has connected already, then stops listening.
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

    /// The child's whole life.
    fn child(&mut self, socket: OwnedFd, peer: SocketAddr) -> Ended {
        if become_child(self.front.pid).is_err() {
            return Ended::Failed;
        }
        self.front.acceptor = None;
        let registry = Arc::new(Registry::of_child(Arc::clone(&self.front.control)));
        let accepted = Accepted { socket, peer, permit: Permit::held_elsewhere() };
        contain(peer, self.front.gate.counters(), || match self.factory.make() {
            Ok(service) => {
                // It fails only when everything is to end.
                if let Ok(connection) = Connection::accepted(accepted, registry) {
                    block_on(Service::<Connection>::serve(&service, connection));
                }
            }
            Err(error) => self.refuse(peer, &error),
        });
        Ended::Done
    }

    /// A connection is closed unserved: no process could be had for it, or no service made in it.
    fn refuse(&self, peer: SocketAddr, error: &std::io::Error) {
        self.front.gate.counters().count_refused();
        if self.told_refusal[0].swap(1, Relaxed) == 0 {
            tracing::warn!(%peer, %error, "a connection was closed unserved; others will only be counted");
        }
    }
}
