//! A single aio_read(3), which is never abandoned before it is done.

use std::{
    io,
    mem::ManuallyDrop,
    os::fd::{AsRawFd, BorrowedFd},
    ptr::{self, NonNull},
};

/// A read under way, with the buffer that the C library fills meanwhile.
///
/// Dropping it early cancels it, or waits if a thread has already begun it, because neither its memory nor its
/// descriptor may be used for anything else before. On a non-blocking socket the wait is short.
#[derive(Debug)]
pub(crate) struct Read {
    /// Comes from a box. The C library uses it until the read is done.
    control: NonNull<libc::aiocb>,
    buffer: Vec<u8>,
    room: usize,
}

impl Read {
    /// Begins to read at most `room` bytes from `socket` into the spare capacity of `buffer`. The socket must stay open
    /// until the read is done or dropped.
    ///
    /// # Errors
    /// `WouldBlock` when the C library could not start a thread for it.
    pub(crate) fn begin(socket: BorrowedFd<'_>, mut buffer: Vec<u8>, room: usize) -> io::Result<Self> {
        let spare = buffer.spare_capacity_mut();
        let room = room.min(spare.len());
        // SAFETY: all fields are integers and pointers, which may be zero.
        let mut control: libc::aiocb = unsafe { std::mem::zeroed() };
        control.aio_fildes = socket.as_raw_fd();
        control.aio_buf = spare.as_mut_ptr().cast();
        control.aio_nbytes = room;
        control.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        let control = NonNull::from(Box::leak(Box::new(control)));
        // From here on `drop` frees the control block; a refused read is not in progress.
        let read = Self { control, buffer, room };
        // SAFETY: nobody else touches the control block or the spare capacity that it points to, and only `drop` and
        // `finish` free them, once aio_error says that the read is done.
        match unsafe { libc::aio_read(read.control.as_ptr()) } {
            0 => Ok(read),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The most bytes that it may bring.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Whether it is done.
    pub(crate) fn is_done(&self) -> bool {
        self.error() != libc::EINPROGRESS
    }

    /// Waits until the read is done. Returns how many bytes came, and the buffer that holds them.
    pub(crate) fn finish(self) -> (io::Result<usize>, Vec<u8>) {
        self.wait();
        let outcome = self.outcome();
        let mut this = ManuallyDrop::new(self);
        let mut buffer = std::mem::take(&mut this.buffer);
        // SAFETY: the read is done, so the C library no longer uses the block, which came from a box. `this` is not used
        // or dropped any more.
        drop(unsafe { Box::from_raw(this.control.as_ptr()) });
        if let Ok(count) = outcome {
            // SAFETY: a finished read of `count` bytes has written that many bytes of the spare capacity.
            unsafe { buffer.set_len(buffer.len() + count) };
        }
        (outcome, buffer)
    }

    /// The outcome of a read that is done.
    fn outcome(&self) -> io::Result<usize> {
        match self.error() {
            // SAFETY: the block belongs to a read that is done.
            0 => Ok(unsafe { libc::aio_return(self.control.as_ptr()) }.unsigned_abs()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// The error with which it ended, 0 for success, or `EINPROGRESS`.
    fn error(&self) -> i32 {
        // SAFETY: the block lives as long as `self`. The call takes the C library's own lock, so once it says that the
        // read is done, the library no longer uses the block and the buffer, and its writes are visible here.
        unsafe { libc::aio_error(self.control.as_ptr()) }
    }

    /// Cancels the read if no thread has begun it.
    fn cancel(&self) {
        // SAFETY: the block is alive, and its descriptor stays open until the read is done.
        unsafe { libc::aio_cancel((*self.control.as_ptr()).aio_fildes, self.control.as_ptr()) };
    }

    fn wait(&self) {
        let list = [self.control.as_ptr().cast_const()];
        while !self.is_done() {
            // SAFETY: the list holds one block, which is alive. A signal may end the wait early.
            unsafe { libc::aio_suspend(list.as_ptr(), 1, ptr::null()) };
        }
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        if !self.is_done() {
            self.cancel();
            self.wait();
        }
        // SAFETY: the read is done, so the C library no longer uses the block, which came from a box.
        drop(unsafe { Box::from_raw(self.control.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write},
        os::{fd::AsFd, unix::net::UnixStream},
        sync::{Mutex, PoisonError},
    };

    use super::*;

    /// How many reads glibc has under way at once unless aio_init(3) says otherwise.
    const HELPERS: usize = 20;

    /// The whole process shares the helper threads, so tests take turns.
    static TURN: Mutex<()> = Mutex::new(());

    /// A read from a peer that hangs up before the read is dropped: a blocking read would last for ever.
    struct Call {
        peer: UnixStream,
        read: Read,
        socket: UnixStream,
    }

    fn call() -> Call {
        let (socket, peer) = UnixStream::pair().unwrap();
        Call { peer, read: begin(&socket), socket }
    }

    /// A read that needs only a helper.
    fn busy() -> Call {
        let mut call = call();
        call.peer.write_all(b"a request").unwrap();
        call
    }

    fn is_soon_done(read: &Read) -> bool {
        (0..1_000).any(|_| {
            std::thread::yield_now();
            read.is_done()
        })
    }

    fn begin(socket: &UnixStream) -> Read {
        Read::begin(socket.as_fd(), Vec::with_capacity(100), 100).unwrap()
    }

    fn finish(read: Read) -> (Result<usize, io::ErrorKind>, String) {
        let (outcome, buffer) = read.finish();
        (outcome.map_err(|error| error.kind()), String::from_utf8(buffer).unwrap())
    }

    #[test]
    fn input_is_appended_up_to_the_room() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let (socket, mut peer) = UnixStream::pair().unwrap();
        peer.write_all(b"first and second").unwrap();
        let buffer = Vec::with_capacity(100);
        let read = Read::begin(socket.as_fd(), buffer, 5).unwrap();
        assert_eq!(read.room(), 5);
        assert_eq!(finish(read), (Ok(5), "first".to_owned()));
        let mut buffer = b"so far:".to_vec();
        buffer.reserve(100);
        let read = Read::begin(socket.as_fd(), buffer, 100).unwrap();
        assert_eq!(finish(read), (Ok(11), "so far: and second".to_owned()));
        drop(peer);
        let read = Read::begin(socket.as_fd(), Vec::with_capacity(1), 1).unwrap();
        assert_eq!(finish(read), (Ok(0), String::new()), "the end");
    }

    #[test]
    fn a_non_blocking_read_without_input_fails_at_once() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let (socket, _peer) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let read = Read::begin(socket.as_fd(), Vec::with_capacity(1), 1).unwrap();
        assert_eq!(finish(read), (Err(io::ErrorKind::WouldBlock), String::new()));
    }

    #[test]
    fn glibc_runs_one_read_of_a_descriptor_at_a_time_and_one_dropped_before_its_turn_takes_nothing() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let Call { mut peer, read: first, mut socket } = call();
        // Behind the first, which waits, they can only be cancelled or wait as well.
        let (second, third) = (begin(&socket), begin(&socket));
        drop(second);
        assert!(!first.is_done() && !third.is_done());
        peer.write_all(b"1").unwrap();
        assert_eq!(finish(first).0, Ok(1));
        drop(peer);
        assert_eq!(finish(third).0, Ok(0), "the dropped one left the third its turn");
        assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn glibc_has_twenty_helpers_and_reads_that_block_on_them_hold_up_all_others() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut idle: Vec<Call> = (0..HELPERS).map(|_| call()).collect();
        // A read begun while helpers are still being started may get one before those that wait in the queue. Each of
        // these leaves one helper less for the next.
        let held_up = (0..=HELPERS)
            .map(|_| busy())
            .find_map(|call| if is_soon_done(&call.read) { None } else { Some(call) });
        let held_up = held_up.expect("twenty helpers for all reads");
        for call in &mut idle {
            call.peer.write_all(b"1").unwrap();
        }
        assert_eq!(finish(held_up.read).0, Ok(9));
        for call in idle {
            assert_eq!(finish(call.read).0, Ok(1));
        }
    }
}
