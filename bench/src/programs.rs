//! The programs that are compared, and how each is started.

pub(crate) mod compiler;
pub(crate) mod generators;
pub(crate) mod servers;
