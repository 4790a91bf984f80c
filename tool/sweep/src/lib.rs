//! Drives a load or a sweep against a target, watches it meanwhile, and concludes.
//!
//! [`sweep`](mod@sweep) raises the number of users from one to saturation and beyond; [`single`] makes one load. Both
//! work on any server: nothing here knows what it is. [`driver`] makes the load: in this process, or in several elsewhere.

pub mod conclusion;
mod confirm;
pub mod cores;
pub mod database;
pub mod doctor;
pub mod driver;
pub mod elsewhere;
pub mod fleet;
mod following;
pub mod profiling;
pub mod progress;
pub mod single;
pub mod sweep;
mod target;
mod tell_apart;
