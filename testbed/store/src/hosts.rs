//! The hosts in the URL of a database: one, or several that are one database.

use std::collections::BTreeSet;

/// The most hosts in a URL.
const HOSTS_MAX: usize = 16;

/// A list of hosts that is invalid. No host is repeated: without `@`, it may be a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHosts {
    /// One of them.
    #[error("host {number} of {count} in this URL {wanted}; write HOST:PORT,HOST:PORT,HOST:PORT/DATABASE")]
    Host {
        /// Which, from 1.
        number: usize,
        /// How many there are.
        count: usize,
        /// What it lacks.
        wanted: &'static str,
    },
    /// More than a database has.
    #[error("this URL has {0} hosts, and at most {HOSTS_MAX} are possible")]
    TooMany(usize),
    /// As a parameter, or in both places.
    #[error(
        "several hosts go before /DATABASE: write HOST:PORT,HOST:PORT/DATABASE, and no parameter for hosts"
    )]
    Parameter,
    /// The parameter about the order of hosts.
    #[error("load_balance_hosts in this URL must be disable or random")]
    Balance,
}

/// Checks a list of hosts, separated by commas. One alone is left to the driver.
pub(crate) fn split(list: &str) -> Result<Vec<&str>, InvalidHosts> {
    let hosts: Vec<&str> = list.split(',').collect();
    let count = hosts.len();
    match count {
        1 => return Ok(hosts),
        2..=HOSTS_MAX => {}
        _ => return Err(InvalidHosts::TooMany(count)),
    }
    let mut seen = BTreeSet::new();
    for (host, number) in hosts.iter().zip(1..) {
        let wanted = match fault(host) {
            None if seen.insert(*host) => continue,
            None => "is there twice",
            Some(fault) => fault,
        };
        return Err(InvalidHosts::Host { number, count, wanted });
    }
    Ok(hosts)
}

/// What is wrong with `HOST` or `HOST:PORT`.
fn fault(host: &str) -> Option<&'static str> {
    // An IPv6 address is in brackets.
    let (name, rest) = match host.rfind(']') {
        Some(end) => host.split_at_checked(end + 1).unwrap_or((host, "")),
        None => host.find(':').and_then(|colon| host.split_at_checked(colon)).unwrap_or((host, "")),
    };
    if host.is_empty() {
        return Some("is empty");
    }
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Some("has no name or address");
    }
    let port = rest.strip_prefix(':').map_or_else(|| rest.is_empty(), is_port);
    (!port).then_some("has a port that is no number from 1 to 65535")
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Takes the parameter about the order of hosts out of the query of a URL. Returns the rest, and whether the order is random.
pub(crate) fn read_balance(query: &str) -> Result<(String, bool), InvalidHosts> {
    let (mut rest, mut random) = (Vec::new(), false);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.strip_prefix("load_balance_hosts=") {
            Some("random") => random = true,
            Some("disable") => random = false,
            Some(_) => return Err(InvalidHosts::Balance),
            None => rest.push(part),
        }
    }
    Ok((rest.join("&"), random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_split_at_commas() {
        for (list, hosts) in [
            ("a", &["a"][..]),
            ("a:1,b,c:65535", &["a:1", "b", "c:65535"]),
            ("[::1]:3306,[::2],10.0.0.1", &["[::1]:3306", "[::2]", "10.0.0.1"]),
        ] {
            assert_eq!(split(list).as_deref(), Ok(hosts), "{list}");
        }
        assert_eq!(split("").as_deref(), Ok(&[""][..]), "the driver says what is wrong with one alone");
    }

    #[test]
    fn a_list_that_is_wrong_is_told_where_and_not_repeated() {
        for (list, said) in [
            ("hush,", "host 2 of 2 in this URL is empty"),
            (",hush", "host 1 of 2 in this URL is empty"),
            ("hush,,hush", "host 2 of 3 in this URL is empty"),
            ("hush,b:0", "host 2 of 2 in this URL has a port"),
            ("hush:hush,b", "host 1 of 2 in this URL has a port"),
            ("hush:+1,b", "host 1 of 2 in this URL has a port"),
            ("b,hush:65536", "host 2 of 2 in this URL has a port"),
            ("[::1]hush,b", "host 1 of 2 in this URL has a port"),
            (":3306,hush", "host 1 of 2 in this URL has no name"),
            ("hush,b, c", "host 3 of 3 in this URL has no name"),
            ("hush,b,hush", "host 3 of 3 in this URL is there twice"),
        ] {
            let error = split(list).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("hush"), "{list}: {error}");
        }
        let many: Vec<String> = (0..17).map(|number| format!("h{number}")).collect();
        assert_eq!(split(&many.join(",")), Err(InvalidHosts::TooMany(17)));
    }

    #[test]
    fn the_order_is_read_and_the_rest_is_left() {
        assert_eq!(read_balance("a=1&load_balance_hosts=random&b=2"), Ok(("a=1&b=2".into(), true)));
        assert_eq!(read_balance("load_balance_hosts=disable"), Ok((String::new(), false)));
        assert_eq!(read_balance("load_balance_hosts=sometimes"), Err(InvalidHosts::Balance));
    }
}
