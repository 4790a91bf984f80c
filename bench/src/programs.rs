//! The programs that are compared, and how each is started.

mod compiler;
pub(crate) mod generators;
pub(crate) mod servers;
