//! Values that are checked once, when they are read.

pub(crate) mod day;
pub(crate) mod guest;
pub(crate) mod room;
