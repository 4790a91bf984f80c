//! A database behind the server: its locks told from its processors, its disk, and the server's own limits.

use analysis::conclude::Conclusion;
use analysis::counters::ThreadState;
use analysis::run::{DatabaseTrouble, ResourceKind, WarningKind};
use proptest::prelude::*;

use super::lab::{Lab, Platter, Sessions, Sure, conclude, says, server, sure, sweep};

/// A server before a database, both with little to do.
fn tiers() -> Lab {
    let database = server("mariadbd").downstream().demand_us(200.0).threads(16).cpus(&[2]);
    sweep().tier(server("app").demand_us(100.0).threads(8).cpus(&[0, 1])).tier(database)
}

/// All but so many of the sessions at work wait for a lock.
fn getting_on(get_on: u32) -> Sessions {
    Sessions { get_on, ..Sessions::default() }
}

#[test]
fn one_row_that_everybody_wants_is_the_lock_of_the_database() {
    let found = tiers().pool(1, 10_000.0).sessions(getting_on(1)).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!(
        (bottleneck.kind, bottleneck.holder.as_str(), sure(&found)),
        (ResourceKind::Lock, "mariadbd (pid 912)", Sure::Direct),
        "{found:#?}"
    );
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
    assert!((bottleneck.demand_us.unwrap() - 10_000.0).abs() < 600.0, "{bottleneck:#?}");
    for words in [
        "sessions at work in mariadbd (pid 912) waited for a lock",
        "in 100 % of",
        "of its response time",
        "With 1 user 0 waited, with 64 users 15.",
        "The database itself counted",
        "All else had room",
        "of 64 users 16 were in the database at a time",
        "CPU time of a request in each tier: mariadbd (pid 912) 200 µs, app (pid 812) 100 µs.",
    ] {
        assert!(says(&found, words), "no '{words}' in {bottleneck:#?}");
    }
    let last = found.steps.last().unwrap();
    assert_eq!(last.locks.unwrap().waiting, 15.0);
    let drawn = last.resources.iter().find(|resource| resource.kind == ResourceKind::Lock).unwrap();
    assert_eq!((drawn.holder.as_str(), drawn.used, drawn.capacity), ("mariadbd (pid 912)", 15.0, 16.0));
}

#[test]
fn two_sessions_are_enough_to_tell_a_lock() {
    let sessions = Sessions { most: 2, counts: false, ..getting_on(1) };
    let found = tiers().pool(1, 10_000.0).sessions(sessions).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Lock, "{found:#?}");
    assert_eq!(found.verdict.bottleneck.holder, "mariadbd (pid 912)");
}

#[test]
fn a_database_out_of_processor_is_cpu_with_its_locks_excluded() {
    let busy = server("mariadbd").downstream().demand_us(400.0).threads(16).cpus(&[2]);
    let lab = sweep().tier(server("app").demand_us(100.0).threads(8).cpus(&[0, 1])).tier(busy);
    let found = lab.sessions(getting_on(15)).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!(
        (bottleneck.kind, bottleneck.holder.as_str()),
        (ResourceKind::Cpu, "mariadbd (pid 912)"),
        "{found:#?}"
    );
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
    assert!(
        says(&found, "Locks of the database are not what stops it: on average 0.8 of the 14 sessions"),
        "{bottleneck:#?}"
    );
    assert!(says(&found, "CPU time of a request in each tier: mariadbd"), "{bottleneck:#?}");
}

#[test]
fn a_full_processor_and_a_queue_for_locks_together_are_not_told_apart() {
    let busy = server("mariadbd").downstream().demand_us(400.0).threads(16).cpus(&[2]);
    let found = sweep().tier(server("app")).tier(busy).sessions(getting_on(1)).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Cpu, "{found:#?}");
    assert!(
        found.verdict.inconclusive[0].contains("it cannot be told which of the two comes first"),
        "{found:#?}"
    );
}

#[test]
fn flushes_of_the_database_are_the_disk_unless_locks_queue_as_well() {
    let flushing = server("mariadbd").downstream().demand_us(200.0).disk_share(1.0).state(ThreadState::Disk);
    let lab = sweep().tier(server("app")).tier(flushing).disk(Platter {
        demand_us: 3_000.0,
        flush_share: 0.8,
        ..Platter::default()
    });
    let found = lab.clone().sessions(getting_on(16)).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Disk, "{found:#?}");
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
    let found = lab.sessions(getting_on(1)).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Disk, "{found:#?}");
    assert!(!found.verdict.is_conclusive(), "a lock held over a flush: {found:#?}");
}

#[test]
fn sessions_that_wait_for_something_else_are_a_pool() {
    let found = tiers().pool(16, 10_000.0).sessions(getting_on(16)).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::WorkerPool, "{found:#?}");
    assert!(says(&found, "are not what stops it: on average 0 of"), "{found:#?}");
    // Nobody saw where requests queue: sixteen workers, or sixteen connections to the database.
    let open: Vec<ResourceKind> =
        found.verdict.bottleneck.alternatives.iter().map(|other| other.kind).collect();
    assert!(open.contains(&ResourceKind::ConnectionPool), "{found:#?}");
}

