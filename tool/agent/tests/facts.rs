//! Facts of another host, over pipes: asked for by the near end, and told by agents that are honest or not.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use agent::protocol::{Command, Packer, Report};
use agent::serve::{Uses, serve};
use agent::{Observer, Patience};
use analysis::doctor::{Facts, HostProcess, Subject, SubjectFacts};
use analysis::run::AgentTrouble;

use self::support::observer;

/// Answers as an agent does, but for facts, instead of which it says this to a question of this number.
fn liar(says: impl Fn(u64, &mut Packer) -> Vec<u8> + Send + 'static) -> Observer {
    support::liar(move |command, packer| match command {
        Command::Facts(number) => says(number, packer),
        _ => Vec::new(),
    })
}

/// What it tells when it is asked once.
fn told(observer: &Observer) -> Option<Facts> {
    let asked = observer.ask_for_facts();
    observer.facts(asked)
}

#[test]
fn an_agent_tells_the_facts_of_its_host_and_none_of_a_generator() {
    let observer = observer(|input, output| drop(serve(Uses::Observing, None, input, output)));
    let (first, second) = (told(&observer).unwrap(), told(&observer).unwrap());
    assert!(!first.cpus.is_empty() && !first.debug_build && first.subjects.is_empty(), "{first:?}");
    assert!(first.sockets.listen_queue.is_some());
    assert!(second.at_us > first.at_us, "each is a look of its own");
    assert_eq!(observer.troubles(), []);
}

#[test]
fn an_agent_that_does_not_answer_in_time_has_told_nothing() {
    let silent = liar(|_, _| Vec::new());
    let stop = AtomicBool::new(false);
    let asked = silent.ask_for_facts();
    assert_eq!(silent.facts_within(asked, &Patience::begin(Duration::from_millis(1), &stop)), None);
    let honest = observer(|input, output| drop(serve(Uses::Observing, None, input, output)));
    let asked = honest.ask_for_facts();
    let patience = Patience::begin(Duration::from_secs(60), &stop);
    assert!(honest.facts_within(asked, &patience).is_some_and(|told| !told.cpus.is_empty()));
}

#[test]
fn late_facts_are_not_taken_for_those_that_were_asked_for_next() {
    let slow = liar(|number, packer| {
        let facts = |number| {
            let clock = Some(format!("clock {number}"));
            Report::Facts(number, Box::new(Facts { clock, ..Facts::default() }))
        };
        [number - 1, number].into_iter().flat_map(|of| packer.pack(&facts(of)).unwrap()).collect()
    });
    for number in 1..=2 {
        assert_eq!(told(&slow).and_then(|facts| facts.clock), Some(format!("clock {number}")));
    }
}

#[test]
fn an_agent_that_sends_anything_else_instead_of_facts_has_told_none() {
    let too_long = liar(|_, _| vec![0xff; 8]);
    assert_eq!(told(&too_long), None);
    assert!(too_long.troubles().contains(&AgentTrouble::Malformed), "{:?}", too_long.troubles());
    // A frame of nine bytes that is no report: its kind, a length of four, and what no report begins with.
    let no_report = liar(|_, _| [&[9, 0, 0, 0, 3, 4, 0, 0, 0][..], &[0xff; 4]].concat());
    assert_eq!(told(&no_report), None);
    assert!(no_report.troubles().contains(&AgentTrouble::Malformed), "{:?}", no_report.troubles());
}

#[test]
fn an_agent_that_tells_of_more_than_there_can_be_is_cut_short() {
    let process = HostProcess { name: "a\n\x1b[31m".repeat(9), ..HostProcess::default() };
    let limits = SubjectFacts { quota_cores: Some(f64::NAN), ..SubjectFacts::default() };
    let facts = Facts {
        debug_build: true,
        processes: vec![process; 30_000],
        subjects: vec![(Subject::Generator, limits)],
        ..Facts::default()
    };
    let lies =
        liar(move |number, packer| packer.pack(&Report::Facts(number, Box::new(facts.clone()))).unwrap());
    let told = told(&lies).unwrap();
    assert!(told.processes.len() < 30_000 && told.subjects.is_empty() && !told.debug_build);
    assert!(!told.processes[0].name.contains(char::is_control), "{:?}", told.processes[0]);
}

#[test]
fn an_agent_that_floods_with_facts_is_not_listened_to() {
    let large = Facts { clocks: vec!["x".repeat(1 << 20)], ..Facts::default() };
    let flood = liar(move |number, packer| {
        let facts = || Report::Facts(number, Box::new(large.clone()));
        (0..20).flat_map(|_| packer.pack(&facts()).unwrap()).collect()
    });
    // Some come through before there are too many.
    while told(&flood).is_some() {}
    assert!(flood.troubles().contains(&AgentTrouble::Flooded), "{:?}", flood.troubles());
}
