//! Clients turned away: told why, without holding up the others.

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

/// Refused clients waited for at one time. Beyond, the one that was told first is let go.
const LINGERING_MAX: usize = 256;
/// How long a refused client may take to read its answer and close.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a refused client may still send, in bytes.
const UNREAD_MAX: usize = 256 << 10;

/// Answers clients that are not served, and closes so that they see the answer.
///
/// Closing at once with input unread would reset the connection and could destroy the answer on its way
/// (RFC 9112 section 9.6): so it is closed for sending only, and what comes is read and dropped for a while.
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
    /// Each refused client is sent `answer`.
    pub(crate) fn new(answer: Vec<u8>) -> Self {
        Self { answer, lingering: VecDeque::new(), discarded: vec![0; 16 << 10].into() }
    }

    /// Sends the answer and waits, later, for the client to close.
    pub(crate) fn answer(&mut self, socket: OwnedFd) {
        // A fresh connection has room for a short answer; a client that is gone needs none.
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

    /// How long until a client is given up; none while there is none.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.lingering.front().map(|first| first.until.saturating_duration_since(Instant::now()))
    }

    /// What to wait for, in the order of [`tend`](Self::tend)'s `ready`.
    pub(crate) fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.lingering.iter().map(|client| PollFd::from_borrowed_fd(client.socket.as_fd(), PollFlags::IN))
    }

    /// Reads from those that are ready, and lets go of those that have closed or taken too long.
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

/// Makes the closing of the socket a reset.
pub(crate) fn reset(socket: &OwnedFd) {
    // Without it the client sees an ordinary end, which tells it nearly as much.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

impl Lingering {
    /// Reads what came; whether more may come.
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
