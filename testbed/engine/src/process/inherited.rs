//! What a forked process inherits and must not keep.

use std::{
    fs,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
};

use rustix::fs::{FileType, fstat};

/// Standard input, output and error, which may well be sockets.
const STANDARD: RawFd = 2;

/// Lets go of the sockets that the caller had open, but for those `kept`: a connection of the caller's, or another
/// server's, would otherwise stay open for as long as this process lives.
///
/// Their numbers stay taken, by `/dev/null`: nothing that still knows one can reach another descriptor by it.
pub(crate) fn let_go_of_sockets(kept: &[BorrowedFd<'_>]) {
    let Ok(nothing) = fs::File::options().read(true).write(true).open("/dev/null") else { return };
    let Ok(listed) = fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<RawFd> =
        listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    let foreign = |number: &RawFd| {
        *number > STANDARD && kept.iter().all(|kept| kept.as_raw_fd() != *number) && is_socket(*number)
    };
    for number in numbers.into_iter().filter(foreign) {
        // SAFETY: replaces what the number stands for by another open file. Whoever owns it is a part of the caller
        // that this copy of it never runs.
        let _ = unsafe { libc::dup3(nothing.as_raw_fd(), number, libc::O_CLOEXEC) };
    }
}

fn is_socket(number: RawFd) -> bool {
    // SAFETY: used for one call, which fails if the number is not open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    fstat(descriptor).is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Socket)
}
