//! `pool`: so many threads, and a bounded queue of connections that wait for one of them.
//!
//! A worker serves a connection to its end. While others wait and no worker is free, a connection ends after the
//! request in hand ([`draining`](crate::service::Connection::draining) says so), and one that waits for its next
//! request is ended: kept connections do not starve those that wait.

use std::{
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use crate::{
    block_on::block_on_until,
    blocking::{Connection, Crew, Front, Pressure, Queue, Registry, Seat},
    counters::Counters,
    error::EngineError,
    listen::Accepted,
    panics::contain,
    server::{Options, Server},
    service::{Factory, Service},
};

pub(crate) fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    let front = Front::new(options)?;
    let queue = Arc::new(Queue::new(options, Arc::clone(&front.control)));
    let pressure: Arc<dyn Pressure> = queue.clone();
    let registry = Registry::new(Arc::clone(&front.control)).under(pressure);
    let pool =
        Arc::new(Pool { queue, registry: Arc::new(registry), counters: Arc::clone(&options.counters) });
    let workers = pool.hire(options, factory)?;
    front.start(options, pool, workers)
}

/// The workers and what waits for them.
struct Pool {
    queue: Arc<Queue>,
    registry: Arc<Registry>,
    counters: Arc<Counters>,
}

impl Crew for Pool {
    fn take(self: &Arc<Self>, accepted: Accepted) -> Result<(), Accepted> {
        self.queue.push(accepted)?;
        if self.queue.others_wait() {
            self.registry.end_one_kept();
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    fn finish(&self) {
        self.queue.close();
    }

    fn forget_waiting(&self) {
        self.queue.clear();
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl Pool {
    /// Starts the workers, each with a service of its own.
    fn hire<F: Factory>(
        self: &Arc<Self>,
        options: &Options,
        factory: F,
    ) -> Result<Vec<JoinHandle<()>>, EngineError> {
        let factory = Arc::new(factory);
        let (made, outcomes) = mpsc::channel();
        let mut workers = Vec::new();
        for _ in 0..options.workers.max(1) {
            let (pool, factory, made) = (Arc::clone(self), Arc::clone(&factory), made.clone());
            let seat = Registry::seat(&self.registry);
            let builder = thread::Builder::new().name(options.name.clone());
            let worker = builder.spawn(move || pool.work(&seat, &*factory, made));
            // Those already started end with the queue.
            let worker = worker.inspect_err(|_| self.queue.close());
            workers.push(worker.map_err(EngineError::system("a thread"))?);
        }
        drop(made);
        let outcome: Result<(), _> = outcomes.iter().collect();
        outcome.inspect_err(|_| self.queue.close()).map_err(|source| EngineError::Service { source })?;
        Ok(workers)
    }

    fn work<F: Factory>(&self, seat: &Seat, factory: &F, made: mpsc::Sender<std::io::Result<()>>) {
        seat.take();
        let service = match factory.make::<Connection>() {
            Ok(service) => service,
            Err(error) => {
                // The starter waits for every outcome.
                let _ = made.send(Err(error));
                return;
            }
        };
        let _ = made.send(Ok(()));
        drop(made);
        while let Some(accepted) = self.queue.pop() {
            contain(accepted.peer, &self.counters, || self.serve(&service, accepted));
        }
    }

    fn serve<S: Service<Connection>>(&self, service: &S, accepted: Accepted) {
        // It fails only when everything is to end.
        if let Ok(connection) = Connection::accepted(accepted, Arc::clone(&self.registry)) {
            block_on_until(service.serve(connection), || self.registry.aborted());
        }
    }
}
