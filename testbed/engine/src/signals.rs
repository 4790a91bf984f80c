//! The signals between a parent process and its children.

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

use crate::{control::Notifier, idle};

/// No descriptor.
const NONE: i32 = -1;

/// What the parent's handler writes to.
static NOTIFIER: AtomicI32 = AtomicI32::new(NONE);
/// The socket on which this child waits between requests.
static IDLE: AtomicI32 = AtomicI32::new(NONE);
/// The same socket, if it has already carried a request.
static KEPT: AtomicI32 = AtomicI32::new(NONE);
/// Whether this child has been told to stop.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// Installs the handlers of a parent process: the end of a child signals `notifier`, which must outlive the process. What
/// a person types at the terminal is left to the caller's process.
pub(crate) fn install_in_parent(notifier: &Notifier) -> io::Result<()> {
    NOTIFIER.store(notifier.as_fd().as_raw_fd(), SeqCst);
    on(libc::SIGCHLD, handler(child_ended))?;
    on(libc::SIGTERM, libc::SIG_IGN)?;
    // A child inherits this until it has its own handler, and may be told before.
    on(libc::SIGUSR2, libc::SIG_IGN)?;
    on(libc::SIGINT, libc::SIG_IGN)
}

/// Installs the handlers of a parent's child: SIGTERM ends it between requests, SIGUSR1 ends a kept
/// connection, SIGUSR2 one that has been idle for long.
pub(crate) fn install_in_child() -> io::Result<()> {
    set_idle(None, None);
    on(libc::SIGCHLD, libc::SIG_DFL)?;
    on(libc::SIGUSR1, handler(close_kept_connection))?;
    on(libc::SIGUSR2, handler(close_idle_connection))?;
    on(libc::SIGTERM, handler(stop_between_requests))
}

/// Publishes the socket on which the main thread waits between requests, if it does. `kept` is the same socket if it
/// waits for another request rather than the first.
///
/// Call this before [`is_stopping`]. The handlers read in the opposite order, so one of the two sees the other.
pub(crate) fn set_idle(socket: Option<BorrowedFd<'_>>, kept: Option<BorrowedFd<'_>>) {
    let number = |socket: Option<BorrowedFd<'_>>| socket.map_or(NONE, |socket| socket.as_raw_fd());
    IDLE.store(number(socket), SeqCst);
    KEPT.store(number(kept), SeqCst);
}

/// Whether this child has been told to stop.
pub(crate) fn is_stopping() -> bool {
    STOPPING.load(SeqCst)
}

/// Tells a child to stop between requests.
pub(crate) fn stop(child: Pid) {
    send(child, libc::SIGTERM);
}

/// Tells a child to close its connection if it waits there for another request.
pub(crate) fn close_kept(child: Pid) {
    send(child, libc::SIGUSR1);
}

/// Tells a child to close its connection if that has been idle for long.
pub(crate) fn close_idle(child: Pid) {
    send(child, libc::SIGUSR2);
}

/// Sends a signal to a child's main thread, which is the one that waits.
fn send(child: Pid, signal: libc::c_int) {
    let pid = child.as_raw_nonzero().get();
    // SAFETY: takes numbers only. The system does not reuse a child's number before its parent has reaped it, and the
    // caller is the parent and has not.
    let _ = unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, signal) };
}

extern "C" fn child_ended(_: libc::c_int) {
    keep_errno(|| {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: write(2) is allowed in a handler (signal-safety(7)), and the length is the buffer's. The descriptor
        // is the notifier's, or none.
        let _ = unsafe { libc::write(NOTIFIER.load(Relaxed), one.as_ptr().cast(), one.len()) };
    });
}

extern "C" fn stop_between_requests(_: libc::c_int) {
    STOPPING.store(true, SeqCst);
    end_input(&IDLE);
}

extern "C" fn close_kept_connection(_: libc::c_int) {
    end_input(&KEPT);
}

extern "C" fn close_idle_connection(_: libc::c_int) {
    keep_errno(|| {
        if idle::is_long_idle(IDLE.load(SeqCst)) {
            end_input(&IDLE);
        }
    });
}

fn end_input(socket: &AtomicI32) {
    let socket = socket.load(SeqCst);
    if socket != NONE {
        // SAFETY: shutdown(2) is allowed in a handler (signal-safety(7)). The handler runs on the main thread, which
        // the kernel prefers for signals to the whole process and which keeps this socket open while it is set.
        keep_errno(|| _ = unsafe { libc::shutdown(socket, libc::SHUT_RD) });
    }
}

/// Runs `handle` and restores the `errno` of the interrupted code.
fn keep_errno(handle: impl FnOnce()) {
    // SAFETY: the location belongs to this thread and is always valid.
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
    // SAFETY: the action is valid for this signal, and its handler calls only what a handler may call.
    match unsafe { libc::sigaction(signal, &raw const wanted, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
