//! How many connections each client holds.

use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::atomic::Ordering::Relaxed,
};

use crate::shared::Atomics;

/// Counters of a row. Clients that share one in each row count together, which takes 16 384 times as many to be likely.
const COLUMNS: usize = 16_384;
const ROWS: usize = 2;

/// Counts the connections of each client, in memory that processes share: an address, or a /64 network of IPv6, in which one
/// customer has any number of addresses.
#[derive(Debug)]
pub(crate) struct Clients {
    max: u64,
    cells: Atomics,
    /// Random, so that nobody can choose addresses that share a counter.
    hash: RandomState,
}

/// The counters of a client that holds a connection.
#[derive(Debug)]
pub(crate) struct ClientPlace([usize; ROWS]);

impl Clients {
    /// At most `max` connections each.
    pub(crate) fn new(max: usize) -> Self {
        Self { max: max.max(1) as u64, cells: Atomics::new(ROWS * COLUMNS), hash: RandomState::new() }
    }

    /// Counts one more connection of a client, unless it has as many as it may.
    pub(crate) fn enter(&self, client: IpAddr) -> Option<ClientPlace> {
        let client = network(client);
        let column = |row: usize| (self.hash.hash_one((row, client)) % COLUMNS as u64) as usize;
        let place = ClientPlace([column(0), COLUMNS + column(1)]);
        let held =
            place.0.iter().filter_map(|&at| self.cells.get(at)).map(|cell| cell.fetch_add(1, Relaxed)).min();
        if held.is_some_and(|held| held < self.max) {
            return Some(place);
        }
        self.leave(&place);
        None
    }

    /// Takes a connection off the count.
    pub(crate) fn leave(&self, place: &ClientPlace) {
        for cell in place.0.iter().filter_map(|&at| self.cells.get(at)) {
            cell.fetch_sub(1, Relaxed);
        }
    }
}

/// What stands for a client: its IPv4 address, or the upper half of its IPv6 address.
fn network(client: IpAddr) -> (bool, u64) {
    match client.to_canonical() {
        IpAddr::V4(address) => (false, u32::from(address).into()),
        IpAddr::V6(address) => (true, (u128::from(address) >> 64) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_share() {
        let clients = Clients::new(2);
        let enter = |text: &str| clients.enter(text.parse().unwrap());
        let first = enter("192.0.2.1").unwrap();
        assert!(enter("::ffff:192.0.2.1").is_some() && enter("192.0.2.1").is_none());
        assert!(enter("192.0.2.2").is_some());
        clients.leave(&first);
        assert!(enter("192.0.2.1").is_some() && enter("192.0.2.1").is_none());
        assert!(enter("2001:db8::1").is_some() && enter("2001:db8::2").is_some(), "one customer");
        assert!(enter("2001:db8::3").is_none() && enter("2001:db8:0:1::1").is_some());
    }
}
