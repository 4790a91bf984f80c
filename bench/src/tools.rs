//! How things are measured, counted and shown.

pub(crate) mod beside;
pub(crate) mod cpu;
pub(crate) mod effort;
pub(crate) mod kernel;
pub(crate) mod perf;
pub(crate) mod table;
pub(crate) mod turns;
pub(crate) mod under_way;
pub(crate) mod workspace;
