//! Sending files and lists of them.
//!
//! `open_files` finds what a request names, `selection` decides what of it is wanted, and `sending` answers.

pub(crate) mod lister;
pub(crate) mod listing;
pub(crate) mod media_type;
pub(crate) mod open_files;
pub(crate) mod representation;
pub(crate) mod selection;
pub(crate) mod sending;
