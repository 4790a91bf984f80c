//! Servers with one bottleneck of known size each, and whether nstar finds it.
//!
//! A case names the tiers of a server and what a request does in each ([`stage`]). From that follow the throughput and
//! N* that the whole must have ([`queueing`]). The servers are started as ordinary processes ([`stacks`]), `nstar sweep`
//! measures them, here or from another host ([`far`]), and its verdict is held against the truth ([`grade`]).

pub mod case;
pub mod changes;
pub mod command;
pub mod far;
pub mod grade;
mod neighbour;
mod place;
mod process;
pub mod queueing;
pub mod run;
mod server;
mod stacks;
pub mod stage;
mod table;
pub mod tier;
mod trouble;

pub use trouble::Trouble;
