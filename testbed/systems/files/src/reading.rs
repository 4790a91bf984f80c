//! Sending files and lists of them.

use crate::access::permissions::Permissions;

pub(crate) mod lister;
pub(crate) mod listing;
pub(crate) mod sending;

/// The files of the whole server.
pub(crate) type OpenFiles = folder::OpenFiles<Permissions>;
