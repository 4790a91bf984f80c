//! Observers whose far ends say too little, or too much, over pipes.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::io::Write;
use std::time::{Duration, Instant};

use agent::StartError;
use agent::protocol::{self, Packer, Report};
use analysis::run::AgentTrouble;
use observe::monotonic_us;

use self::support::{liar, started};

#[test]
fn an_observer_that_tells_the_time_and_samples_nothing_is_told_of_and_not_waited_for_again_and_again() {
    let silent = liar(|_, _| Vec::new());
    let latest = || {
        let now_us = monotonic_us();
        silent.between((now_us, now_us))
    };
    let told = (0..100).any(|_| latest().is_empty() && !silent.troubles().is_empty());
    let troubles = silent.troubles();
    let is_silent = matches!(troubles[..], [AgentTrouble::Silent { longest_s }] if longest_s > 3.0);
    assert!(told && is_silent, "{troubles:?}");
    // Waiting for each of these would take two minutes in all.
    let begun = Instant::now();
    assert!((0..120).all(|_| latest().is_empty()));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn an_agent_that_floods_before_it_is_ready_did_not_end_by_a_signal() {
    let flood = started(|_, mut output| {
        let (mut packer, large) = (Packer::default(), Report::Failed("x".repeat(1 << 20)));
        let mut sent = output.write_all(protocol::greeting().as_bytes());
        // Nobody reads on once it is too much.
        for _ in 0..64 {
            sent = sent.and_then(|()| output.write_all(&packer.pack(&large).unwrap()));
        }
    });
    let error = flood.unwrap_err();
    assert!(matches!(error, StartError::Flooded { .. }), "{error}");
    assert!(error.to_string().contains("more than an agent may"), "{error}");
}
