//! `threads`: one thread per connection. The kernel schedules, and each thread blocks on its own.

use std::{io, sync::Arc, thread};

use super::{
    accept_loop::{AcceptHandler, AcceptLoop},
    connection::Connection,
    registry::{Registry, ThreadEntry},
};
use crate::{
    block_on::block_on_until,
    connection_limit::ConnectionLimit,
    error::EngineError,
    implementation::{Description, Implementation},
    listen::{AcceptLog, Accepted},
    options::Options,
    panics::contain,
    server::Server,
    service::{Factory, Service},
};

/// Stack size of a connection's thread. Only the part that is touched takes memory.
const STACK_BYTES: usize = 1 << 20;

/// The model `threads`.
pub(crate) struct Threads;

impl Implementation for Threads {
    const DESCRIPTION: Description = Description::named("threads");

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        // Each connection's thread makes a service; making one here shows at once whether that works.
        factory.make::<Connection>().map_err(|source| EngineError::Service { source })?;
        let accept_loop = AcceptLoop::new(options)?;
        let handler = Arc::new(ThreadPerConnection {
            factory,
            registry: Arc::new(Registry::new(Arc::clone(&accept_loop.control))),
            name: options.name.clone(),
            limit: Arc::clone(&accept_loop.limit),
            log: AcceptLog::default(),
        });
        accept_loop.start(options, handler, Vec::new())
    }
}

/// Starts a thread for each accepted connection.
struct ThreadPerConnection<F> {
    factory: F,
    registry: Arc<Registry>,
    name: String,
    limit: Arc<ConnectionLimit>,
    log: AcceptLog,
}

impl<F: Factory> AcceptHandler for ThreadPerConnection<F> {
    fn take(self: &Arc<Self>, accepted: Accepted) -> Result<(), Accepted> {
        let (this, entry) = (Arc::clone(self), Registry::add_thread(&self.registry));
        let builder = thread::Builder::new().name(self.name.clone()).stack_size(STACK_BYTES);
        if let Err(error) = builder.spawn(move || this.serve(accepted, &entry)) {
            self.refuse(&error);
        }
        Ok(())
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl<F: Factory> ThreadPerConnection<F> {
    fn serve(&self, accepted: Accepted, entry: &ThreadEntry) {
        let peer = accepted.peer;
        contain(peer, self.limit.counters(), || {
            entry.run_here();
            match self.open(accepted) {
                Ok((service, connection)) => {
                    block_on_until(service.serve(connection), || self.registry.aborted());
                }
                Err(error) => self.refuse(&error),
            }
        });
    }

    fn open(&self, accepted: Accepted) -> io::Result<(F::Service<Connection>, Connection)> {
        Ok((self.factory.make()?, Connection::accepted(accepted, Arc::clone(&self.registry))?))
    }

    fn refuse(&self, error: &io::Error) {
        self.log.refused(self.limit.counters(), error);
    }
}
