//! Ports for servers that are told their port before they listen on it.

use std::{
    io,
    net::TcpListener,
    ops::Range,
    process,
    sync::atomic::{AtomicU16, Ordering::Relaxed},
};

/// Ports below those that Linux gives to outgoing connections (ip(7), `ip_local_port_range`: 32768 to 60999). A server
/// that is slow to start could find one of those taken, even by a client that connects to see whether it is up.
const PORTS: Range<u16> = 10_000..32_000;
/// The distance between the first ports that consecutive processes try.
const APART: u32 = 97;

/// Returns a port on which nothing listens now, a different one each time.
///
/// # Errors
/// When there is none.
pub fn free_port() -> io::Result<u16> {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let (count, begin) = (u32::from(PORTS.end - PORTS.start), process::id().wrapping_mul(APART));
    let next = || {
        let offset = begin.wrapping_add(TAKEN.fetch_add(1, Relaxed).into()) % count;
        PORTS.start + u16::try_from(offset).unwrap_or_default()
    };
    let mut ports = PORTS.map(|_| next());
    let free = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, "all ports are in use"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_differ_and_are_free_and_no_outgoing_connection_may_get_them() {
        let taken = TcpListener::bind(("127.0.0.1", free_port().unwrap())).unwrap();
        let ports: BTreeSet<_> = (0..100).map(|_| free_port().unwrap()).collect();
        assert!(ports.len() == 100 && !ports.contains(&taken.local_addr().unwrap().port()));
        assert!(ports.iter().all(|port| PORTS.contains(port)));
    }
}
