//! `/proc/net/snmp` and `/proc/net/netstat`: a line of names, then a line of values, per protocol.

use analysis::counters::Tcp;

/// TCP's counters; absent ones are zero.
pub(crate) fn parse(snmp: &str, netstat: &str) -> Tcp {
    Tcp {
        retransmits: value(snmp, "Tcp:", "RetransSegs"),
        segments_sent: value(snmp, "Tcp:", "OutSegs"),
        listen_overflows: value(netstat, "TcpExt:", "ListenOverflows"),
        listen_drops: value(netstat, "TcpExt:", "ListenDrops"),
    }
}

fn value(text: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.split_whitespace().next() == Some(protocol));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|pair| pair.0 == name).and_then(|pair| pair.1.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
        Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs InErrs\nTcp: 1 -1 33305 20213 4 0\n";

    #[test]
    fn names_find_their_values() {
        let netstat =
            "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 5 6\nIpExt: X\nIpExt: 1\n";
        let expected = Tcp { retransmits: 4, segments_sent: 20_213, listen_overflows: 5, listen_drops: 6 };
        assert_eq!(parse(SNMP, netstat), expected);
    }

    #[test]
    fn a_file_cut_after_the_names_counts_nothing() {
        assert_eq!(parse("Tcp: OutSegs\n", ""), Tcp::default());
    }
}
