//! Values that appear on the command line: durations, numbers of users.

use std::{
    ffi::OsStr,
    net::{SocketAddr, ToSocketAddrs},
    num::NonZeroUsize,
    time::Duration,
};

use analysis::search::UsersRange;
use clap::{Arg, Command, builder::TypedValueParser, error::ErrorKind};
use load::{Sizes, Think};
use store::{Database, InvalidDatabase};

/// The most users a command accepts: more than one host's local ports allow to one server address.
pub(crate) const USERS_MAX: u32 = 60_000;

/// The largest chunk a server reads at a time, bytes: a socket holds no more at once as Linux is set up.
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

/// Parses sizes of generated bodies: `1MB`, or `100KB,1MB`.
pub(crate) fn sizes(text: &str) -> Result<Sizes, String> {
    text.parse().map_err(|error: load::SizeError| error.to_string())
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

/// Parses a duration with its unit: `500us`, `20ms`, `5s`, `2m`, `1h`, `1m 30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a number and a unit, such as 500ms, 5s or 2m"))?;
    if parsed.is_zero() { Err("must be longer than 0".into()) } else { Ok(parsed) }
}

/// A server of ours, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// Whether over TLS, where that is said.
    pub scheme: Option<Scheme>,
    /// Its name, or its address without brackets: what a certificate has to be for.
    pub host: String,
    /// Where that is, looked up once.
    pub at: SocketAddr,
}

/// How a server of ours is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// Parses the URL of a server of ours: `http://HOST:PORT`, `https://HOST:PORT` or `HOST:PORT`. A host's name is looked up
/// now, once.
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
            "'{text}' is no address to listen on: {why}; write ADDR:PORT, such as 127.0.0.1:8080 or [::1]:8080"
        )
    })
}

/// Parses where another peer listens for peers, `ADDR:PORT`. A name is looked up now, once.
pub(crate) fn contact(text: &str) -> Result<SocketAddr, String> {
    address(text).and_then(reachable).map_err(|why| {
        format!(
            "'{text}' is no address of a peer: {why}; write ADDR:PORT as the peer says it ('index among the peers on ..'), \
             such as 192.0.2.7:8086 or [2001:db8::7]:8086"
        )
    })
}

/// Port 0 is for listening: it stands for one that is free.
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
    port.parse::<u16>().map_err(|_| "its port is no number from 0 to 65535")?;
    if host.contains(':') && !host.starts_with('[') {
        return Err("an IPv6 address goes into brackets".into());
    }
    let mut addresses = text.to_socket_addrs().map_err(|error| error.to_string())?;
    addresses.next().ok_or_else(|| "the name has no address".into())
}

/// Parses how long something lives that is to be renewed: a second at least.
pub(crate) fn life(text: &str) -> Result<Duration, String> {
    let life = duration(text)?;
    if life < Duration::from_secs(1) { Err("must be a second at least".into()) } else { Ok(life) }
}

/// Parses a duration that may be `0`, which needs no unit.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

/// Parses a think time: `100ms` for always the same, `exponential:100ms` for one drawn with this mean, `0` for none.
pub(crate) fn think(text: &str) -> Result<Think, String> {
    match text.strip_prefix("exponential:") {
        Some(mean) => duration(mean).map(Think::Exponential),
        None => duration_or_zero(text)
            .map(|time| if time.is_zero() { Think::None } else { Think::Constant(time) }),
    }
}

/// Parses a request's name and its weight: `book=50`.
pub(crate) fn weight(text: &str) -> Result<(String, u32), String> {
    let parsed =
        text.rsplit_once('=').and_then(|(name, weight)| Some((name.to_owned(), weight.parse().ok()?)));
    parsed.filter(|(_, weight)| (1..=1_000_000).contains(weight)).ok_or_else(|| {
        "write the request's name and a whole number from 1 to 1000000, such as book=50".into()
    })
}

