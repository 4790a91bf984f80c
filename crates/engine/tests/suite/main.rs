//! Every model, through real sockets, against the same expectations.

mod common;
mod transfer;