#[test]
fn locks_that_were_hardly_ever_looked_at_are_not_excluded() {
    let lab = tiers().pool(16, 10_000.0).sessions(getting_on(16));
    let mut steps = lab.observed();
    steps.iter_mut().for_each(|step| step.database.truncate(1));
    let found = conclude(&steps, &lab.context);
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::WorkerPool, "{found:#?}");
    assert!(found.steps.last().unwrap().locks.is_some(), "one sample is one");
    assert!(!says(&found, "are not what stops it"), "{found:#?}");
}

#[test]
fn neither_few_nor_most_waiting_is_told_honestly() {
    let found = tiers().pool(11, 10_000.0).sessions(getting_on(11)).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::WorkerPool, "{found:#?}");
    assert!(found.verdict.inconclusive[0].contains("neither prove nor exclude"), "{found:#?}");
}

/// Others wait for each other in the same database whatever the load.
#[test]
fn waits_that_do_not_come_from_the_load_are_not_its_bottleneck() {
    let sessions = Sessions { others: 30, ..getting_on(16) };
    let found = tiers().pool(16, 10_000.0).sessions(sessions).conclude();
    assert_ne!(found.verdict.bottleneck.kind, ResourceKind::Lock, "{found:#?}");
    assert!(!found.verdict.is_conclusive(), "{found:#?}");
}

#[test]
fn waits_that_the_database_does_not_account_for_are_not_believed() {
    let lab = tiers().pool(1, 10_000.0).sessions(getting_on(1));
    let mut steps = lab.observed();
    steps.iter_mut().flat_map(|step| &mut step.database).for_each(|sample| sample.waited_us = Some(0));
    let found = conclude(&steps, &lab.context);
    assert_ne!(found.verdict.bottleneck.holder, "mariadbd (pid 912)", "{found:#?}");
    assert!(!found.verdict.is_conclusive(), "{found:#?}");
}

#[test]
fn locks_of_a_database_whose_processes_nobody_sees_are_doubted() {
    let app = sweep().tier(server("app").demand_us(100.0).threads(8)).pool(1, 10_000.0);
    let found = app.sessions(getting_on(1)).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!((bottleneck.kind, bottleneck.holder.as_str()), (ResourceKind::Lock, "mysql://ann@db/rooms"));
    assert!(found.verdict.inconclusive[0].contains("could not be watched"), "{found:#?}");
}

#[test]
fn a_database_that_was_not_asked_could_have_been() {
    let found = tiers().pool(1, 10_000.0).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Lock);
    assert!(found.verdict.bottleneck.holder.is_empty(), "nobody saw whose it is: {found:#?}");
    assert!(says(&found, "--watch-database URL"), "{found:#?}");
}

#[test]
fn a_database_that_said_nothing_or_had_nothing_to_do_is_warned_of() {
    let warned = |found: &Conclusion, words: &str| {
        let of_it = |warning: &&analysis::run::Warning| warning.kind == WarningKind::NotObserved;
        found.warnings.iter().filter(of_it).any(|warning| warning.text.contains(words))
    };
    let mut lab = tiers().pool(1, 10_000.0).sessions(Sessions { most: 0, ..Sessions::default() });
    assert!(warned(&lab.conclude(), "is it the one that the server uses?"));
    assert!(!says(&lab.conclude(), "Locks of the database"), "nothing is known of them");
    lab.context.database.as_mut().unwrap().trouble = Some(DatabaseTrouble::TimedOut { limit_s: 2 });
    assert!(warned(
        &lab.conclude(),
        "mysql://ann@db/rooms were not watched throughout: no answer within 2 s."
    ));
    assert!(!warned(&tiers().pool(1, 10_000.0).sessions(getting_on(1)).conclude(), "database"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Where nobody was seen to wait for a lock, watching changes neither the cause nor its holder.
    #[test]
    fn without_waits_no_lock_of_the_database_is_named(
        (demand_us, workers, sleep_us) in (50.0..900.0f64, 1..24u32, 0.0..20_000.0f64),
        most in 1..64u32,
        noise in any::<u64>(),
    ) {
        let database = server("mariadbd").downstream().demand_us(demand_us).threads(16).cpus(&[1, 2]);
        let lab = sweep().tier(server("app").cpus(&[0])).tier(database).pool(workers, sleep_us).noise(noise);
        let unwatched = lab.conclude().verdict;
        let watched = lab.sessions(Sessions { most, get_on: most, ..Sessions::default() }).conclude().verdict;
        prop_assert_eq!(watched.bottleneck.kind, unwatched.bottleneck.kind);
        prop_assert_eq!(&watched.bottleneck.holder, &unwatched.bottleneck.holder);
        prop_assert_eq!(&watched.inconclusive, &unwatched.inconclusive);
        prop_assert!(watched.bottleneck.kind != ResourceKind::Lock || !watched.bottleneck.holder.starts_with("mariadbd"));
    }
}
