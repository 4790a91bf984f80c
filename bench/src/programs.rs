//! The programs that are compared, and how each is started.

pub(crate) mod bare_server;
pub(crate) mod generators;
pub(crate) mod nginx;
pub(crate) mod nstar_load;
pub(crate) mod servers;
