//! Who asks, where proxies stand between. Only those that are named are believed: what the others send may be anybody's.

use std::{net::IpAddr, str::FromStr, sync::Arc};

use engine::service::Connection;
use tracing::field::DisplayValue;

use super::{
    Exchange,
    forwarded::{self, Hop},
};

/// The proxies that are believed when they say for whom they ask. Default: none.
#[derive(Clone, Debug, Default)]
pub struct Proxies(Arc<[Network]>);

/// An address, or all that begin like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// What is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no address of a proxy; write ADDR or ADDR/BITS, such as 127.0.0.1, 10.0.0.0/8 or fd00::/8")]
pub struct NetworkError(String);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The client's address, as far as it is known: that of the nearest one that is no proxy which is believed.
    pub address: IpAddr,
    /// Whether a proxy that is believed says that the client came over TLS.
    pub came_encrypted: bool,
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = width(address);
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        if bits > width {
            return Err(wrong());
        }
        // An IPv4 address written as one of IPv6 is the same address.
        let canonical = address.to_canonical();
        let bits = bits.checked_sub(width - self::width(canonical)).ok_or_else(wrong)?;
        Ok(Self { address: canonical, bits })
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl Network {
    fn holds(&self, address: IpAddr) -> bool {
        let differ = match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => return false,
        };
        differ >= self.bits
    }
}

impl FromIterator<Network> for Proxies {
    fn from_iter<I: IntoIterator<Item = Network>>(networks: I) -> Self {
        Self(networks.into_iter().collect())
    }
}

impl Proxies {
    fn believe(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.holds(address))
    }

    /// Goes back from the peer over the hops that proxies told of, as long as the one before is believed.
    fn trace(&self, peer: IpAddr, hops: &[Hop]) -> Requester {
        let mut found = Requester { address: peer.to_canonical(), came_encrypted: false };
        let mut before = hops.iter().rev();
        while self.believe(found.address)
            && let Some(Hop { address: Some(address), encrypted }) = before.next()
        {
            found = Requester { address: *address, came_encrypted: encrypted.unwrap_or(false) };
        }
        found
    }
}

impl<C: Connection> Exchange<'_, C> {
    /// Who asks, for a line of an access log; nothing where it is the peer itself.
    pub fn client(&self) -> Option<DisplayValue<IpAddr>> {
        let asks = self.requester().address;
        (asks != self.peer().ip().to_canonical()).then(|| tracing::field::display(asks))
    }

    /// Who asks: the peer, or whom a proxy that is believed asks for, by `Forwarded` or by `X-Forwarded-For` and
    /// `X-Forwarded-Proto`.
    ///
    /// A proxy sets one of the two and may pass the other on as a client sent it. Where they differ neither is believed.
    pub fn requester(&self) -> Requester {
        let (proxies, peer) = (&self.options.proxies, self.peer().ip().to_canonical());
        let unknown = Requester { address: peer, came_encrypted: false };
        if !proxies.believe(peer) {
            return unknown;
        }
        let has = |name| self.header(name).is_some();
        let newer = || {
            let hops = forwarded::forwarded(self.header_all("forwarded"));
            hops.map_or(unknown, |hops| proxies.trace(peer, &hops))
        };
        let older = || {
            let mut found =
                proxies.trace(peer, &forwarded::x_forwarded_for(self.header_all("x-forwarded-for")));
            found.came_encrypted =
                forwarded::x_forwarded_proto(self.header_all("x-forwarded-proto")) == Some(true);
            found
        };
        match (has("forwarded"), has("x-forwarded-for")) {
            (true, false) => newer(),
            (false, _) => older(),
            (true, true) => {
                let (newer, older) = (newer(), older());
                let came_encrypted = newer.came_encrypted || older.came_encrypted;
                if newer.address == older.address { Requester { came_encrypted, ..newer } } else { unknown }
            }
        }
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
        let holds = |network: &str, address: &str| network.parse::<Network>().unwrap().holds(ip(address));
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("10.1.2.3/8", "10.9.9.9"), "what the bits leave out does not count");
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
    fn the_client_is_the_last_that_is_no_proxy_which_is_believed() {
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
