//! Where the processes behind addresses are, as an agent tells it.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use agent::protocol::{Command, Listens, Report};
use analysis::run::AgentTrouble;

use self::support::liar;

/// The answer to a question that all these addresses are served there.
fn served(number: u64, addresses: Vec<SocketAddr>) -> Report {
    let found = addresses.into_iter().map(|at| Ok(Listens { at, by_port: false }));
    Report::Watching(number, found.collect())
}

#[test]
fn a_late_answer_to_an_earlier_question_is_not_taken_for_that_to_the_next() {
    let [first, second] = [80, 81].map(|port| SocketAddr::from(([10, 0, 0, 3], port)));
    let slow = liar(move |command, packer| match command {
        Command::Watch { number, addresses, .. } => {
            let late = served(number - 1, vec![first]);
            let answers = [late, served(number, addresses)];
            answers.iter().flat_map(|answer| packer.pack(answer).unwrap()).collect()
        }
        _ => Vec::new(),
    });
    for asked in [first, second] {
        assert_eq!(slow.watch(&[asked], &[]), [Ok(Listens { at: asked, by_port: false })]);
    }
}

#[test]
fn what_was_told_of_other_addresses_is_not_taken_for_an_answer() {
    let [target, behind] = [80, 5432].map(|port| SocketAddr::from(([10, 0, 0, 3], port)));
    let has_told = AtomicBool::new(false);
    let ends = liar(move |command, packer| match command {
        Command::Watch { number, addresses, .. } if !has_told.swap(true, Ordering::Relaxed) => {
            packer.pack(&served(number, addresses)).unwrap()
        }
        // What no agent says: nothing more is heard of it.
        Command::Watch { .. } => vec![0xff; 8],
        _ => Vec::new(),
    });
    assert_eq!(ends.watch(&[target], &[]), [Ok(Listens { at: target, by_port: false })]);
    assert!(ends.watch(&[behind], &[]).is_empty());
    assert!(ends.troubles().contains(&AgentTrouble::Malformed), "{:?}", ends.troubles());
}
