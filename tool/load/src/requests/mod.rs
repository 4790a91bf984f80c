//! Requests and responses as bytes, without I/O.

pub(crate) mod capture;
mod compile;
mod filler;
pub(crate) mod program;
mod rendering;
pub(crate) mod response;

pub(crate) use compile::base_prefix;
pub(crate) use program::Program;
pub(crate) use rendering::{Rendered, Scratch};
