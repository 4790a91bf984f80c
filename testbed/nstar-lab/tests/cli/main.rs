//! The testbed's program, and the tool on its systems.

#[path = "../../../../tool/nstar/tests/common/mod.rs"]
mod common;
mod concurrency;
mod disk;
mod files;
mod hostile;
mod lab;
mod link;
mod locks;
mod mistakes;
mod peers;
mod reload;
mod rights;
mod series;
mod serve;
mod share;
mod sink;
mod threads;
mod tiers;
