//! Experiments: start systems, make data, sweep, collect.
//!
//! [`sweep`] drives one target from one user to saturation and beyond; [`single`] makes one load.
//! [`experiment`] says what systems to start and what to drive them with, and [`run`](mod@run) does it.

pub mod conclusion;
pub mod cores;
pub mod data;
pub mod database_watch;
pub mod databases;
pub mod experiment;
pub mod link;
pub mod page_cache;
pub mod peers;
pub mod progress;
mod proof;
pub mod run;
pub mod single;
pub mod study;
pub mod sweep;
pub mod systems;
pub mod target;
mod tiers;
