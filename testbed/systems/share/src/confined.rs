//! Whether those who ask an index can reach a peer at the address that the index tells them.

use std::net::SocketAddr;

/// What is wrong, for people, where an index that is reached at `index` tells of a peer that is reached at `me`: other
/// machines ask the one, and cannot have files from the other.
pub(crate) fn confined(me: SocketAddr, index: SocketAddr) -> Option<String> {
    let local = |at: SocketAddr| at.ip().to_canonical().is_loopback();
    (local(me) && !local(index)).then(|| {
        format!(
            "this peer's files are to be had from {me}, which only its own machine reaches, and the index at {index} is \
             for other machines too: they cannot have them; listen where they reach it (--listen ADDR:PORT), or say where \
             they do (--advertise ADDR:PORT)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let said = confined(me.parse().unwrap(), index.parse().unwrap());
            assert_eq!(said.is_some(), told, "{me} {index}");
        }
    }
}
