//! A submission queue and a completion queue, shared with the kernel.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    ptr,
    time::Duration,
};

use io_uring::{
    IoUring, opcode, squeue,
    types::{CancelBuilder, Fd, SubmitArgs, Timespec},
};
use rustix::{
    event::PollFlags,
    io::Errno,
    net::{SendFlags, SocketFlags},
};

use super::{
    buffer_ring::BufferRing,
    operation::{Completion, Kind, Operation, Tag},
};
use crate::loops::Key;

/// Places in the submission queue. Operations that find none wait in a list; with the few places in tests, some do.
const SUBMISSIONS: u32 = if cfg!(test) { 4 } else { 256 };
/// Completions per place in the submission queue: a multishot operation makes many.
const COMPLETIONS: u32 = 8;
/// The most bytes of one send, well within the range of its result.
const SEND_MAX: usize = 1 << 30;

/// A ring, used by the thread that made it.
pub(crate) struct Ring {
    uring: IoUring,
    /// Operations that found the submission queue full.
    backlog: VecDeque<squeue::Entry>,
    /// Queued operations whose last completion has not come, without cancellations.
    in_flight: usize,
    /// How many calls a test makes fail with EBUSY.
    #[cfg(test)]
    busy: std::cell::Cell<u32>,
}

impl Ring {
    pub(crate) fn new() -> io::Result<Self> {
        Self::with_room(SUBMISSIONS)
    }

    fn with_room(submissions: u32) -> io::Result<Self> {
        let uring = IoUring::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(submissions * COMPLETIONS)
            .build(submissions)?;
        Ok(Self {
            uring,
            backlog: VecDeque::new(),
            in_flight: 0,
            #[cfg(test)]
            busy: std::cell::Cell::new(0),
        })
    }

    /// Whether a test makes this call fail.
    #[cfg(test)]
    fn is_busy(&self) -> bool {
        let left = self.busy.get();
        self.busy.set(left.saturating_sub(1));
        left > 0
    }

    /// Registers the buffers that [`receive`](Self::receive) calls `group`.
    pub(crate) fn register(&self, buffers: &BufferRing, group: u16) -> io::Result<()> {
        let (address, entries) = buffers.address();
        // SAFETY: the entries lie there, aligned and initialised, until the buffer ring is dropped. The reactor drops it
        // after this ring, and only once nothing that could take a buffer from it is in flight.
        unsafe { self.uring.submitter().register_buf_ring_with_flags(address, entries, group, 0) }
    }

    /// Submits what is queued, waits for completions, at most for `timeout`, and adds them to `completions`.
    pub(crate) fn enter(
        &mut self,
        timeout: Option<Duration>,
        completions: &mut Vec<Completion>,
    ) -> io::Result<()> {
        // What the kernel does not take yet follows once completions are taken, so that is not waited for.
        let timeout = if self.flush_backlog()? { timeout } else { Some(Duration::ZERO) };
        let entered = self.submit_and_wait(timeout);
        for entry in self.uring.completion() {
            let completion = Completion::read(&entry);
            if !completion.more && completion.operation != Operation::Cancel {
                self.in_flight = self.in_flight.saturating_sub(1);
            }
            completions.push(completion);
        }
        entered.or_else(ignore_transient)
    }

