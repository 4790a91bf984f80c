//! The real program on real servers.

mod concurrency;
mod disk;
mod files;
mod lab;
mod link;
mod locks;
mod mistakes;
mod peers;
#[path = "../program/mod.rs"]
mod program;
mod serve;
mod share;
mod sink;
mod support;
mod sweep;
mod threads;
mod tiers;
mod waiting;
