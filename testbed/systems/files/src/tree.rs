//! What is served: the folder, the names in it, and which state of a file one is.

pub(crate) mod identity;
pub(crate) mod names;
pub(crate) mod root;
pub(crate) mod target;
