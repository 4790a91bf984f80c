//! A submission and a completion queue, shared with the kernel.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    time::Duration,
};

use io_uring::{
    IoUring, cqueue, opcode, squeue,
    types::{CancelBuilder, Fd, SubmitArgs, Timespec},
};
use rustix::{
    event::PollFlags,
    io::Errno,
    net::{SendFlags, SocketFlags},
};

use super::shelf::Shelf;
use crate::loops::Key;

/// Places in the submission queue. What finds none waits in a list. Tests make do with so few that it happens.
const SUBMISSIONS: u32 = if cfg!(test) { 4 } else { 256 };
/// Completions for each place in the submission queue: a multishot operation makes many.
const COMPLETIONS: u32 = 8;
/// Most bytes of one send, well within what its result can count.
const SEND_MAX: usize = 1 << 30;

/// What an operation on a connection's socket does. At most one of each kind is in flight per socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Receive,
    Send,
    /// Waits until the socket takes more.
    Writable,
}

/// Names an operation on its way through the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u64);

/// What a [`Tag`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Accepting connections.
    Accept,
    /// Watching the loop's notifier.
    Wake,
    /// A cancellation, whose own outcome tells nothing: the cancelled operation completes too.
    Cancel,
    /// On a connection's socket.
    Socket(Key, Kind),
}

impl Tag {
    /// Above these bits of a key's index, which counts descriptors, is room for the kind.
    const KIND_SHIFT: u32 = 61;
    const ACCEPT: u64 = u64::MAX;
    const WAKE: u64 = u64::MAX - 1;
    const CANCEL: u64 = u64::MAX - 2;

    pub(crate) const fn new(operation: Operation) -> Self {
        match operation {
            Operation::Accept => Self(Self::ACCEPT),
            Operation::Wake => Self(Self::WAKE),
            Operation::Cancel => Self(Self::CANCEL),
            Operation::Socket(key, kind) => Self(key.to_bits() | (kind as u64) << Self::KIND_SHIFT),
        }
    }

    pub(crate) const fn operation(self) -> Operation {
        let kind = match (self.0, self.0 >> Self::KIND_SHIFT) {
            (Self::ACCEPT, _) => return Operation::Accept,
            (Self::WAKE, _) => return Operation::Wake,
            (_, 0) => Kind::Receive,
            (_, 1) => Kind::Send,
            (_, 2) => Kind::Writable,
            _ => return Operation::Cancel,
        };
        let bits = self.0 & (u64::MAX >> (u64::BITS - Self::KIND_SHIFT));
        Operation::Socket(Key::from_bits(bits), kind)
    }
}

/// What the kernel says of an operation.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) operation: Operation,
    /// What the system call would have returned.
    pub(crate) result: Result<u32, Errno>,
    /// The buffer of the shelf that was used.
    pub(crate) buffer: Option<u16>,
    /// The operation goes on: the kernel still holds what it was given.
    pub(crate) more: bool,
}

impl Completion {
    fn read(entry: &cqueue::Entry) -> Self {
        let (result, flags) = (entry.result(), entry.flags());
        Self {
            operation: Tag(entry.user_data()).operation(),
            result: u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result)),
            buffer: cqueue::buffer_select(flags),
            more: cqueue::more(flags),
        }
    }
}

impl Completion {
    /// The connection that an accept brought.
    pub(crate) fn accepted(self) -> Result<OwnedFd, Errno> {
        // SAFETY: the kernel has made the descriptor for this completion, and nobody else knows it.
        self.result.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor.cast_signed()) })
    }
}