/// Parses one number of users.
pub(crate) fn users(text: &str) -> Result<u32, String> {
    match text.trim().parse::<u32>() {
        Ok(0) => Err("there is no load without a user; the least is 1".into()),
        Ok(n) if n <= USERS_MAX => Ok(n),
        Ok(_) => Err(format!("at most {USERS_MAX} users: one host has no more local ports to one address")),
        Err(_) => Err(format!("'{text}' is not a whole number of users")),
    }
}

/// Parses the users of a sweep: a range `1..600` to be searched, or a list `1,2,4` to be run as it is.
pub(crate) fn users_range(text: &str) -> Result<UsersRange, String> {
    if let Some((lo, hi)) = text.split_once("..") {
        let (lo, hi) = (users(lo)?, users(hi.trim_start_matches('='))?);
        return if lo < hi {
            Ok(UsersRange::Range { lo, hi })
        } else {
            Err(format!("the range {lo}..{hi} is empty; write the smaller number first"))
        };
    }
    let mut list = text.split(',').map(users).collect::<Result<Vec<_>, _>>()?;
    list.sort_unstable();
    list.dedup();
    Ok(UsersRange::List(list))
}

/// Parses processor numbers as `taskset -c` has them: `0`, `0,2`, `0-3`.
pub(crate) fn processors(text: &str) -> Result<Vec<usize>, String> {
    let bad = || format!("'{text}' is not a list of processors; write 0, or 0,2, or 0-3");
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| bad())?;
        let last: usize = last.trim().parse().map_err(|_| bad())?;
        if first > last || last >= 4096 {
            return Err(bad());
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// Parses a rate in requests per second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err(format!("'{text}' is not a rate; write requests per second, such as 500")),
    }
}

/// Reads a database. What is wrong with one is told without it: clap would show what was typed, and the password in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseParser;

impl TypedValueParser for DatabaseParser {
    type Value = Database;

    fn parse_ref(
        &self,
        command: &Command,
        flag: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Database, clap::Error> {
        let flag = flag.and_then(Arg::get_long).unwrap_or("database");
        let parsed = value.to_str().map_or(Err(InvalidDatabase::Url), str::parse);
        parsed.map_err(|error| {
            clap::Error::raw(ErrorKind::ValueValidation, format!("--{flag}: {error}\n")).with_cmd(command)
        })
    }
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
    fn a_range_is_searched_and_a_list_is_run_as_it_is() {
        assert_eq!(users_range("1..600"), Ok(UsersRange::Range { lo: 1, hi: 600 }));
        assert_eq!(users_range("4,1,2,2"), Ok(UsersRange::List(vec![1, 2, 4])));
        assert_eq!(users_range("7"), Ok(UsersRange::List(vec![7])));
    }

    #[test]
    fn nonsense_users_are_refused_in_words() {
        for (text, word) in [
            ("0", "least is 1"),
            ("9..3", "empty"),
            ("x", "not a whole number"),
            ("1..99999999", "not a whole"),
            ("1..70000", "at most"),
        ] {
            let error = users_range(text).expect_err(text);
            assert!(error.contains(word) || error.contains("at most"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_need_a_unit_and_a_length() {
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("5").expect_err("no unit").contains("unit"));
        assert!(duration("0s").is_err());
        assert_eq!(duration_or_zero("0"), Ok(Duration::ZERO));
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

    #[test]
    fn think_times_are_constant_unless_said_to_vary() {
        assert_eq!(think("0"), Ok(Think::None));
        assert_eq!(think("100ms"), Ok(Think::Constant(Duration::from_millis(100))));
        assert_eq!(think("exponential:1s"), Ok(Think::Exponential(Duration::from_secs(1))));
        for text in ["exponential:", "exponential:0s", "uniform:1s", "-1s"] {
            assert!(think(text).is_err(), "{text}");
        }
    }

    #[test]
    fn processors_as_taskset_has_them() {
        assert_eq!(processors("0-2,5"), Ok(vec![0, 1, 2, 5]));
        assert!(processors("2-0").is_err());
        assert!(processors("").is_err());
    }
}
