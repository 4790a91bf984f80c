//! `threads`: one thread per connection. The kernel schedules; each thread blocks for itself.

use std::{io, sync::Arc, thread};

use crate::{
    block_on::block_on_until,
    blocking::{Connection, Crew, Front, Registry, Seat},
    counters::Gate,
    error::EngineError,
    listen::{Accepted, Trouble},
    panics::contain,
    server::{Options, Server},
    service::{Factory, Service},
};

/// Stack of a connection's thread. Only what is touched takes memory.
const STACK_BYTES: usize = 1 << 20;

pub(crate) fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    // A service is made by each connection's thread; one made here shows at once whether that works.
    factory.make::<Connection>().map_err(|source| EngineError::Service { source })?;
    let front = Front::new(options)?;
    let host = Arc::new(Host {
        factory,
        registry: Arc::new(Registry::new(Arc::clone(&front.control))),
        name: options.name.clone(),
        gate: Arc::clone(&front.gate),
        trouble: Trouble::default(),
    });
    front.start(options, host, Vec::new())
}

/// What every connection's thread needs.
struct Host<F> {
    factory: F,
    registry: Arc<Registry>,
    name: String,
    gate: Arc<Gate>,
    trouble: Trouble,
}

impl<F: Factory> Crew for Host<F> {
    fn take(self: &Arc<Self>, accepted: Accepted) -> Result<(), Accepted> {
        let (host, seat) = (Arc::clone(self), Registry::seat(&self.registry));
        let builder = thread::Builder::new().name(self.name.clone()).stack_size(STACK_BYTES);
        if let Err(error) = builder.spawn(move || host.serve(accepted, &seat)) {
            self.refuse(&error);
        }
        Ok(())
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl<F: Factory> Host<F> {
    fn serve(&self, accepted: Accepted, seat: &Seat) {
        let peer = accepted.peer;
        contain(peer, self.gate.counters(), || {
            seat.take();
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
        self.trouble.refused(self.gate.counters(), error);
    }
}