/// A ring, used by the thread that made it.
pub(crate) struct Ring {
    uring: IoUring,
    /// Operations that found the submission queue full.
    backlog: VecDeque<squeue::Entry>,
    /// Operations queued whose last completion has not come, but for cancellations.
    in_flight: usize,
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
        Ok(Self { uring, backlog: VecDeque::new(), in_flight: 0 })
    }

    /// Registers the buffers that [`receive`](Self::receive) names by `group`.
    pub(crate) fn register(&self, shelf: &Shelf, group: u16) -> io::Result<()> {
        let (address, entries) = shelf.address();
        // SAFETY: the entries lie there, aligned and initialised, until the shelf is dropped; the reactor
        // drops it after the ring, and only once nothing that could take a buffer from it is in flight.
        unsafe { self.uring.submitter().register_buf_ring_with_flags(address, entries, group, 0) }
    }

    /// Submits what is queued, waits for completions, no longer than `timeout`, and adds them to `completions`.
    pub(crate) fn enter(
        &mut self,
        timeout: Option<Duration>,
        completions: &mut Vec<Completion>,
    ) -> io::Result<()> {
        while !self.backlog.is_empty() {
            self.flush_backlog()?;
        }
        let submitter = self.uring.submitter();
        let entered = match timeout {
            None => submitter.submit_and_wait(1),
            Some(timeout) => {
                let timespec = Timespec::from(timeout);
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&timespec))
            }
        };
        for entry in self.uring.completion() {
            let completion = Completion::read(&entry);
            if !completion.more && completion.operation != Operation::Cancel {
                self.in_flight = self.in_flight.saturating_sub(1);
            }
            completions.push(completion);
        }
        entered.map(drop).or_else(passing)
    }

    fn flush_backlog(&mut self) -> io::Result<()> {
        self.uring.submit().map(drop).or_else(passing)?;
        let mut queue = self.uring.submission();
        if queue.is_full() {
            // The kernel takes nothing until completions are taken; those that come of it wait in its own list.
            return Err(io::Error::from(Errno::BUSY));
        }
        while let Some(entry) = self.backlog.front() {
            // SAFETY: as when the entry was queued.
            if unsafe { queue.push(entry) }.is_err() {
                break;
            }
            self.backlog.pop_front();
        }
        Ok(())
    }

    /// How many operations the kernel has not finished.
    pub(crate) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Accepts connections, again and again.
    pub(crate) fn accept(&mut self, listener: BorrowedFd<'_>, flags: SocketFlags) {
        let entry = opcode::AcceptMulti::new(descriptor(listener)).flags(flags.bits().cast_signed()).build();
        self.queue(entry, Operation::Accept);
    }

    /// Tells whenever the notifier becomes readable, again and again.
    pub(crate) fn watch(&mut self, notifier: BorrowedFd<'_>) {
        let interest = u32::from(PollFlags::IN.bits());
        self.queue(opcode::PollAdd::new(descriptor(notifier), interest).multi(true).build(), Operation::Wake);
    }

    /// Receives into the buffers of `group`, again and again.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, group: u16, key: Key) {
        let entry = opcode::RecvMulti::new(descriptor(socket), group).build();
        self.queue(entry, Operation::Socket(key, Kind::Receive));
    }

    /// Sends `bytes`, waiting in the kernel until all are taken.
    ///
    /// # Safety
    /// The bytes must stay where they are, unchanged, until the operation has completed.
    pub(crate) unsafe fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], key: Key) {
        let length = bytes.len().min(SEND_MAX) as u32;
        // A broken connection is an error, never a signal.
        let flags = SendFlags::NOSIGNAL.bits() | WAITALL;
        let entry =
            opcode::Send::new(descriptor(socket), bytes.as_ptr(), length).flags(flags.cast_signed()).build();
        self.queue(entry, Operation::Socket(key, Kind::Send));
    }

    /// Tells once when the socket takes more.
    pub(crate) fn writable(&mut self, socket: BorrowedFd<'_>, key: Key) {
        let entry = opcode::PollAdd::new(descriptor(socket), u32::from(PollFlags::OUT.bits())).build();
        self.queue(entry, Operation::Socket(key, Kind::Writable));
    }

    /// Asks the kernel to let go of an operation, which completes then like any other.
    pub(crate) fn cancel(&mut self, operation: Operation) {
        let entry = opcode::AsyncCancel::new(Tag::new(operation).0).build();
        self.queue(entry.flags(squeue::Flags::SKIP_SUCCESS), Operation::Cancel);
    }

    /// Asks the kernel to let go of every operation.
    pub(crate) fn cancel_all(&mut self) {
        self.queue(opcode::AsyncCancel2::new(CancelBuilder::any()).build(), Operation::Cancel);
    }

    fn queue(&mut self, entry: squeue::Entry, operation: Operation) {
        let entry = entry.user_data(Tag::new(operation).0);
        self.in_flight += usize::from(operation != Operation::Cancel);
        if !self.backlog.is_empty() {
            return self.backlog.push_back(entry);
        }
        // SAFETY: the only operation that names memory of ours is a send, whose caller answers for it.
        if unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.backlog.push_back(entry);
        }
    }
}

/// MSG_WAITALL, which rustix knows for receiving only. For io_uring_enter(2) it makes a send go on after a short one.
const WAITALL: u32 = rustix::net::RecvFlags::WAITALL.bits();

fn descriptor(descriptor: BorrowedFd<'_>) -> Fd {
    let raw: RawFd = descriptor.as_raw_fd();
    Fd(raw)
}

/// Reasons to try again that are none to end a loop.
fn passing(error: io::Error) -> io::Result<()> {
    match Errno::from_io_error(&error) {
        // The time is up; a signal; completions must be taken first; short of memory for now.
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
    fn tags_name_what_they_were_made_of() {
        let mut arena = Arena::new();
        let keys = [arena.insert(()), arena.insert(())];
        for operation in [Operation::Accept, Operation::Wake, Operation::Cancel] {
            assert_eq!(Tag::new(operation).operation(), operation);
        }
        for key in keys {
            for kind in [Kind::Receive, Kind::Send, Kind::Writable] {
                assert_eq!(Tag::new(Operation::Socket(key, kind)).operation(), Operation::Socket(key, kind));
            }
        }
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

    #[test]
    fn a_receive_without_a_buffer_ends_and_goes_on_once_there_is_one() {
        let (mut ring, mut buffers) = (Ring::new().unwrap(), Buffers::default());
        let mut shelf = Shelf::new(2, 4, &mut buffers).unwrap();
        ring.register(&shelf, 0).unwrap();
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
                    got += shelf.take(number, count as usize, &mut buffers).len();
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
