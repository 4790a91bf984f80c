//! The completion family: a read hands a buffer over and gets it back full.
//!
//! `aio` reads this way on the loop of the readiness family. `uring` has a connection and a loop of its own.

pub(crate) mod aio;
pub(crate) mod uring;
