//! The real program on real servers.

mod lab;
mod mistakes;
mod serve;
mod sink;
mod support;
mod sweep;
