//! The connection of models whose calls block: a read waits in the kernel, and the future never has to.

mod connection;
mod front;
mod queue;
mod refusals;
mod registry;

pub use connection::Connection;
pub(crate) use front::{Crew, Front};
pub(crate) use queue::Queue;
pub(crate) use registry::{Pressure, Registry, Seat};
