//! Listings of folders, error responses for files, and what a user may know about themselves.

pub(crate) mod listing;
pub(crate) mod me;
pub(crate) mod sending;
