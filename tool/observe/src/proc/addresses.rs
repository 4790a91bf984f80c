//! A network namespace's own addresses: `/proc/net/fib_trie` and `/proc/net/if_inet6`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses the kernel routes to itself (`host LOCAL` leaves of the trie).
pub(crate) fn ipv4(fib_trie: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in fib_trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.trim().parse().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// Addresses of the interfaces: 32 hexadecimal digits, then what is not used here.
pub(crate) fn ipv6(if_inet6: &str) -> Vec<Ipv6Addr> {
    let address = |line: &str| {
        let digits = line.split_whitespace().next().filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from)
    };
    if_inet6.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_leaves_of_the_trie() {
        let text = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
             \x20    |-- 192.0.2.2\n        /32 host LOCAL\n     |-- 192.0.2.255\n        /32 link BROADCAST\n     |-- 192.0.2.2\n        /32 host LOCAL\n";
        assert_eq!(ipv4(text), vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(192, 0, 2, 2)]);
    }

    #[test]
    fn interface_addresses() {
        let text = "00000000000000000000000000000001 01 80 10 80       lo\nfd00 04 40 00 80 eth0\n";
        assert_eq!(ipv6(text), vec![Ipv6Addr::LOCALHOST]);
    }
}
