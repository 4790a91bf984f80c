//! A disk that loses power: a file system in memory, mounted by FUSE, that keeps apart what was synced and what was not.
//!
//! At the cut every length, page and name that was not synced survives or is lost by itself, as far as fsync(2) allows:
//!
//! - `fsync` and `fdatasync` of a file put its bytes and its length on the disk, but not its name, not even of a new file;
//!   `fsync` of a folder puts the names in it there, but nothing of what they stand for.
//! - A page (4 KiB) is as it was at the last sync or after any write since, whatever became of the others; some pages are
//!   torn, in sectors of 512 bytes. So is the length: a file may be longer than the bytes that survived, with zeros instead.
//!
//! It assumes what fsync(2) does not say, but every journaling file system of Linux keeps: a rename happens as a whole or not
//! at all, also between folders; a sector is written whole; bytes behind a newer end do not come back; permissions are those
//! that the file was created with or given later. SQLite assumes as much.
//!
//! The kernel tells it nothing of syncfs(2), so what a program syncs in no other way may be lost here.

mod contents;
mod mount;
mod names;
mod tree;

pub use self::{
    mount::{Disk, is_possible},
    tree::Tree,
};
