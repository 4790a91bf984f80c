//! Drives a load or a sweep against a target, watches it meanwhile, and concludes.
//!
//! [`sweep`](mod@sweep) raises the number of users from one to saturation and beyond; [`single`] makes one load. Both
//! work on any server: nothing here knows what it is.

pub mod conclusion;
mod confirm;
pub mod cores;
pub mod database;
pub mod elsewhere;
pub mod progress;
pub mod single;
pub mod sweep;
mod target;
mod tell_apart;
