//! Making processes, and dropping what they inherit.

use std::{
    fs, io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
};

use rustix::{
    fs::{FileType, fstat},
    process::{Pid, Signal, getppid, set_parent_process_death_signal},
};

use crate::signals;

/// The exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Its work is done.
    Done = 0,
    /// It could not begin.
    Failed = 1,
    /// It panicked outside the service.
    Panicked = 101,
}

/// Runs `child` in a new process, which exits when it returns. [`crate::process`] explains why this is safe.
pub(super) fn fork(child: impl FnOnce() -> Exit) -> io::Result<Pid> {
    // SAFETY: the child runs ordinary code in a copy of this process with this thread only. The documentation of the
    // module `process` explains why no lock that it may take is held by another thread.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let exit = catch_unwind(AssertUnwindSafe(child)).unwrap_or(Exit::Panicked);
        // SAFETY: ends the process at once; cleaning up is left to the original, which owns everything.
        unsafe { libc::_exit(exit as libc::c_int) }
    }
    if forked < 0 {
        return Err(io::Error::last_os_error());
    }
    Pid::from_raw(forked).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Makes the calling process, just forked from `parent`, a child that does not outlive it and stops when told to.
///
/// # Errors
/// When the parent is already gone.
pub(super) fn become_child(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the line above.
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    signals::install_in_child()
}

/// Standard input, output and error, which may well be sockets.
const STANDARD: RawFd = 2;

/// Drops the sockets that the caller had open, except those `kept`. Otherwise a connection of the caller's, or of
/// another server, would stay open for as long as this process lives.
///
/// Their numbers stay in use, for `/dev/null`, so that nothing that still knows one reaches another descriptor.
pub(super) fn drop_inherited_sockets(kept: &[BorrowedFd<'_>]) {
    let Ok(nothing) = fs::File::options().read(true).write(true).open("/dev/null") else { return };
    let Ok(listed) = fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<RawFd> =
        listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    let foreign = |number: &RawFd| {
        *number > STANDARD && kept.iter().all(|kept| kept.as_raw_fd() != *number) && is_socket(*number)
    };
    for number in numbers.into_iter().filter(foreign) {
        // SAFETY: puts another open file under the number. Its owner is a part of the caller that this copy of the
        // process never runs.
        let _ = unsafe { libc::dup3(nothing.as_raw_fd(), number, libc::O_CLOEXEC) };
    }
}

fn is_socket(number: RawFd) -> bool {
    // SAFETY: used for one call, which fails if the number is not open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    fstat(descriptor).is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Socket)
}
