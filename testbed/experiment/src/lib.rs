//! Experiments: start systems, make data, measure every variant, collect.
//!
//! [`experiment`] says what systems to start and what to drive them with, and [`run`](mod@run) does it.

pub mod data;
pub mod databases;
pub mod experiment;
pub mod link;
pub mod peers;
mod proof;
pub mod run;
pub mod study;
pub mod systems;
mod tiers;
