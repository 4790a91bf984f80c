//! Ports for servers that are started with one and listen only later.

use std::{
    io,
    net::TcpListener,
    ops::Range,
    process,
    sync::atomic::{AtomicU16, Ordering::Relaxed},
};

/// Below those that Linux gives to connections (ip(7), `ip_local_port_range`: 32768 to 60999): a server that is slow to start
/// would find such a port taken, by whoever waits for it by connecting even.
const PORTS: Range<u16> = 10_000..32_000;
/// How far apart processes begin.
const APART: u32 = 97;

/// A port on which nobody listens just now, and another each time.
///
/// # Errors
/// Where there is none.
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
    fn each_is_another_and_free_and_none_that_a_connection_may_get() {
        let taken = TcpListener::bind(("127.0.0.1", free_port().unwrap())).unwrap();
        let ports: BTreeSet<_> = (0..100).map(|_| free_port().unwrap()).collect();
        assert!(ports.len() == 100 && !ports.contains(&taken.local_addr().unwrap().port()));
        assert!(ports.iter().all(|port| PORTS.contains(port)));
    }
}
