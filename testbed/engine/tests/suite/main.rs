//! All models, through real sockets, against the same expectations.

mod commands;
mod common;
mod exhaustion;
mod high_descriptors;
mod limits;
mod many;
mod overload;
mod processes;
mod stopping;
mod tiers;
mod transfer;
mod waiting;
