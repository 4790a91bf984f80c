//! What a loop asks of the system: which sockets are ready.

use std::{io, os::fd::BorrowedFd, task::Poll, time::Duration};

use rustix::net::RecvFlags;

use crate::{
    buffer::{Buffers, Input},
    loops::Key,
    net,
};

/// What a task waits for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// What the system says of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) key: Key,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer closed its side, or the connection broke: reading will not wait again.
    pub(crate) closed: bool,
}

/// What a read brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// How many bytes; 0 is the end.
    pub(crate) count: usize,
    /// How many it could have brought.
    pub(crate) room: usize,
}

/// A back-end of the readiness family.
///
/// Sockets are watched for one event at a time: [`watch`](Self::watch) when first a task must wait,
/// [`rearm`](Self::rearm) each later time; what was asked last holds. A back-end may tell more than was asked (an
/// edge-triggered one tells everything and has nothing to re-arm) and more than is true, but never less.
pub(crate) trait Poller: Sized + 'static {
    fn new() -> io::Result<Self>;

    /// Whether the back-end can watch `descriptor`; the error says why not, as `select` beyond its 1 024.
    fn can_watch(descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let _ = descriptor;
        Ok(())
    }

    /// Watches a new socket, until an event of `interest` or more.
    fn watch(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()>;

    /// Watches a known socket once more.
    fn rearm(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()>;

    /// Receives what has come on a socket, without waiting.
    ///
    /// Pending means that a read goes on: an event of the socket tells when to ask for its outcome.
    fn receive(
        &mut self,
        (socket, _): (BorrowedFd<'_>, Key),
        into: &mut Input,
        buffers: &mut Buffers,
    ) -> Poll<io::Result<Received>> {
        into.acquire(buffers);
        let (buffer, room) = into.room();
        let received = net::receive(socket, (buffer, room), RecvFlags::empty());
        Poll::Ready(received.map(|count| Received { count, room }))
    }

    /// Tells whenever `descriptor` is readable, until it is [forgotten](Self::forget).
    fn watch_readable(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<()>;

    /// Watches no longer.
    fn forget(&mut self, descriptor: BorrowedFd<'_>, key: Key);

    /// Watches a socket that is about to be closed no longer.
    fn forget_closing(&mut self, socket: BorrowedFd<'_>, key: Key);

    /// Waits for events, no longer than `timeout`, and adds them to `events`.
    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()>;

    /// A turn of the loop is over in which nothing moved. A back-end whose waits do not sleep gives way here.
    fn idle(&self) {}
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::{fd::AsFd, unix::net::UnixStream},
        time::Instant,
    };

    use super::*;
    use crate::{aio::Aio, epoll::Epoll, poll::Poll, polling::Polling, select::Select};

    /// Longer than any of these waits takes.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Runs a test of a back-end for each one named.
    macro_rules! for_each_poller {
        ($test:ident: $($poller:ty),+) => { $( $test::<$poller>(); )+ };
    }

    /// Who is ready to be read now, or within a while.
    fn readable<P: Poller>(poller: &mut P, timeout: Duration) -> Vec<Key> {
        let mut events = Vec::new();
        poller.wait(Some(timeout), &mut events).unwrap();
        let mut keys: Vec<Key> =
            events.iter().filter(|event| event.readable).map(|event| event.key).collect();
        keys.sort();
        keys
    }

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().unwrap()
    }

    fn told_each_time_it_is_waited_for<P: Poller>() {
        let (mut poller, (mut ours, mut theirs)) = (P::new().unwrap(), pair());
        let key = Key::reserved(7);
        poller.watch(ours.as_fd(), key, Interest::Read).unwrap();
        for _ in 0..3 {
            theirs.write_all(b"x").unwrap();
            assert_eq!(readable(&mut poller, PATIENCE), [key]);
            ours.read_exact(&mut [0]).unwrap();
            poller.rearm(ours.as_fd(), key, Interest::Read).unwrap();
        }
        drop(theirs);
        assert_eq!(readable(&mut poller, PATIENCE), [key], "the end is something to read");
    }

    #[test]
    fn a_socket_is_told_each_time_it_is_waited_for() {
        for_each_poller!(told_each_time_it_is_waited_for: Aio, Epoll, Poll, Polling, Select);
    }

    fn told_once<P: Poller>() {
        let (mut poller, (ours, mut theirs)) = (P::new().unwrap(), pair());
        let key = Key::reserved(7);
        poller.watch(ours.as_fd(), key, Interest::Read).unwrap();
        theirs.write_all(b"x").unwrap();
        assert_eq!(readable(&mut poller, PATIENCE), [key]);
        assert_eq!(readable(&mut poller, Duration::ZERO), [], "nobody waits for it now");
    }

    #[test]
    fn a_socket_nobody_waits_for_any_more_is_silent() {
        for_each_poller!(told_once: Aio, Epoll, Poll, Polling, Select);
    }

    fn latest_interest_holds<P: Poller>() {
        let (mut poller, (ours, _theirs)) = (P::new().unwrap(), pair());
        let key = Key::reserved(7);
        let mut events = Vec::new();
        poller.watch(ours.as_fd(), key, Interest::Write).unwrap();
        poller.rearm(ours.as_fd(), key, Interest::Read).unwrap();
        poller.wait(Some(Duration::ZERO), &mut events).unwrap();
        assert!(events.is_empty(), "{events:?}");
        poller.rearm(ours.as_fd(), key, Interest::Write).unwrap();
        poller.wait(Some(PATIENCE), &mut events).unwrap();
        assert!(matches!(events[..], [Event { writable: true, closed: false, .. }]), "{events:?}");
    }

    #[test]
    fn what_was_asked_last_holds() {
        for_each_poller!(latest_interest_holds: Aio, Poll, Select);
    }

    fn forgotten_among_others<P: Poller>() {
        let mut poller = P::new().unwrap();
        let mut pairs: Vec<_> = (0..20).map(|_| pair()).collect();
        for (number, (ours, theirs)) in (0..).zip(&mut pairs) {
            poller.watch(ours.as_fd(), Key::reserved(number), Interest::Read).unwrap();
            theirs.write_all(b"x").unwrap();
        }
        for number in [19, 0, 7, 8] {
            poller.forget(pairs[number].0.as_fd(), Key::reserved(number as u32));
        }
        poller.forget(pairs[0].1.as_fd(), Key::reserved(99));
        let left = (0..20).filter(|number| ![19, 0, 7, 8].contains(number)).map(Key::reserved);
        assert_eq!(readable(&mut poller, PATIENCE), left.collect::<Vec<_>>());
        assert_eq!(readable(&mut poller, Duration::ZERO), []);
    }

    #[test]
    fn a_forgotten_socket_is_silent_and_the_others_are_told() {
        for_each_poller!(forgotten_among_others: Aio, Epoll, Poll, Select);
    }

    fn standing_until_forgotten<P: Poller>() {
        let (mut poller, (ours, mut theirs)) = (P::new().unwrap(), pair());
        let key = Key::reserved(7);
        poller.watch_readable(ours.as_fd(), key).unwrap();
        assert_eq!(readable(&mut poller, Duration::ZERO), []);
        theirs.write_all(b"x").unwrap();
        for _ in 0..3 {
            assert_eq!(readable(&mut poller, PATIENCE), [key]);
        }
        poller.forget(ours.as_fd(), key);
        assert_eq!(readable(&mut poller, Duration::ZERO), []);
    }

    #[test]
    fn a_descriptor_watched_for_good_is_told_until_it_is_forgotten() {
        for_each_poller!(standing_until_forgotten: Aio, Epoll, Poll, Polling, Select);
    }

    fn sleeps_for_its_time<P: Poller>() {
        let (mut poller, begin) = (P::new().unwrap(), Instant::now());
        assert_eq!(readable(&mut poller, Duration::from_millis(20)), []);
        assert!(begin.elapsed() >= Duration::from_millis(20), "{:?}", begin.elapsed());
    }

    #[test]
    fn with_nothing_to_wait_for_every_back_end_sleeps_for_its_time() {
        for_each_poller!(sleeps_for_its_time: Aio, Epoll, Poll, Polling, Select);
    }

    #[test]
    fn polling_tries_a_socket_without_asking_or_waiting() {
        let (mut poller, (ours, _theirs)) = (Polling::new().unwrap(), pair());
        let (key, begin) = (Key::reserved(7), Instant::now());
        poller.watch(ours.as_fd(), key, Interest::Read).unwrap();
        assert_eq!(readable(&mut poller, PATIENCE), [key]);
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    }
}
