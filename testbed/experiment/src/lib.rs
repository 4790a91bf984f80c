//! Experiments: start systems, make data, measure every variant, collect.
//!
//! An [`Experiment`](definition::Experiment) says what systems to start and what to drive them with. It comes from the
//! [`library`] or a file, [`run`](mod@run) carries it out, and [`comparison`] joins what was measured.

pub mod comparison;
mod data;
pub mod definition;
pub mod library;
pub mod names;
pub mod room;
pub mod run;
mod servers;
pub mod size;

pub use servers::link;
