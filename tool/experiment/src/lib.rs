//! Experiments on any programs: a file names what to start, what to drive it with and what varies; every variant is
//! measured, and what was measured is joined into one comparison.
//!
//! ```text
//! document (TOML) -> definition::Experiment -> trials -> resolve: names filled in
//!                                                 run: process (guards, readiness) -> load or sweep -> proof
//!                                                                                          -> comparison
//! ```

pub mod comparison;
mod confirming;
mod data;
pub mod definition;
pub mod document;
pub mod journal;
mod length;
pub mod names;
mod process;
pub mod programs;
pub mod progress;
mod resolve;
pub mod room;
pub mod run;
pub mod template;
mod trials;

pub use process::{Trouble, guard, link};
