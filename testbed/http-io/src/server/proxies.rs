//! Which client sent a request through proxies. Only trusted proxies count: others may send anything.

use std::{net::IpAddr, str::FromStr, sync::Arc};

use ipnet::{IpNet, Ipv4Net};

use wire::request::View as RequestHead;

use super::forwarded::{self, Hop};

/// The bits of an IPv6 address before an IPv4 address that is mapped to it.
const MAPPED_BITS: u8 = 96;

/// The proxies that are trusted to name their clients. Default: none.
#[derive(Clone, Debug, Default)]
pub struct Proxies(Arc<[Network]>);

/// An address or a network, such as 10.0.0.0/8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// Text that is neither an address nor a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not the address of a proxy; write ADDR or ADDR/BITS, such as 127.0.0.1, 10.0.0.0/8 or fd00::/8"
)]
pub struct NetworkError(String);

/// The client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The client's address as far as it is known: the nearest one that is not a trusted proxy.
    pub address: IpAddr,
    /// Whether a trusted proxy says that the client used TLS.
    pub came_encrypted: bool,
}

/// What the proxy and the client behind it say of the client's address does not go together, so that there is no telling
/// who the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnclearRequester {
    /// One of the two fields came from the client, and passed the proxy.
    #[error("Forwarded and X-Forwarded-For name different clients")]
    Contradiction,
    /// A client left something open, so that what the proxy added behind it cannot be told from it.
    #[error("Forwarded is malformed")]
    Malformed,
}

impl Requester {
    /// A client that is the peer itself.
    pub(crate) fn direct(peer: IpAddr) -> Self {
        Self { address: peer.to_canonical(), came_encrypted: false }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let network = network.ok().and_then(canonical);
        network.map(Self).ok_or_else(|| NetworkError(text.to_owned()))
    }
}

/// Converts a network of mapped IPv4 addresses to one of IPv4. `None` if it holds other addresses too.
fn canonical(network: IpNet) -> Option<IpNet> {
    match network.addr().to_canonical() {
        IpAddr::V4(address) if network.max_prefix_len() > 32 => {
            let bits = network.prefix_len().checked_sub(MAPPED_BITS)?;
            Ipv4Net::new(address, bits).ok().map(IpNet::V4)
        }
        _ => Some(network),
    }
}

impl FromIterator<Network> for Proxies {
    fn from_iter<I: IntoIterator<Item = Network>>(networks: I) -> Self {
        Self(networks.into_iter().collect())
    }
}

impl Proxies {
    /// The client of a request that arrived from `peer`.
    ///
    /// # Errors
    /// When a trusted proxy's word cannot be told from the client's.
    pub fn requester(&self, peer: IpAddr, head: RequestHead<'_>) -> Result<Requester, UnclearRequester> {
        if !self.trust(peer) {
            return Ok(Requester::direct(peer));
        }
        let has = |name| head.header(name).is_some();
        match (has("forwarded"), has("x-forwarded-for")) {
            (true, false) => self.by_forwarded(peer, head),
            (false, _) => Ok(self.by_x_forwarded(peer, head)),
            (true, true) => {
                let (one, other) = (self.by_forwarded(peer, head)?, self.by_x_forwarded(peer, head));
                let came_encrypted = one.came_encrypted || other.came_encrypted;
                let agreed = one.address == other.address;
                agreed.then_some(Requester { came_encrypted, ..one }).ok_or(UnclearRequester::Contradiction)
            }
        }
    }

    /// Whether no proxy is trusted, so that every request is taken to come from its peer.
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    fn by_forwarded(&self, peer: IpAddr, head: RequestHead<'_>) -> Result<Requester, UnclearRequester> {
        let hops = forwarded::forwarded(head.header_all("forwarded"));
        Ok(self.trace(peer, &hops.ok_or(UnclearRequester::Malformed)?))
    }

    fn by_x_forwarded(&self, peer: IpAddr, head: RequestHead<'_>) -> Requester {
        let hops = forwarded::x_forwarded_for(head.header_all("x-forwarded-for"));
        let encrypted = forwarded::x_forwarded_proto(head.header_all("x-forwarded-proto"));
        Requester { came_encrypted: encrypted == Some(true), ..self.trace(peer, &hops) }
    }

    /// Whether this is the address of a trusted proxy.
    pub(crate) fn trust(&self, address: IpAddr) -> bool {
        self.0.iter().any(|Network(network)| network.contains(&address.to_canonical()))
    }

    /// Goes back from the peer over the hops that proxies reported, as long as the last one is trusted.
    fn trace(&self, peer: IpAddr, hops: &[Hop]) -> Requester {
        let mut found = Requester::direct(peer);
        let mut before = hops.iter().rev();
        while self.trust(found.address)
            && let Some(Hop { address: Some(address), encrypted }) = before.next()
        {
            found.address = *address;
            found.came_encrypted = encrypted.unwrap_or(false);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(all: &[&str]) -> Proxies {
        all.iter().map(|text| text.parse::<Network>().unwrap()).collect()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn traced(proxies: &Proxies, peer: &str, hops: &str) -> IpAddr {
        proxies.trace(ip(peer), &forwarded::x_forwarded_for([hops.as_bytes()].into_iter())).address
    }

    #[test]
    fn networks_are_addresses_with_or_without_bits() {
        let holds = |network: &str, address: &str| proxies(&[network]).trust(ip(address));
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("10.1.2.3/8", "10.9.9.9"), "bits beyond the prefix do not count");
        assert!(holds("127.0.0.1", "::ffff:127.0.0.1") && !holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("::ffff:10.0.0.0/104", "10.1.1.1") && !holds("::ffff:10.0.0.0/104", "11.1.1.1"));
        assert!(holds("fd00::/8", "fdff::1") && !holds("fd00::/8", "fe00::1"));
        assert!(holds("0.0.0.0/0", "192.0.2.1") && !holds("0.0.0.0/0", "2001:db8::1"));
        for wrong in [
            "",
            "localhost",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/x",
            "10.0.0/8",
            "::ffff:10.0.0.0/8",
        ] {
            let error = wrong.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains("ADDR/BITS"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_trusted_proxy() {
        let two = proxies(&["127.0.0.1", "10.0.0.0/8"]);
        assert_eq!(traced(&two, "127.0.0.1", "192.0.2.1"), ip("192.0.2.1"));
        assert_eq!(traced(&two, "127.0.0.1", "6.6.6.6, 192.0.2.1, 10.0.0.7"), ip("192.0.2.1"));
        assert_eq!(traced(&two, "198.51.100.1", "192.0.2.1"), ip("198.51.100.1"), "it is none");
        assert_eq!(traced(&two, "127.0.0.1", "10.0.0.9, 10.0.0.7"), ip("10.0.0.9"), "from within");
        for nonsense in ["", "unknown", "192.0.2.1, x"] {
            assert_eq!(traced(&two, "127.0.0.1", nonsense), ip("127.0.0.1"), "{nonsense}");
        }
        assert_eq!(
            traced(&two, "127.0.0.1", "192.0.2.1, x, 10.0.0.7"),
            ip("10.0.0.7"),
            "no further than is known"
        );
        assert_eq!(traced(&Proxies::default(), "127.0.0.1", "192.0.2.1"), ip("127.0.0.1"));
    }
}
