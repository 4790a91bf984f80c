//! Which idle connections end to make room for clients that wait.
//!
//! How long a connection has been idle is the kernel's knowledge: it is asked only once clients wait, so that requests cost
//! no look at a clock.

use std::{os::fd::RawFd, time::Duration};

use crate::{
    clock::{self, Micros},
    control::Control,
    net,
};

/// How long a connection must have been idle before it ends for others, in milliseconds.
const IDLE_MS_MIN: u32 = 1_000;
/// The shortest time between two looks at all connections.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// When all connections may be looked at again.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    next: Micros,
    /// When the caller's timer fires that was set last.
    reminder: Micros,
}

impl Looks {
    /// Whether it is time for another look, which then counts as taken.
    pub(crate) fn take(&mut self) -> bool {
        let now = clock::now();
        let due = now >= self.next;
        if due {
            self.next = clock::after(now, LOOK_EVERY);
        }
        due
    }

    /// Lets the next look wait.
    pub(crate) fn postpone(&mut self) {
        self.next = clock::after(clock::now(), LOOK_EVERY);
    }

    /// Ends idle connections for so many clients that wait, if it is time for a look. `end` is told how many are wanted, and
    /// returns how many it ended; the other loops are asked for the rest.
    pub(crate) fn make_room(&mut self, waiting: usize, others: &Control, end: impl FnOnce(usize) -> usize) {
        if self.take() {
            let ended = end(waiting);
            if ended < waiting {
                others.want_room(waiting - ended);
            }
        }
    }

    /// Ends idle connections for clients that wait at other loops, as [`make_room`](Self::make_room) does.
    pub(crate) fn make_room_for_others(&mut self, others: &Control, end: impl FnOnce(usize) -> usize) {
        let wanted = others.room_wanted();
        if wanted > 0 && self.take() {
            others.made_room(end(wanted));
        }
    }

    /// When a timer should remind of another look, unless one is set already.
    pub(crate) fn reminder(&mut self) -> Option<Micros> {
        let now = clock::now();
        if now < self.reminder {
            return None;
        }
        self.reminder = clock::after(now, LOOK_EVERY);
        Some(self.reminder)
    }
}

/// Whether nothing has come or gone on this connection for so long that it may end for others. May be called in a signal
/// handler.
pub(crate) fn is_long_idle(socket: RawFd) -> bool {
    net::quiet_ms(socket).is_some_and(|quiet_ms| quiet_ms >= IDLE_MS_MIN)
}

/// The connections that end so that `wanted` others find room: those that have been idle longest, and long enough. Only
/// connections between requests may be among those given.
pub(crate) fn longest_idle<K>(between_requests: impl Iterator<Item = (K, RawFd)>, wanted: usize) -> Vec<K> {
    let quiet = |(key, socket)| Some((net::quiet_ms(socket)?, key));
    longest(between_requests.filter_map(quiet), wanted)
}

fn longest<K>(quiet: impl Iterator<Item = (u32, K)>, wanted: usize) -> Vec<K> {
    let mut idle: Vec<(u32, K)> = quiet.filter(|&(quiet_ms, _)| quiet_ms >= IDLE_MS_MIN).collect();
    idle.sort_by_key(|&(quiet_ms, _)| std::cmp::Reverse(quiet_ms));
    idle.into_iter().take(wanted).map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd,
    };

    use super::*;

    #[test]
    fn those_idle_longest_end_but_none_below_the_least() {
        let quiet = [(5_000, 'b'), (999, 'd'), (70_000, 'a'), (1_000, 'c')];
        assert_eq!(longest(quiet.into_iter(), 2), ['a', 'b']);
        assert_eq!(longest(quiet.into_iter(), 9), ['a', 'b', 'c']);
        assert_eq!(longest(quiet.into_iter(), 0), []);
    }

    #[test]
    fn the_kernel_tells_how_long_nothing_came_or_went() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        assert_eq!(net::quiet_ms(listener.as_raw_fd()), None, "a listening socket is no connection");
        std::thread::sleep(Duration::from_millis(300));
        let before = net::quiet_ms(server.as_raw_fd()).unwrap();
        assert!(before >= 250, "{before}");
        client.write_all(b"x").unwrap();
        server.peek(&mut [0]).unwrap();
        let after = net::quiet_ms(server.as_raw_fd()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(net::quiet_ms(server.as_raw_fd()).unwrap() > after, "it grows again");
    }
}
