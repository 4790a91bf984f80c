//! Where the processes behind addresses are, as an agent tells it.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use agent::protocol::{Command, Report};
use analysis::run::AgentTrouble;

use self::support::liar;

#[test]
fn what_was_told_of_other_addresses_is_not_taken_for_an_answer() {
    let [target, behind] = [80, 5432].map(|port| SocketAddr::from(([10, 0, 0, 3], port)));
    let has_told = AtomicBool::new(false);
    let ends = liar(move |command, packer| match command {
        Command::Watch { addresses, .. } if !has_told.swap(true, Ordering::Relaxed) => {
            packer.pack(&Report::Watching(addresses.into_iter().map(Ok).collect())).unwrap()
        }
        // What no agent says: nothing more is heard of it.
        Command::Watch { .. } => vec![0xff; 8],
        _ => Vec::new(),
    });
    assert_eq!(ends.watch(&[target], &[]), [Ok(target)]);
    assert!(ends.watch(&[behind], &[]).is_empty());
    assert!(ends.troubles().contains(&AgentTrouble::Malformed), "{:?}", ends.troubles());
}
