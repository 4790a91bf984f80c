//! Limits on what a cgroup may ask of a disk, and disks that cannot be seen to be full.

use analysis::conclude::Conclusion;
use analysis::counters::ThreadState;
use analysis::run::ResourceKind;

use super::lab::{Lab, Platter, Sure, Tier, says, server, sure, sweep};

fn kind(found: &Conclusion) -> ResourceKind {
    found.verdict.bottleneck.kind
}

/// A database whose sessions commit one after the other.
fn database() -> Tier {
    server("postgres").downstream().demand_us(200.0).threads(8).cpus(&[1, 2])
}

/// An application in front of it, and a disk that has next to nothing to do.
fn before(database: Tier) -> Lab {
    let disk = Platter { demand_us: 5.0, ..Platter::default() };
    sweep().tier(server("app").demand_us(20.0).threads(4)).tier(database).disk(disk).delay_us(3_000.0)
}

#[test]
fn a_limit_on_writes_that_is_used_whole_is_the_disk_of_whoever_is_under_it() {
    let found = before(database().write_limit(400, 2.0).turns_at_the_disk()).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!(
        (kind(&found), bottleneck.holder.as_str()),
        (ResourceKind::Disk, "postgres (pid 912)"),
        "{found:#?}"
    );
    assert_eq!(sure(&found), Sure::Direct);
    assert!(found.verdict.is_conclusive() && bottleneck.utilization.unwrap() > 0.95);
    assert!(says(&found, "of the 400 that its cgroup /db allows"), "{:?}", bottleneck.evidence);
    assert!(says(&found, "each request costs it 2 writes"), "{:?}", bottleneck.evidence);
    assert!(says(&found, "The disk vda itself is busy only"), "{:?}", bottleneck.evidence);
    let step = found.steps.last().unwrap();
    let limit = step.resources.iter().find(|resource| resource.kind == ResourceKind::Disk).unwrap();
    assert_eq!((limit.unit.as_str(), limit.capacity), ("writes/s", 400.0));
    assert!((bottleneck.demand_us.unwrap() - 5_000.0).abs() < 100.0, "{bottleneck:?}");
}

/// One write serves all who wait for it, so the limit is used whole with one user already.
#[test]
fn a_group_commit_under_a_limit_is_the_disk() {
    let database = database().write_limit_used_whole(400).turns_at_the_disk();
    let found = before(database.clone()).pool(8, 5_000.0).conclude();
    assert_eq!((kind(&found), sure(&found)), (ResourceKind::Disk, Sure::Fairly));
    assert!(says(&found, "took turns at waiting"), "{:?}", found.verdict.bottleneck.evidence);
    assert!(found.verdict.is_conclusive());
}

#[test]
fn a_thread_that_writes_whatever_the_load_is_not_what_users_wait_for() {
    let checkpointer = database().threads(1).write_limit_used_whole(400).state(ThreadState::Disk);
    let found = before(checkpointer).pool(8, 5_000.0).conclude();
    assert_eq!(kind(&found), ResourceKind::Unknown, "{found:#?}");
    assert!(says(&found, "but it was as busy whatever the load"), "{:?}", found.verdict.bottleneck.evidence);
}

#[test]
fn a_limit_with_room_is_not_blamed() {
    let found = before(database().write_limit(1_000_000, 2.0)).delay_us(300.0).conclude();
    assert_eq!(kind(&found), ResourceKind::Cpu, "{found:#?}");
    let idle = before(database().write_limit(400, 2.0)).conclude();
    assert_ne!(kind(&idle), ResourceKind::Disk, "nobody was found waiting for a disk: {idle:#?}");
    assert!(!matches!(kind(&idle), ResourceKind::Lock | ResourceKind::WorkerPool), "{idle:#?}");
}

/// However busy the processors are with others: the limit lets no more through.
#[test]
fn interference_on_the_processors_casts_no_doubt_on_a_limit_of_writes() {
    let lab = before(database().write_limit(400, 2.0).turns_at_the_disk()).interference(3.5);
    let found = lab.conclude();
    assert_eq!(kind(&found), ResourceKind::Disk, "{found:#?}");
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
}

#[test]
fn a_wait_for_a_disk_that_is_not_seen_is_not_taken_for_a_lock() {
    let waits = server("app").demand_us(20.0).threads(4).turns_at_the_disk();
    let found = sweep().tier(waits).pool(1, 5_000.0).conclude();
    assert_eq!(kind(&found), ResourceKind::Unknown, "{found:#?}");
    assert!(
        says(&found, "was found waiting for a disk in 100 % of the samples"),
        "{:?}",
        found.verdict.bottleneck
    );
    let sleeps = sweep().tier(server("app").demand_us(20.0).threads(4)).pool(1, 5_000.0).conclude();
    assert_eq!(kind(&sleeps), ResourceKind::Lock, "{sleeps:#?}");
}

/// The same on a disk of its own: what it does is the same for many users as for one.
#[test]
fn a_full_disk_under_a_group_commit_is_the_disk() {
    let disk = Platter { demand_us: 5.0, flush_share: 0.3, background: 0.97, ..Platter::default() };
    let commits = database().disk_share(20.0);
    let lab =
        |tier| sweep().tier(server("app").demand_us(20.0).threads(4)).tier(tier).disk(disk).pool(8, 5_000.0);
    let found = lab(commits.clone().turns_at_the_disk()).conclude();
    assert_eq!(
        (kind(&found), found.verdict.bottleneck.holder.as_str()),
        (ResourceKind::Disk, "vda"),
        "{found:#?}"
    );
    let elsewhere = lab(commits).conclude();
    assert_ne!(kind(&elsewhere), ResourceKind::Disk, "{elsewhere:#?}");
}
