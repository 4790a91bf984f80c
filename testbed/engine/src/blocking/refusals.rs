//! Answers to clients that are turned away, without holding up the others.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags},
    net::{RecvFlags, SendFlags, Shutdown, recv, shutdown, sockopt},
};

use crate::net;

/// How many refused clients are waited for at once. Beyond that, the oldest is dropped.
const LINGERING_MAX: usize = 256;
/// How long a refused client may take to read its answer and close.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many more bytes a refused client may send.
const UNREAD_MAX: usize = 256 << 10;

/// Answers clients that are not served, and closes in a way that lets them see the answer.
///
/// Closing at once with unread input would reset the connection and could destroy the answer in flight (RFC 9112 section
/// 9.6). So the connection is closed for sending only, and input is read and dropped for a while.
pub(crate) struct Refusals {
    answer: Vec<u8>,
    lingering: VecDeque<Lingering>,
    discarded: Box<[u8]>,
}

struct Lingering {
    socket: OwnedFd,
    until: Instant,
    allowance: usize,
}

impl Refusals {
    /// Sends `answer` to each refused client.
    pub(crate) fn new(answer: Vec<u8>) -> Self {
        Self { answer, lingering: VecDeque::new(), discarded: vec![0; 16 << 10].into() }
    }

    /// Sends the answer. [`tend`](Self::tend) waits for the client to close.
    pub(crate) fn answer(&mut self, socket: OwnedFd) {
        // A new connection has room for a short answer, and a client that is gone needs none.
        let sent = net::send(&socket, &self.answer, SendFlags::DONTWAIT);
        if sent.is_err() || shutdown(&socket, Shutdown::Write).is_err() {
            return;
        }
        if self.lingering.len() >= LINGERING_MAX {
            self.lingering.pop_front();
        }
        let until = Instant::now() + PATIENCE;
        self.lingering.push_back(Lingering { socket, until, allowance: UNREAD_MAX });
    }

    /// How long until the next client is dropped, if there is one.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.lingering.front().map(|first| first.until.saturating_duration_since(Instant::now()))
    }

    /// The sockets to wait for, in the order of the `ready` of [`tend`](Self::tend).
    pub(crate) fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.lingering.iter().map(|client| PollFd::from_borrowed_fd(client.socket.as_fd(), PollFlags::IN))
    }

    /// Reads from the clients that are `ready`, and drops those that have closed or taken too long.
    pub(crate) fn tend(&mut self, ready: &[bool]) {
        if self.lingering.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut ready = ready.iter().copied();
        let discarded = &mut self.discarded;
        self.lingering.retain_mut(|client| {
            let ready = ready.next().unwrap_or(false);
            client.until > now && (!ready || client.discard(discarded))
        });
    }
}

/// Makes closing the socket reset the connection.
pub(crate) fn reset(socket: &OwnedFd) {
    // If this fails, the client sees an ordinary end, which tells it nearly as much.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

impl Lingering {
    /// Reads and drops input. Returns whether more may come.
    fn discard(&mut self, into: &mut [u8]) -> bool {
        match recv(&self.socket, &mut *into, RecvFlags::DONTWAIT) {
            Ok((0, _)) => false,
            Ok((count, _)) => {
                self.allowance = self.allowance.saturating_sub(count);
                self.allowance > 0
            }
            Err(errno) => net::would_wait(&errno.into()),
        }
    }
}
