//! The command line of the tool: flags, a validated plan, stages in order.
//!
//! A library as well as a program, so that `nstar-lab` takes the same flags, shows progress the same way, writes the
//! same files and ends with the same exit codes.

pub mod ci;
pub mod commands;
pub mod exit;
pub mod flags;
pub mod gate;
pub mod interrupt;
pub mod output;
pub mod progress;
pub mod values;
#[cfg(feature = "live")]
pub mod view;
#[cfg(not(feature = "live"))]
#[path = "view/plain.rs"]
pub mod view;

pub use load::document;
