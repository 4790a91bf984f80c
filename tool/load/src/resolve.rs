//! From a host name to the one address that the load goes to.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::error::LoadError;
use crate::url::Url;

/// How long an address may take to answer before the next one is tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// The addresses of a URL's host, in the resolver's order.
///
/// # Errors
/// [`LoadError::Resolve`] where there is none.
pub fn resolve(url: &Url) -> Result<Vec<SocketAddr>, LoadError> {
    let failed = |reason: String| LoadError::Resolve { host: url.host().into(), reason };
    let found = (url.host(), url.port()).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        return Err(failed("the resolver knows no address".into()));
    }
    Ok(addresses)
}

/// The first of them that accepts a connection, as a browser would choose: `localhost` is often both
/// ::1 and 127.0.0.1, with a server on one. The first one where none does: its errors will be counted.
pub(crate) fn first_that_accepts(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let first = addresses.first().copied();
    if addresses.len() < 2 {
        return first;
    }
    let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, PATIENCE).is_ok();
    addresses.iter().find(accepts).copied().or(first)
}
