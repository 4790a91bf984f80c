//! Values that are checked once, when they are read.

pub(crate) mod aadhaar;
pub(crate) mod day;
pub(crate) mod guest_name;
pub(crate) mod room;
pub(crate) mod slot;
