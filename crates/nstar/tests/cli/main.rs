//! The real program on real servers.

mod mistakes;
mod serve;
mod sink;
mod support;
mod sweep;
