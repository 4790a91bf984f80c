//! Readiness through epoll: sockets are registered once, edge-triggered, and time-outs have nanosecond resolution.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;

/// Most events handled between two readings of the clock.
const BATCH: usize = 256;

/// An event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness {
    /// The token under which the socket was registered.
    pub(crate) token: u64,
    /// There is something to read, possibly an error or the end.
    pub(crate) readable: bool,
    /// The socket is writable, or its connect has finished.
    pub(crate) writable: bool,
    /// The peer has closed its side, or the connection is broken.
    pub(crate) closed: bool,
}

/// The sockets of one thread.
pub(crate) struct Poller {
    epoll: OwnedFd,
    wake: OwnedFd,
    events: Vec<libc::epoll_event>,
    precise: bool,
    woken: bool,
}

/// The token of the wake-up descriptor, which no socket has.
pub(crate) const WAKE: u64 = u64::MAX;

impl Poller {
    pub(crate) fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Poller { epoll, wake, events: Vec::with_capacity(BATCH), precise: true, woken: false })
    }

    /// Makes a handle with which another thread ends a [`Poller::wait`].
    pub(crate) fn waker(&self) -> Result<Waker, Errno> {
        Ok(Waker { event: rustix::io::fcntl_dupfd_cloexec(&self.wake, 0)? })
    }

    /// Registers a socket for all events. Closing the socket unregisters it.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64) -> Result<(), Errno> {
        use epoll::EventFlags as F;
        let interest = F::IN | F::OUT | F::RDHUP | F::ET;
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(token), interest)
    }

    /// Waits for events, at most `timeout_ns`. A signal ends the wait without events.
    pub(crate) fn wait(&mut self, timeout_ns: u64) -> Result<(), Errno> {
        self.events.clear();
        match self.wait_precisely(timeout_ns) {
            Err(Errno::INTR) => Ok(()),
            other => other,
        }
    }

    /// Number of events of the last wait.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The event of the last wait with this index.
    #[inline]
    pub(crate) fn event(&self, index: usize) -> Option<Readiness> {
        use epoll::EventFlags as F;
        // Copied out because the layout is packed on some processors.
        let libc::epoll_event { events, u64: token } = *self.events.get(index)?;
        let flags = F::from_bits_retain(events);
        Some(Readiness {
            token,
            readable: flags.intersects(F::IN | F::RDHUP | F::HUP | F::ERR),
            writable: flags.intersects(F::OUT | F::HUP | F::ERR),
            closed: flags.intersects(F::RDHUP | F::HUP | F::ERR),
        })
    }

    /// Notes a wake-up and resets its descriptor.
    pub(crate) fn acknowledge_wake(&mut self) {
        self.woken = true;
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wake, &mut count);
    }

    /// Returns whether there was a wake-up since the last call.
    pub(crate) fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.woken)
    }

    fn wait_precisely(&mut self, timeout_ns: u64) -> Result<(), Errno> {
        if self.precise {
            match epoll_pwait2(&self.epoll, &mut self.events, timeout_ns) {
                // Kernels before 5.11 and some sandboxes lack it: fall back to milliseconds.
                Err(Errno::NOSYS | Errno::PERM) => self.precise = false,
                other => return other,
            }
        }
        epoll_wait(&self.epoll, &mut self.events, timeout_ns)
    }
}

/// Ends the wait of another thread.
#[derive(Debug)]
pub(crate) struct Waker {
    event: OwnedFd,
}

impl Waker {
    pub(crate) fn wake(&self) {
        // This fails only if the counter is full, and then the thread is awake already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}

/// `epoll_pwait2(2)`, which glibc has only since 2.35, and rustix only if the whole program may assume it.
fn epoll_pwait2(epoll: &OwnedFd, events: &mut Vec<libc::epoll_event>, timeout_ns: u64) -> Result<(), Errno> {
    let room = events.spare_capacity_mut();
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as _,
        tv_nsec: (timeout_ns % 1_000_000_000) as _,
    };
    // SAFETY: `room` and `timeout` outlive the call, and the kernel writes at most `room.len()` events.
    let found = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            room.as_mut_ptr(),
            room.len() as libc::c_int,
            &raw const timeout,
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    // SAFETY: the kernel has just written this many events to the spare capacity.
    unsafe { extend(events, found) }
}

/// `epoll_wait(2)`, with the time-out rounded up to whole milliseconds.
fn epoll_wait(epoll: &OwnedFd, events: &mut Vec<libc::epoll_event>, timeout_ns: u64) -> Result<(), Errno> {
    let room = events.spare_capacity_mut();
    let timeout_ms = libc::c_int::try_from(timeout_ns.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX);
    // SAFETY: `room` outlives the call, and the kernel writes at most `room.len()` events.
    let found = unsafe {
        libc::epoll_wait(epoll.as_raw_fd(), room.as_mut_ptr().cast(), room.len() as libc::c_int, timeout_ms)
    };
    // SAFETY: the kernel has just written this many events to the spare capacity.
    unsafe { extend(events, found.into()) }
}

/// Adds the events that a wait returned.
///
/// # Safety
/// `found`, if not negative, is the number of events just written to the spare capacity.
unsafe fn extend(events: &mut Vec<libc::epoll_event>, found: libc::c_long) -> Result<(), Errno> {
    let Ok(found) = usize::try_from(found) else {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    };
    // SAFETY: the caller guarantees that `found` events were written.
    unsafe { events.set_len(events.len() + found) };
    Ok(())
}
