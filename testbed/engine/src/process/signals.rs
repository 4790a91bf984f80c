//! The signals between a front and its children.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr,
    sync::atomic::{
        AtomicBool, AtomicI32,
        Ordering::{Relaxed, SeqCst},
    },
};

use rustix::process::Pid;

use crate::control::Notifier;

/// No descriptor.
const NONE: i32 = -1;

/// What the front's handler writes to.
static NOTIFIER: AtomicI32 = AtomicI32::new(NONE);
/// The socket on which this child waits between requests.
static IDLE: AtomicI32 = AtomicI32::new(NONE);
/// The same, if requests came on it before.
static KEPT: AtomicI32 = AtomicI32::new(NONE);
/// This child has been told to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The calling process is a front: the end of a child rings `notifier`, which must outlive the process. What a person
/// types at the terminal is for the caller's process to act upon.
pub(crate) fn of_front(notifier: &Notifier) -> io::Result<()> {
    NOTIFIER.store(notifier.as_fd().as_raw_fd(), SeqCst);
    on(libc::SIGCHLD, handler(child_ended))?;
    on(libc::SIGTERM, libc::SIG_IGN)?;
    on(libc::SIGINT, libc::SIG_IGN)
}

/// The calling process is a child of a front: SIGTERM ends it between requests, and SIGUSR1 a kept connection of its.
pub(crate) fn of_child() -> io::Result<()> {
    set_idle(None, None);
    on(libc::SIGCHLD, libc::SIG_DFL)?;
    on(libc::SIGUSR1, handler(told_to_give_way))?;
    on(libc::SIGTERM, handler(told_to_end))
}

/// The main thread waits between requests on this socket, or not at all; and for another request, not the first, on the
/// one `kept`.
///
/// Said before asking [`told`]; the handler looks the other way round, so one sees the other.
pub(crate) fn set_idle(socket: Option<BorrowedFd<'_>>, kept: Option<BorrowedFd<'_>>) {
    let number = |socket: Option<BorrowedFd<'_>>| socket.map_or(NONE, |socket| socket.as_raw_fd());
    IDLE.store(number(socket), SeqCst);
    KEPT.store(number(kept), SeqCst);
}

/// Whether this child has been told to end.
pub(crate) fn told() -> bool {
    ENDING.load(SeqCst)
}

/// Tells a child to end between requests.
pub(crate) fn tell(child: Pid) {
    send(child, libc::SIGTERM);
}

/// Tells a child to end the connection that it waits on for another request, if it does.
pub(crate) fn tell_to_give_way(child: Pid) {
    send(child, libc::SIGUSR1);
}

/// To its main thread, which is the one that waits.
fn send(child: Pid, signal: libc::c_int) {
    let pid = child.as_raw_nonzero().get();
    // SAFETY: takes numbers only. A child's number is not given to another process before the child has been reaped,
    // which its parent, who calls this, has not done.
    let _ = unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, signal) };
}

extern "C" fn child_ended(_: libc::c_int) {
    keep_errno(|| {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: write(2) may be called from a handler (signal-safety(7)); the buffer is as long as said. The
        // descriptor is the notifier's, or none.
        let _ = unsafe { libc::write(NOTIFIER.load(Relaxed), one.as_ptr().cast(), one.len()) };
    });
}

extern "C" fn told_to_end(_: libc::c_int) {
    ENDING.store(true, SeqCst);
    end_input(&IDLE);
}

extern "C" fn told_to_give_way(_: libc::c_int) {
    end_input(&KEPT);
}

fn end_input(socket: &AtomicI32) {
    let socket = socket.load(SeqCst);
    if socket != NONE {
        // SAFETY: shutdown(2) may be called from a handler (signal-safety(7)). The handler runs on the main thread
        // (the kernel prefers it for signals to the whole process), which has this socket open while it is set.
        keep_errno(|| _ = unsafe { libc::shutdown(socket, libc::SHUT_RD) });
    }
}

/// A handler must leave the interrupted code's `errno` as it was.
fn keep_errno(handle: impl FnOnce()) {
    // SAFETY: the location is this thread's own and always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    handle();
    // SAFETY: as above.
    unsafe { *errno = before };
}

fn handler(function: extern "C" fn(libc::c_int)) -> libc::sighandler_t {
    function as *const () as libc::sighandler_t
}

fn on(signal: libc::c_int, action: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all zeroes is a valid value: the default action and an empty mask.
    let mut wanted: libc::sigaction = unsafe { std::mem::zeroed() };
    wanted.sa_sigaction = action;
    wanted.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
    // SAFETY: the action is a valid one for this signal, and its handler calls only what a handler may call.
    match unsafe { libc::sigaction(signal, &raw const wanted, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
