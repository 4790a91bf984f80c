//! Profiles of another host, over pipes: asked for by the near end, and told by agents that are honest or not.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent::protocol::{Command, Packer, ProfileOrder, Profiled, Report};
use agent::serve::{Uses, serve};
use agent::{Observer, Patience};
use analysis::profile::{HostProfile, Names, Space, Tier, Unwinder};
use analysis::run::{AgentTrouble, Processes, ProfileTrouble, Stack, TierProfile};
use observe::ProgramTables;

use self::support::observer;

/// Longer than any of these answers takes, and shorter than anybody waits for a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers as an agent does, but for profiles, instead of which it says this.
fn liar(says: impl Fn(&ProfileOrder, &mut Packer) -> Vec<u8> + Send + 'static) -> Observer {
    support::liar(move |command, packer| match command {
        Command::Profile(order) => says(&order, packer),
        _ => Vec::new(),
    })
}

fn packed(packer: &mut Packer, number: u64, told: &HostProfile) -> Vec<u8> {
    let json = serde_json::to_string(told).unwrap();
    packer.pack(&Report::Profiled(Profiled { number, json })).unwrap()
}

fn tier(pid: u32) -> Tier {
    let processes = Processes { name: "nginx".into(), ..Processes::default() };
    Tier { processes, pids: [pid].into() }
}

/// What it tells of a tier that it is asked to profile for a moment.
fn told(observer: &Observer, patience: Duration) -> Result<HostProfile, ProfileTrouble> {
    let asked = observer.profile(vec![tier(1)], Duration::from_millis(10));
    observer.end_profile();
    observer.profiled(&asked, &Patience::begin(patience, &AtomicBool::new(false)))
}

/// Names nothing.
fn tables() -> ProgramTables {
    fn names(_: &BTreeMap<Space, BTreeSet<u64>>) -> Names {
        Names::new()
    }
    fn unwinder() -> Option<Box<dyn Unwinder>> {
        None
    }
    ProgramTables { names, unwinder }
}

#[test]
fn an_agent_built_without_profiles_says_so() {
    let observer = observer(|input, output| drop(serve(Uses::Observing, None, input, output)));
    assert_eq!(told(&observer, PATIENCE).unwrap().troubles, [ProfileTrouble::NotBuilt]);
    assert_eq!(observer.troubles(), []);
}

/// Whoever asks may know the numbers of other processes, and is told nothing of them.
#[test]
fn an_agent_profiles_no_process_that_it_does_not_watch() {
    let observer = observer(|input, output| drop(serve(Uses::All, Some(tables()), input, output)));
    let told = told(&observer, PATIENCE).unwrap();
    assert_eq!(told.troubles, [ProfileTrouble::NotHere]);
    assert_eq!((told.tiers.len(), told.tiers[0].samples, told.off_cpu), (1, 0, None));
    assert_eq!(told.tiers[0].processes.name, "nginx", "as it was called here");
}

#[test]
fn an_agent_that_never_tells_its_profile_is_waited_for_so_long_and_no_longer() {
    let silent = liar(|_, _| Vec::new());
    let missing = told(&silent, Duration::from_millis(20));
    assert!(matches!(missing, Err(ProfileTrouble::NotAnswered { waited_s: Some(_) })), "{missing:?}");
    assert_eq!(silent.troubles(), [], "it goes on with all else");
}

/// The far end never answers, and nobody waits for a day: the one who asked is interrupted once it was asked.
#[test]
fn an_interrupt_ends_the_waiting_for_a_profile() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let silent = liar(move |_, _| {
        theirs.store(true, Ordering::Relaxed);
        Vec::new()
    });
    let asked = silent.profile(vec![tier(1)], Duration::from_millis(10));
    let day = Duration::from_secs(24 * 60 * 60);
    let missing = silent.profiled(&asked, &Patience::begin(day, &stop));
    assert!(matches!(missing, Err(ProfileTrouble::NotAnswered { waited_s: Some(_) })), "{missing:?}");
    assert_eq!(silent.troubles(), [], "it goes on with all else");
}

#[test]
fn a_profile_that_nobody_asked_for_is_not_taken_for_one() {
    let earlier = liar(|order, packer| packed(packer, order.number - 1, &HostProfile::default()));
    let missing = told(&earlier, Duration::from_millis(20));
    assert!(matches!(missing, Err(ProfileTrouble::NotAnswered { .. })), "{missing:?}");
}

#[test]
fn a_profile_that_cannot_be_is_told_as_such_and_ends_nothing() {
    let lies = liar(|order, packer| {
        let stacks = vec![Stack { calls: vec![7], samples: 1 }];
        let tier = TierProfile { samples: 1, stacks, ..TierProfile::default() };
        packed(packer, order.number, &HostProfile { tiers: vec![tier], ..HostProfile::default() })
    });
    assert_eq!(told(&lies, PATIENCE), Err(ProfileTrouble::Malformed));
    assert_eq!(lies.troubles(), []);
}

/// Of what is no profile nothing is shown: it may hold anything.
#[test]
fn a_text_that_is_no_profile_is_told_as_such_and_ends_nothing() {
    let lies = liar(|order, packer| {
        let profiled = Profiled { number: order.number, json: "{\"password\":".into() };
        packer.pack(&Report::Profiled(profiled)).unwrap()
    });
    assert_eq!(told(&lies, PATIENCE), Err(ProfileTrouble::Malformed));
    assert_eq!(lies.troubles(), []);
}

#[test]
fn what_is_no_report_ends_the_agent_and_nobody_waits_for_its_profile() {
    let no_report = liar(|_, _| vec![0xff; 8]);
    assert_eq!(told(&no_report, PATIENCE), Err(ProfileTrouble::NotAnswered { waited_s: None }));
    assert!(no_report.troubles().contains(&AgentTrouble::Malformed), "{:?}", no_report.troubles());
}
