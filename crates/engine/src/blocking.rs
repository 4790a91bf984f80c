//! The connection of models whose calls block: a read waits in the kernel, and the future never has to.

mod connection;
mod registry;

pub(crate) use connection::Connection;
pub(crate) use registry::{Registry, Seat};