    fn submit_and_wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        #[cfg(test)]
        if self.is_busy() {
            return Err(Errno::BUSY.into());
        }
        let submitter = self.uring.submitter();
        let entered = match timeout {
            None => submitter.submit_and_wait(1),
            Some(timeout) => {
                let timespec = Timespec::from(timeout);
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&timespec))
            }
        };
        entered.map(drop)
    }

    /// Queues what found no place before. Returns false if the kernel takes no more until completions are taken, which it
    /// says by EBUSY: until then they wait in a list of its own.
    fn flush_backlog(&mut self) -> io::Result<bool> {
        while !self.backlog.is_empty() {
            self.submit().or_else(ignore_transient)?;
            let mut queue = self.uring.submission();
            if queue.is_full() {
                return Ok(false);
            }
            while let Some(entry) = self.backlog.front() {
                // SAFETY: as when the entry was queued.
                if unsafe { queue.push(entry) }.is_err() {
                    break;
                }
                self.backlog.pop_front();
            }
        }
        Ok(true)
    }

    fn submit(&self) -> io::Result<()> {
        #[cfg(test)]
        if self.is_busy() {
            return Err(Errno::BUSY.into());
        }
        self.uring.submit().map(drop)
    }

    /// The number of operations that the kernel has not finished.
    pub(crate) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Accepts connections until cancelled.
    pub(crate) fn accept(&mut self, listener: BorrowedFd<'_>, flags: SocketFlags) {
        let entry = opcode::AcceptMulti::new(descriptor(listener)).flags(flags.bits().cast_signed()).build();
        self.queue(entry, Operation::Accept);
    }

    /// Completes each time the notifier becomes readable.
    pub(crate) fn watch(&mut self, notifier: BorrowedFd<'_>) {
        let interest = u32::from(PollFlags::IN.bits());
        self.queue(opcode::PollAdd::new(descriptor(notifier), interest).multi(true).build(), Operation::Wake);
    }

    /// Receives into the buffers of `group` until input or buffers end.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, group: u16, key: Key) {
        let entry = opcode::RecvMulti::new(descriptor(socket), group).build();
        self.queue(entry, Operation::Socket(key, Kind::Receive));
    }

    /// Receives once, into one buffer of `group`, whose buffers have this size.
    pub(crate) fn receive_once(&mut self, socket: BorrowedFd<'_>, (group, size): (u16, usize), key: Key) {
        let length = u32::try_from(size).unwrap_or(u32::MAX);
        let entry = opcode::Recv::new(descriptor(socket), ptr::null_mut(), length).buf_group(group).build();
        self.queue(entry.flags(squeue::Flags::BUFFER_SELECT), Operation::Socket(key, Kind::Receive));
    }

    /// Sends `bytes`, waiting in the kernel until the socket has taken them all.
    ///
    /// # Safety
    /// The bytes must stay in place, unchanged, until the operation has completed.
    pub(crate) unsafe fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], key: Key) {
        let length = bytes.len().min(SEND_MAX) as u32;
        // A broken connection gives an error, never a signal.
        let flags = SendFlags::NOSIGNAL.bits() | WAITALL;
        let entry =
            opcode::Send::new(descriptor(socket), bytes.as_ptr(), length).flags(flags.cast_signed()).build();
        self.queue(entry, Operation::Socket(key, Kind::Send));
    }

    /// Completes once, when the socket takes more.
    pub(crate) fn writable(&mut self, socket: BorrowedFd<'_>, key: Key) {
        let entry = opcode::PollAdd::new(descriptor(socket), u32::from(PollFlags::OUT.bits())).build();
        self.queue(entry, Operation::Socket(key, Kind::Writable));
    }

    /// Cancels an operation, which then completes like any other.
    pub(crate) fn cancel(&mut self, operation: Operation) {
        let entry = opcode::AsyncCancel::new(Tag::new(operation).0).build();
        self.queue(entry.flags(squeue::Flags::SKIP_SUCCESS), Operation::Cancel);
    }

    /// Cancels every operation.
    pub(crate) fn cancel_all(&mut self) {
        self.queue(opcode::AsyncCancel2::new(CancelBuilder::any()).build(), Operation::Cancel);
    }

    fn queue(&mut self, entry: squeue::Entry, operation: Operation) {
        let entry = entry.user_data(Tag::new(operation).0);
        self.in_flight += usize::from(operation != Operation::Cancel);
        if !self.backlog.is_empty() {
            return self.backlog.push_back(entry);
        }
        // SAFETY: the only operation that points to memory of ours is a send, whose caller vouches for it.
        if unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.backlog.push_back(entry);
        }
    }
}

/// MSG_WAITALL, which rustix has only for receiving. It makes an io_uring send continue after a short one.
const WAITALL: u32 = rustix::net::RecvFlags::WAITALL.bits();

fn descriptor(descriptor: BorrowedFd<'_>) -> Fd {
    let raw: RawFd = descriptor.as_raw_fd();
    Fd(raw)
}

