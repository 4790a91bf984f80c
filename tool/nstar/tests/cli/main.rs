//! The tool on servers of others.

#[path = "../common/mod.rs"]
mod common;
mod external;
mod mistakes;
mod sweep;
mod waiting;
