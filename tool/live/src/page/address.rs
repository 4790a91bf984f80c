//! Where a page is served.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
};

/// The port, unless the caller says otherwise.
const PORT: u16 = 7070;

/// Where a page is served: `127.0.0.1:7070`, or its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(SocketAddr);

/// Reasons why a page is not served there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It looks like what is to be driven.
    #[error(
        "that is no address to serve the page on: put --ui behind the URL or scenario, or write --ui={PORT}"
    )]
    Target,
    /// It is no address.
    #[error("expected PORT, ADDRESS or ADDRESS:PORT with an IP address, such as 127.0.0.1:{PORT}")]
    Malformed,
    /// Others than this host could reach it.
    #[error(
        "--ui {0} would let other hosts see the sweep, and end it: --ui-network allows that, to whoever knows the page's whole \
         address"
    )]
    NotLoopback(SocketAddr),
}

impl Address {
    /// The address itself.
    #[must_use]
    pub fn socket(&self) -> SocketAddr {
        self.0
    }

    /// The same address, if it is one of this host alone or others are allowed.
    ///
    /// # Errors
    /// [`AddressError::NotLoopback`].
    pub fn allowed(self, network: bool) -> Result<Self, AddressError> {
        if self.0.ip().is_loopback() || network { Ok(self) } else { Err(AddressError::NotLoopback(self.0)) }
    }
}

impl Default for Address {
    fn default() -> Self {
        Self(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.contains("://") || text.contains('/') || text.ends_with(".toml") {
            return Err(AddressError::Target);
        }
        let usual = Self::default().0;
        let text =
            text.replacen("localhost", &usual.ip().to_string(), usize::from(text.starts_with("localhost")));
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let found = (text.parse::<SocketAddr>().ok())
            .or_else(|| bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, usual.port())))
            .or_else(|| text.parse::<u16>().ok().map(|port| SocketAddr::new(usual.ip(), port)));
        found.map(Self).ok_or(AddressError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_not_given_are_the_usual_ones() {
        for (text, expected) in [
            ("8080", "127.0.0.1:8080"),
            ("0", "127.0.0.1:0"),
            ("127.0.0.2", "127.0.0.2:7070"),
            ("127.0.0.1:81", "127.0.0.1:81"),
            ("localhost", "127.0.0.1:7070"),
            ("localhost:9", "127.0.0.1:9"),
            ("::1", "[::1]:7070"),
            ("[::1]", "[::1]:7070"),
            ("[::1]:5", "[::1]:5"),
        ] {
            assert_eq!(text.parse::<Address>().expect(text).socket().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_address_is_told_from_a_target() {
        for text in ["", "70000", "-1", "example.com:80", "1.2.3:4", "localhosts", "127.0.0.1:x"] {
            assert_eq!(text.parse::<Address>(), Err(AddressError::Malformed), "{text}");
        }
        for text in ["http://127.0.0.1:80", "127.0.0.1:80/", "shop.toml"] {
            assert_eq!(text.parse::<Address>(), Err(AddressError::Target), "{text}");
        }
    }

    #[test]
    fn other_hosts_are_let_in_only_where_that_is_asked_for() {
        for text in ["0.0.0.0", "[::]:1", "192.168.0.7:80"] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.allowed(false), Err(AddressError::NotLoopback(address.socket())));
            assert_eq!(address.allowed(true), Ok(address));
        }
        assert!(Address::default().allowed(false).is_ok());
    }
}