/// Ignores errors after which the loop tries again.
fn ignore_transient(error: io::Error) -> io::Result<()> {
    match Errno::from_io_error(&error) {
        // The time is up; a signal came; completions must be taken first; memory is short for now.
        Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::TcpListener, os::fd::AsFd};

    use super::*;
    use crate::{buffer::Buffers, loops::Arena};

    /// Completions until `count` have come.
    fn wait_for(ring: &mut Ring, count: usize) -> Vec<Completion> {
        let mut completions = Vec::new();
        while completions.len() < count {
            ring.enter(Some(Duration::from_secs(20)), &mut completions).unwrap();
        }
        completions
    }

    fn pair() -> (std::net::TcpStream, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn operations_and_completions_beyond_the_queues_are_not_lost() {
        const COUNT: usize = 500;
        let mut ring = Ring::new().unwrap();
        let room = ring.uring.params().cq_entries() as usize;
        assert!(COUNT > 4 * room, "the queue has room for {room}");
        let (_client, socket) = pair();
        let mut arena = Arena::new();
        for _ in 0..COUNT {
            ring.writable(socket.as_fd(), arena.insert(()));
        }
        assert_eq!(ring.in_flight(), COUNT);
        for completion in wait_for(&mut ring, COUNT) {
            let Operation::Socket(key, Kind::Writable) = completion.operation else {
                panic!("{completion:?}")
            };
            assert!(arena.remove(key).is_some(), "{completion:?} came twice");
        }
        assert!(arena.is_empty());
        assert_eq!(ring.in_flight(), 0);
    }

    /// EBUSY while operations waited for a place ended the loop.
    #[test]
    fn a_kernel_that_is_busy_gets_the_operations_later() {
        const COUNT: usize = 100;
        let mut ring = Ring::new().unwrap();
        let (_client, socket) = pair();
        let mut arena = Arena::new();
        for _ in 0..COUNT {
            ring.writable(socket.as_fd(), arena.insert(()));
        }
        ring.busy.set(10);
        assert_eq!(wait_for(&mut ring, COUNT).len(), COUNT);
        assert_eq!((ring.in_flight(), ring.busy.get()), (0, 0));
    }

    #[test]
    fn a_receive_without_a_buffer_ends_and_works_again_once_there_is_one() {
        let (mut ring, mut buffers) = (Ring::new().unwrap(), Buffers::default());
        let mut group = BufferRing::new(2, 4, &mut buffers).unwrap();
        ring.register(&group, 0).unwrap();
        let (mut client, socket) = pair();
        let key = Arena::new().insert(());
        client.write_all(b"one two three").unwrap();
        drop(client);
        let (mut got, mut ended_without_buffer) = (0, 0);
        ring.receive(socket.as_fd(), 0, key);
        loop {
            let completions = wait_for(&mut ring, 1);
            for completion in &completions {
                assert_eq!(completion.operation, Operation::Socket(key, Kind::Receive));
                if let (Some(number), Ok(count)) = (completion.buffer, completion.result) {
                    got += group.take(number, count as usize, &mut buffers).len();
                }
            }
            match completions.last() {
                Some(last) if last.more => {}
                Some(last) if last.result == Ok(0) => break,
                last => {
                    assert_eq!(last.unwrap().result, Err(Errno::NOBUFS));
                    ended_without_buffer += 1;
                    ring.receive(socket.as_fd(), 0, key);
                }
            }
        }
        assert_eq!(got, b"one two three".len());
        assert!(ended_without_buffer > 0);
        assert_eq!(ring.in_flight(), 0);
    }

    #[test]
    fn a_cancelled_operation_completes() {
        let mut ring = Ring::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        ring.accept(listener.as_fd(), SocketFlags::CLOEXEC);
        ring.cancel(Operation::Accept);
        let completion = wait_for(&mut ring, 1).pop().unwrap();
        assert_eq!(completion.operation, Operation::Accept);
        assert!(!completion.more);
        assert_eq!(completion.accepted().unwrap_err(), Errno::CANCELED);
        assert_eq!(ring.in_flight(), 0);
    }
}
