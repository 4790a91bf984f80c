//! The readiness family: loops that ask the system which sockets are ready, and poll tasks in between.
//!
//! Generic over the [`Poller`], resolved at compile time.

mod connection;
mod poller;
mod reactor;
mod worker;

pub(crate) use self::poller::{Event, Interest, Poller, Received};
use self::worker::Worker;
use crate::{
    error::EngineError,
    loops,
    server::{Options, Server},
    service::Factory,
};

/// Starts the loops, each with a poller of its own.
pub(crate) fn start<P: Poller, F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    loops::start::<Worker<P, F>, F>(options, factory)
}
