//! Checks addresses: a server must not be open to other machines without a secret or keys, and the users of an index must
//! be able to reach the peers in it.

use std::net::SocketAddr;

/// The server would be open to everyone who reaches its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{listen} can be reached from other machines, and without a secret or keys everyone there could use this server; \
     give the group's secret with --secret-file or its members' keys with --allow, or listen on 127.0.0.1"
)]
pub struct Exposed {
    listen: SocketAddr,
}

/// Refuses an open group on an address that other machines can reach.
///
/// # Errors
/// When `listen` is not a loopback address and the group is not closed.
pub fn check_exposure(listen: SocketAddr, is_closed: bool) -> Result<(), Exposed> {
    let local = listen.ip().to_canonical().is_loopback();
    if local || is_closed { Ok(()) } else { Err(Exposed { listen }) }
}

/// A warning for people if the index at `index` is for other machines but the peer at `me` is only reachable from its own:
/// other machines could find its files but not fetch them.
pub(crate) fn unreachable_peer(peer: SocketAddr, index: SocketAddr) -> Option<String> {
    let local = |at: SocketAddr| at.ip().to_canonical().is_loopback();
    (local(peer) && !local(index)).then(|| {
        format!(
            "this peer's files are at {peer}, which only its own machine can reach, but the index at {index} is for other \
             machines too: they cannot have the files; listen where they can reach this peer (--listen ADDR:PORT), or \
             say at which address they do (--advertise ADDR:PORT)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_secret_servers_stay_on_this_machine() {
        for (listen, open, closed) in [
            ("127.0.0.1:1", true, true),
            ("[::1]:1", true, true),
            ("0.0.0.0:1", false, true),
            ("192.0.2.1:1", false, true),
            ("[::]:1", false, true),
        ] {
            let listen = listen.parse().unwrap();
            assert_eq!(check_exposure(listen, false).is_ok(), open, "{listen}");
            assert_eq!(check_exposure(listen, true).is_ok(), closed, "{listen}");
        }
    }

    #[test]
    fn a_peer_on_loopback_and_an_index_that_others_ask_do_not_go_together() {
        for (me, index, told) in [
            ("127.0.0.1:1", "192.0.2.1:1", true),
            ("127.0.0.1:1", "0.0.0.0:1", true),
            ("[::1]:1", "[2001:db8::1]:1", true),
            ("[::ffff:127.0.0.1]:1", "192.0.2.1:1", true),
            ("127.0.0.1:1", "127.0.0.2:1", false),
            ("127.0.0.1:1", "[::1]:1", false),
            ("192.0.2.2:1", "192.0.2.1:1", false),
            ("192.0.2.2:1", "127.0.0.1:1", false),
        ] {
            let said = unreachable_peer(me.parse().unwrap(), index.parse().unwrap());
            assert_eq!(said.is_some(), told, "{me} {index}");
        }
    }
}
