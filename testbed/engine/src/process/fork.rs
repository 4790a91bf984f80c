//! Making processes.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use super::signals;

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its work is done.
    Done = 0,
    /// It could not begin.
    Failed = 1,
    /// It panicked outside the service.
    Panicked = 101,
}

/// Runs `child` in a new process, which ends with it. See [`crate::process`] for why this is safe.
pub(crate) fn fork(child: impl FnOnce() -> Ended) -> io::Result<Pid> {
    // SAFETY: the child runs ordinary code in a copy of this process, with this thread only; the module's
    // documentation says why no lock it may meet is held by another.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let ended = catch_unwind(AssertUnwindSafe(child)).unwrap_or(Ended::Panicked);
        // SAFETY: ends the process at once; what the copy would clean up is the original's to clean up.
        unsafe { libc::_exit(ended as libc::c_int) }
    }
    Pid::from_raw(forked).filter(|_| forked > 0).ok_or_else(io::Error::last_os_error)
}

/// Makes the calling process, just forked from `front`, a child that does not outlive it and ends when told to.
///
/// # Errors
/// When the front is gone already.
pub(crate) fn become_child(front: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before it was asked to take this process with it.
    if getppid() != Some(front) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    signals::of_child()
}

/// The calling process, as the one its children belong to.
pub(crate) fn this() -> Pid {
    getpid()
}
