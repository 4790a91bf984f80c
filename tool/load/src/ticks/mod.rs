//! What the threads measure: counts per slice of 20 ms, merged into ticks.

mod by_kind;
pub(crate) mod joined;
pub(crate) mod merger;
pub(crate) mod recorder;
pub(crate) mod totals;
