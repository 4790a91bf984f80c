//! Listening sockets, one entry per port.

use std::collections::BTreeMap;

use analysis::counters::Listener;

use crate::Pid;
use crate::proc::tcp::{Socket, State};

/// Of `sockets` those whose inodes are `listeners`, which names their owners; several on one port (SO_REUSEPORT) are summed.
pub(super) fn by_port(sockets: &[Socket], listeners: &BTreeMap<u64, Option<Pid>>) -> Vec<Listener> {
    let mut found: Vec<Listener> = Vec::new();
    for socket in sockets.iter().filter(|socket| socket.state == State::Listen) {
        let Some(Some(pid)) = listeners.get(&socket.inode).copied() else { continue };
        let port = socket.local.port();
        match found.iter_mut().find(|listener| listener.port == port) {
            Some(listener) => {
                listener.waiting += socket.receive_queue;
                listener.backlog += socket.backlog;
            }
            None => {
                found.push(Listener { port, pid, waiting: socket.receive_queue, backlog: socket.backlog })
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_one_port_are_one_listener() {
        let socket = |port: u16, inode, state| Socket {
            local: ([0, 0, 0, 0], port).into(),
            remote: ([0, 0, 0, 0], 0).into(),
            state,
            receive_queue: 2,
            backlog: 128,
            inode,
        };
        let sockets = [
            socket(80, 1, State::Listen),
            socket(80, 2, State::Listen),
            socket(81, 3, State::Listen),
            socket(80, 4, State::Established),
            socket(82, 5, State::Listen),
        ];
        let listeners = by_port(&sockets, &[(1, Some(7)), (2, Some(8)), (4, Some(7)), (5, None)].into());
        assert_eq!(listeners, [Listener { port: 80, pid: 7, waiting: 4, backlog: 256 }]);
    }
}
