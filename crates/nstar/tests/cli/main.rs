//! The real program on real servers.

mod mistakes;
mod serve;
mod support;
mod sweep;
