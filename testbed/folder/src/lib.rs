//! A folder whose files are sent over HTTP, and from which no path leads out.
//!
//! - [`Folder`] is all that a system needs that only sends files.
//! - [`Root`] opens paths beneath a folder; the kernel refuses every path that leaves it.
//! - [`OpenFiles`] caches files together with the header of their response, [`send`] answers a request with one.
//! - [`FileState`] tells one state of a file from another.

mod error;
mod file_state;
mod folder;
pub mod media_type;
mod open_files;
mod representation;
mod root;
mod selection;
mod sending;
mod target;

pub use self::{
    error::FolderError,
    file_state::{DATE_S_MAX, FileState},
    folder::Folder,
    open_files::{FindError, Found, Front, FrontEntry, OpenFiles, PathRules, is_reserved, is_reserved_name},
    representation::Representation,
    root::{Changed, OpenError, Opened, Root, split},
    sending::{is_current, send},
    target::{BadTarget, Target, decode},
};
