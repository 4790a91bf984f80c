//! The tool on servers of others.

mod cold;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod confirm;
mod doctor;
mod experiment;
mod external;
#[cfg(feature = "fleet")]
mod fleet;
mod generators;
mod hops;
mod kernel;
#[cfg(feature = "fleet")]
mod kubernetes;
#[cfg(feature = "live")]
mod live;
mod mistakes;
mod namespaces;
mod observe;
mod predict;
#[cfg(feature = "profile")]
mod profile;
mod scenario;
mod stalls;
mod sweep;
mod terminal;
mod waiting;
