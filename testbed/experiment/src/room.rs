//! Checks, before anything is started, that this machine has room for the peers of an experiment.

use std::{env, path::PathBuf};

use load::limits;
use rustix::fs::statvfs;

use crate::{
    definition::{Axis, Experiment, Workload},
    size::Size,
};

/// Descriptors that this process holds for each peer besides those of its users: pipes to its standard streams.
const PER_PEER: u32 = 2;

/// Why there is no room for an experiment here.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// Too little room for the files.
    #[error(
        "{peers} peers share {wanted} of files, but {folder} has room for {free}: set TMPDIR to a folder with room, or \
         ask for fewer or smaller files"
    )]
    Disk {
        /// How many peers.
        peers: u32,
        /// What all of them share.
        wanted: Size,
        /// Where.
        folder: PathBuf,
        /// What is free there.
        free: Size,
    },
    /// Too few descriptors.
    #[error(
        "{peers} peers and their users need {needed} open files, but this process may have {allowed} more: run \
         `ulimit -n` with a larger number first, or ask for fewer peers"
    )]
    Descriptors {
        /// How many peers.
        peers: u32,
        /// What that needs.
        needed: u32,
        /// What there is.
        allowed: u32,
    },
}

/// Checks the room for the largest number of peers.
///
/// # Errors
/// What is lacking.
pub fn check(experiment: &Experiment) -> Result<(), NoRoom> {
    let Some(Axis::Peers { peers, .. }) = &experiment.axis else { return Ok(()) };
    let peers = peers.iter().copied().max().unwrap_or(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let users = experiment.works.iter().map(|work| work.users.most()).max().unwrap_or(0);
    let needed = peers.saturating_mul(users.saturating_add(PER_PEER)).saturating_add(PER_PEER);
    let allowed = limits::users_allowed(threads);
    if needed > allowed {
        return Err(NoRoom::Descriptors { peers, needed, allowed });
    }
    let bytes = |work: &Workload| work.files.map_or(0, |files| files.count.saturating_mul(files.size));
    let most = experiment.works.iter().map(bytes).max().unwrap_or(0);
    let wanted = Size(most.saturating_mul(peers.into()));
    let folder = env::temp_dir();
    // If this is unknown, making the files will show whether there is room.
    let Ok(room) = statvfs(&folder) else { return Ok(()) };
    let free = Size(room.f_bavail.saturating_mul(room.f_frsize));
    if wanted > free { Err(NoRoom::Disk { peers, wanted, folder, free }) } else { Ok(()) }
}
