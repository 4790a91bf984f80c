//! `pool`: a fixed number of threads, and a bounded queue of connections that wait for one of them.
//!
//! A worker serves a connection to its end. While others wait and no worker is free, a connection ends after the
//! current request ([`draining`](crate::service::Connection::draining) says so), one that is waiting for its next
//! request is closed, and so is one that has not sent its first for a second. This way idle connections do not starve
//! waiting ones.

use std::{
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use super::{
    accept_loop::{AcceptHandler, AcceptLoop},
    connection::Connection,
    queue::Queue,
    registry::{Contention, Registry, ThreadEntry},
};
use crate::{
    block_on::block_on_until,
    counters::Counters,
    error::EngineError,
    implementation::{Description, Implementation},
    listen::Accepted,
    options::Options,
    panics::contain,
    server::Server,
    service::{Factory, Service},
};

/// The model `pool`.
pub(crate) struct Pool;

impl Implementation for Pool {
    const DESCRIPTION: Description =
        Description { has_workers: true, has_queue: true, ..Description::named("pool") };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        let accept_loop = AcceptLoop::new(options)?;
        let queue = Arc::new(Queue::new(options, Arc::clone(&accept_loop.control)));
        let contention: Arc<dyn Contention> = queue.clone();
        let registry = Arc::new(Registry::new(Arc::clone(&accept_loop.control)).with_contention(contention));
        let workers = Arc::new(Workers { queue, registry, counters: Arc::clone(&options.counters) });
        let threads = workers.start(options, factory)?;
        accept_loop.start(options, workers, threads)
    }
}

/// The workers, and the connections that wait for them.
struct Workers {
    queue: Arc<Queue>,
    registry: Arc<Registry>,
    counters: Arc<Counters>,
}

impl AcceptHandler for Workers {
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

    fn crowd(&self) -> usize {
        self.queue.unattended()
    }

    fn finish(&self) {
        self.queue.close();
    }

    fn close_waiting(&self) {
        self.queue.clear();
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl Workers {
    /// Starts the workers' threads, each with a service of its own.
    fn start<F: Factory>(
        self: &Arc<Self>,
        options: &Options,
        factory: F,
    ) -> Result<Vec<JoinHandle<()>>, EngineError> {
        let factory = Arc::new(factory);
        let (made, outcomes) = mpsc::channel();
        let mut threads = Vec::new();
        for _ in 0..options.workers.max(1) {
            let (workers, factory, made) = (Arc::clone(self), Arc::clone(&factory), made.clone());
            let entry = Registry::add_thread(&self.registry);
            let builder = thread::Builder::new().name(options.name.clone());
            let thread = builder.spawn(move || workers.work(&entry, &*factory, made));
            // Closing the queue ends the threads already started.
            let thread = thread.inspect_err(|_| self.queue.close());
            threads.push(thread.map_err(EngineError::system("a thread"))?);
        }
        drop(made);
        let outcome: Result<(), _> = outcomes.iter().collect();
        outcome.inspect_err(|_| self.queue.close()).map_err(|source| EngineError::Service { source })?;
        Ok(threads)
    }

    fn work<F: Factory>(&self, entry: &ThreadEntry, factory: &F, made: mpsc::Sender<std::io::Result<()>>) {
        entry.run_here();
        let service = match factory.make::<Connection>() {
            Ok(service) => service,
            Err(error) => {
                // The receiver waits for every outcome, so sending cannot fail.
                let _ = made.send(Err(error));
                return;
            }
        };
        // Before the server is said to run: the first connections would find no idle worker.
        self.queue.rest();
        let _ = made.send(Ok(()));
        drop(made);
        while let Some(accepted) = self.queue.pop() {
            contain(accepted.peer, &self.counters, || self.serve(&service, accepted));
            self.queue.rest();
        }
    }

    fn serve<S: Service<Connection>>(&self, service: &S, accepted: Accepted) {
        // This fails only while everything is being closed.
        if let Ok(connection) = Connection::accepted(accepted, Arc::clone(&self.registry)) {
            block_on_until(service.serve(connection), || self.registry.aborted());
        }
    }
}
