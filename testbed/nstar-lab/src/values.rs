//! Values on the command lines of the testbed: servers, addresses, sizes.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    num::NonZeroUsize,
    time::Duration,
};

use nstar::values::duration;

/// The most bytes a server reads at a time: with Linux's defaults a socket holds no more at once.
const CHUNK_MAX: u64 = 4 << 20;

/// Parses a number of bytes, with or without a unit: `1024`, `64KiB`, `1.5 MB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let bytes = text.parse::<bytesize::ByteSize>();
    bytes.map(|size| size.as_u64()).map_err(|_| {
        format!(
            "'{text}' is not a size; write bytes, such as 1024, or a number and a unit, such as 64KiB or 1MB"
        )
    })
}

/// Parses how many bytes a server is to read at a time.
pub(crate) fn chunk(text: &str) -> Result<NonZeroUsize, String> {
    let bytes = size(text)?;
    if bytes > CHUNK_MAX {
        return Err(format!("at most {CHUNK_MAX} bytes are read at a time"));
    }
    let chunk = usize::try_from(bytes).ok().and_then(NonZeroUsize::new);
    chunk.ok_or_else(|| "a read of 0 bytes gets nothing; the least is 1".into())
}

/// One of our servers, as named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// The scheme, if given.
    pub scheme: Option<Scheme>,
    /// Its name, or its address without brackets, which its certificate must match.
    pub host: String,
    /// Its address, looked up once.
    pub at: SocketAddr,
}

/// The scheme of a server's URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// Parses the URL of one of our servers: `http://HOST:PORT`, `https://HOST:PORT` or `HOST:PORT`. A host's name is
/// looked up now, once.
pub(crate) fn server(text: &str) -> Result<Server, String> {
    let shown = http_io::without_user(text);
    let (scheme, place) = match text.split_once("://") {
        Some(("http", place)) => (Some(Scheme::Http), place),
        Some(("https", place)) => (Some(Scheme::Https), place),
        Some(_) => return Err(format!("{shown}: write http://HOST:PORT or https://HOST:PORT")),
        None => (None, text),
    };
    let wrong = |why: &str| format!("{shown}: {why}; write http://HOST:PORT");
    let place = place.strip_suffix('/').unwrap_or(place);
    if place.contains(['/', '?', '#', '@']) {
        return Err(wrong("a path or a user cannot be given"));
    }
    let mut addresses = place.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
    let at = addresses.next().ok_or_else(|| wrong("the name has no address"))?;
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host).trim_matches(['[', ']']);
    Ok(Server { scheme, host: host.to_owned(), at })
}

/// Parses an address to listen on, `ADDR:PORT`. A name is looked up now, once.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    address(text).map_err(|why| {
        format!(
            "'{text}' is not an address to listen on: {why}; write ADDR:PORT, such as 127.0.0.1:8080 or [::1]:8080"
        )
    })
}

/// Parses where another peer listens for peers, `ADDR:PORT`. A name is looked up now, once.
pub(crate) fn contact(text: &str) -> Result<SocketAddr, String> {
    address(text).and_then(reachable).map_err(|why| {
        format!(
            "'{text}' is not an address of a peer: {why}; write ADDR:PORT as the peer prints it \
             ('index among the peers on ..'), such as 192.0.2.7:8086 or [2001:db8::7]:8086"
        )
    })
}

/// Refuses port 0, which is only for listening: it stands for any free port.
fn reachable(at: SocketAddr) -> Result<SocketAddr, String> {
    if at.port() == 0 { Err("nobody listens on port 0".into()) } else { Ok(at) }
}

fn address(text: &str) -> Result<SocketAddr, String> {
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

/// Parses how long something lasts unless it is renewed: a second at least.
pub(crate) fn life(text: &str) -> Result<Duration, String> {
    let life = duration(text)?;
    if life < Duration::from_secs(1) { Err("must be a second at least".into()) } else { Ok(life) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_url_or_its_address_alone() {
        let read = |text| server(text).map(|named| (named.scheme, named.host, named.at.port()));
        assert_eq!(read("127.0.0.1:80"), Ok((None, "127.0.0.1".into(), 80)));
        assert_eq!(read("https://[::1]:8085/"), Ok((Some(Scheme::Https), "::1".into(), 8085)));
        assert_eq!(read("http://localhost:1"), Ok((Some(Scheme::Http), "localhost".into(), 1)));
        for wrong in ["", "localhost", "http://127.0.0.1", "ftp://127.0.0.1:1", "127.0.0.1:1/x"] {
            let error = server(wrong).unwrap_err();
            assert!(error.contains(wrong) && error.contains("HOST:PORT"), "{error}");
        }
        for wrong in ["https://u:hush@127.0.0.1:1", "u:hush@127.0.0.1:1", "ftp://u:hush@127.0.0.1:1"] {
            let error = server(wrong).unwrap_err();
            assert!(error.contains("@127.0.0.1:1") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn an_address_to_listen_on_may_be_a_name_and_else_is_told_with_what_to_write() {
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
        assert_eq!(chunk("1024").map(NonZeroUsize::get), Ok(1024));
        assert!(chunk("0").expect_err("nothing").contains("least is 1"));
        assert!(chunk("1GB").expect_err("too much").contains("at most"));
    }
}
