//! Values on the command lines of several systems: addresses, sizes, durations.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    str::FromStr,
};

pub use nstar::values::{Unshown, duration, duration_or_zero};

/// Parses a number of bytes, with or without a unit: `1024`, `64KiB`, `1.5 MB`.
///
/// # Errors
/// When it is something else.
pub fn size(text: &str) -> Result<u64, String> {
    let bytes = text.parse::<bytesize::ByteSize>();
    bytes.map(|size| size.as_u64()).map_err(|_| {
        format!(
            "'{text}' is not a size; write bytes, such as 1024, or a number and a unit, such as 64KiB or 1MB"
        )
    })
}

/// A number of bytes that is a limit, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(Option<u64>);

impl Limit {
    /// The limit, if there is one.
    pub fn bytes(self) -> Option<u64> {
        self.0
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        size(text).map(Some).map(Self).map_err(|error| format!("{error}; or none"))
    }
}

/// Parses an address to listen on, `ADDR:PORT`. Looks up a name once, now.
///
/// # Errors
/// When it is something else, or the name has no address.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    address(text).map_err(|why| {
        format!(
            "'{text}' is not an address to listen on: {why}; write ADDR:PORT, such as 127.0.0.1:8080 or [::1]:8080"
        )
    })
}

/// Parses `ADDR:PORT`. Looks up a name once, now.
///
/// # Errors
/// What is wrong, as a part of a message.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if text.contains("://") {
        return Err("it is a URL".into());
    }
    let (host, port) = text.rsplit_once(':').ok_or("it has no port")?;
    if host.is_empty() {
        return Err("it names no host".into());
    }
    port.parse::<u16>().map_err(|_| "the port must be a number from 0 to 65535")?;
    if host.contains(':') && !host.starts_with('[') {
        return Err("put an IPv6 address in brackets".into());
    }
    let mut addresses = text.to_socket_addrs().map_err(|error| error.to_string())?;
    addresses.next().ok_or_else(|| "the name has no address".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_on_may_be_a_name_and_errors_say_what_to_write() {
        assert_eq!(listen("127.0.0.1:0"), Ok("127.0.0.1:0".parse().unwrap()));
        assert_eq!(listen("[::1]:8080"), Ok("[::1]:8080".parse().unwrap()));
        assert!(
            listen("localhost:8080")
                .is_ok_and(|address| address.ip().is_loopback() && address.port() == 8080)
        );
        for wrong in [
            "",
            "8080",
            ":8080",
            "localhost",
            "::1:8080",
            "127.0.0.1:x",
            "127.0.0.1:65536",
            "no such name:80",
        ] {
            let error = listen(wrong).unwrap_err();
            assert!(error.contains("write ADDR:PORT") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn sizes_have_units_or_are_bytes() {
        for (text, bytes) in
            [("0", 0), ("1024", 1024), ("64KiB", 65_536), ("1.5 MB", 1_500_000), ("1kb", 1_000)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "many", "-1", "1 XB"] {
            assert!(size(text).expect_err(text).contains("64KiB"), "{text}");
        }
        assert_eq!(("none".parse(), "1KiB".parse()), (Ok(Limit(None)), Ok(Limit(Some(1024)))));
        assert!("nothing".parse::<Limit>().expect_err("no size").contains("or none"));
    }
}
