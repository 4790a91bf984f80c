//! What limits the connections of a network namespace, during one step.

use std::net::SocketAddr;

use super::samples::growth;
use crate::counters::{ConnectionLimits, Counters, PortsHeld, Tracked};

/// The use of a table of tracked connections.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TableUse {
    /// Most connections in any sample.
    pub connections: u64,
    /// How many there may be.
    pub most: u64,
    /// Packets dropped and connections given up, per second.
    pub refused_per_s: f64,
}

/// Local ports in use, or held after the connection ended, towards one address.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PortUse {
    /// The address.
    pub address: SocketAddr,
    /// Whether it is the address that the generator calls.
    pub is_target: bool,
    /// How many ports, most in any sample.
    pub used: u64,
    /// How many there are.
    pub ports: u64,
}

/// The table that came nearest to its limit.
pub(super) fn tracked(samples: &[&Counters]) -> Option<TableUse> {
    let of = |of_server| table(&looks(samples, of_server));
    let fill = |table: &TableUse| table.connections as f64 / table.most as f64;
    [of(false), of(true)].into_iter().flatten().max_by(|a, b| fill(a).total_cmp(&fill(b)))
}

fn table(looks: &[(u64, &ConnectionLimits)]) -> Option<TableUse> {
    let seen: Vec<(u64, Tracked)> =
        looks.iter().filter_map(|(at_us, look)| Some((*at_us, look.tracked?))).collect();
    let (first, last) = (seen.first()?, seen.last()?);
    let elapsed_us = growth(first.0, last.0) as f64;
    let refused = growth(first.1.refused, last.1.refused) as f64;
    (last.1.most > 0).then(|| TableUse {
        connections: seen.iter().map(|(_, tracked)| tracked.connections).max().unwrap_or(0),
        most: last.1.most,
        refused_per_s: if elapsed_us > 0.0 { refused / elapsed_us * 1e6 } else { 0.0 },
    })
}

/// The ports that came nearest to being used up.
pub(super) fn ports(samples: &[&Counters]) -> Option<PortUse> {
    let looks = [false, true].into_iter().flat_map(|of_server| looks(samples, of_server));
    let used = looks.filter_map(|(_, look)| {
        let PortsHeld { address, is_target, ports: used } = look.most_ports?;
        (look.local_ports > 0).then_some(PortUse { address, is_target, used, ports: look.local_ports })
    });
    let fill = |ports: &PortUse| ports.used as f64 / ports.ports as f64;
    used.max_by(|a, b| fill(a).total_cmp(&fill(b)))
}

/// The looks at one of the two namespaces, and when they were taken.
fn looks<'a>(samples: &[&'a Counters], of_server: bool) -> Vec<(u64, &'a ConnectionLimits)> {
    let of_sample = |sample: &&'a Counters| {
        let found = sample.connection_limits.as_ref()?.iter().find(|limits| limits.of_server == of_server)?;
        Some((sample.at_us, found))
    };
    samples.iter().filter_map(of_sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_us: u64, limits: &[ConnectionLimits]) -> Counters {
        Counters { at_us, connection_limits: Some(limits.to_vec()), ..Counters::default() }
    }

    fn held(ports: u64) -> PortsHeld {
        PortsHeld { address: ([10, 0, 0, 7], 5432).into(), is_target: false, ports }
    }

    fn limits(of_server: bool, connections: u64, refused: u64) -> ConnectionLimits {
        ConnectionLimits {
            of_server,
            tracked: Some(Tracked { connections, most: 1000, refused }),
            local_ports: 500,
            most_ports: of_server.then_some(held(connections / 2)),
            ..ConnectionLimits::default()
        }
    }

    #[test]
    fn the_fuller_namespace_is_told_of() {
        let all = [
            sample(1_000_000, &[limits(false, 10, 0), limits(true, 900, 40)]),
            Counters { at_us: 2_000_000, ..Counters::default() },
            sample(3_000_000, &[limits(false, 20, 0), limits(true, 990, 240)]),
        ];
        let samples: Vec<&Counters> = all.iter().collect();
        assert_eq!(tracked(&samples), Some(TableUse { connections: 990, most: 1000, refused_per_s: 100.0 }));
        let expected =
            PortUse { address: ([10, 0, 0, 7], 5432).into(), is_target: false, used: 495, ports: 500 };
        assert_eq!(ports(&samples), Some(expected));
        assert_eq!((tracked(&[]), ports(&[])), (None, None));
        assert_eq!(tracked(&samples[..1]).map(|table| table.refused_per_s), Some(0.0));
    }

    #[test]
    fn nothing_is_divided_by_limits_that_are_not_known() {
        let none = [ConnectionLimits {
            tracked: Some(Tracked { connections: 5, ..Tracked::default() }),
            most_ports: Some(held(9)),
            ..ConnectionLimits::default()
        }];
        let all = [sample(1_000_000, &none), sample(2_000_000, &none)];
        let samples: Vec<&Counters> = all.iter().collect();
        assert_eq!((tracked(&samples), ports(&samples)), (None, None));
    }
}
