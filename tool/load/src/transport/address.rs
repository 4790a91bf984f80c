//! From a host name to the address that the load goes to.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::error::LoadError;
use crate::url::Url;

/// How long to wait for an address before trying the next one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Resolves the host of a URL. Returns its addresses in the resolver's order.
///
/// # Errors
/// [`LoadError::Resolve`] if there is none.
pub fn resolve(url: &Url) -> Result<Vec<SocketAddr>, LoadError> {
    let failed = |reason: String| LoadError::Resolve { host: url.host().into(), reason };
    let found = (url.host(), url.port()).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        return Err(failed("the resolver knows no address".into()));
    }
    Ok(addresses)
}

/// The addresses of a host.
pub(crate) struct LookedUp {
    pub(crate) addresses: Vec<SocketAddr>,
    /// How long it took to look up the name; `None` where the URL has an address.
    pub(crate) took: Option<Duration>,
}

/// Resolves the host of a URL, and times it.
pub(crate) fn look_up(url: &Url) -> Result<LookedUp, LoadError> {
    let is_name = url.host().parse::<IpAddr>().is_err();
    let began = Instant::now();
    let addresses = resolve(url)?;
    Ok(LookedUp { addresses, took: is_name.then(|| began.elapsed()) })
}

/// Returns the first address that accepts a connection, as a browser would: `localhost` is often both ::1 and 127.0.0.1,
/// with a server on only one of them. If none accepts, returns the first one, whose errors will be counted.
pub(crate) fn first_that_accepts(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let first = addresses.first().copied();
    if addresses.len() < 2 {
        return first;
    }
    let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok();
    addresses.iter().find(accepts).copied().or(first)
}
