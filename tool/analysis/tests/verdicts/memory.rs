//! A cgroup's limit on memory, by what has to be read again.

use analysis::conclude::{Conclusion, Context};
use analysis::counters::ThreadState;
use analysis::run::ResourceKind;

use super::lab::{Lab, LittleMemory, Platter, Tier, says, server, sweep};

fn kind(found: &Conclusion) -> ResourceKind {
    found.verdict.bottleneck.kind
}

/// All that it reads had been in memory before.
const AGAIN: LittleMemory = LittleMemory { again: 1.0, background: 0.0, stalled: Some(0.9) };

/// A thread for each user, and most of them wait for a disk.
fn files() -> Tier {
    server("files").demand_us(50.0).threads(4).disk_share(1.0).state(ThreadState::Disk).thread_per_user()
}

fn reading(files: Tier, memory: LittleMemory) -> Lab {
    sweep().tier(files).disk(Platter { demand_us: 2_000.0, ..Platter::default() }).memory(memory)
}

#[test]
fn a_tier_that_waits_for_what_its_cgroup_evicted_lacks_memory() {
    let found = reading(files(), AGAIN).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!(
        (kind(&found), bottleneck.holder.as_str()),
        (ResourceKind::Memory, "files (pid 812)"),
        "{found:#?}"
    );
    assert!(bottleneck.confidence.share() > 0.9, "{bottleneck:#?}");
    assert!(found.verdict.is_conclusive());
    assert!(
        says(&found, "The cgroup /web of files (pid 812) may use 134 MB of memory"),
        "{:?}",
        bottleneck.evidence
    );
    assert!(says(&found, "100 kB for each request: 100 % of what it read"), "{:?}", bottleneck.evidence);
}

/// Version 1 counts no stalls, and a disk that serves many requests at a time is never full.
#[test]
fn neither_a_full_disk_nor_an_account_of_stalls_is_needed() {
    let lab = sweep()
        .tier(files())
        .disk(Platter { demand_us: 100.0, ..Platter::default() })
        .pool(4, 1_000.0)
        .memory(LittleMemory { stalled: None, ..AGAIN });
    let found = lab.conclude();
    assert_eq!(kind(&found), ResourceKind::Memory, "{found:#?}");
}

#[test]
fn a_cache_that_loses_a_little_is_not_short_of_memory() {
    let found = reading(files(), LittleMemory { again: 0.2, ..AGAIN }).conclude();
    assert_eq!(kind(&found), ResourceKind::Disk, "{found:#?}");
    let idle = sweep()
        .tier(server("app").demand_us(100.0).threads(4).disk_share(0.01))
        .pool(4, 5_000.0)
        .disk(Platter { demand_us: 5.0, ..Platter::default() })
        .memory(LittleMemory { stalled: Some(0.05), ..AGAIN });
    assert_eq!(kind(&idle.conclude()), ResourceKind::WorkerPool);
}

#[test]
fn commits_wait_for_writes_however_full_the_memory_is() {
    let disk = Platter { demand_us: 3_000.0, flush_share: 0.8, ..Platter::default() };
    let found = sweep().tier(files().writes(8_192.0)).disk(disk).memory(AGAIN).conclude();
    assert_eq!(kind(&found), ResourceKind::Disk, "{found:#?}");
}

/// Others may write what they like on the same disk.
#[test]
fn a_tier_that_writes_nothing_waits_for_reads() {
    let disk = Platter { demand_us: 3_000.0, flush_share: 0.8, ..Platter::default() };
    let found = sweep().tier(files()).disk(disk).memory(AGAIN).conclude();
    assert_eq!(kind(&found), ResourceKind::Memory, "{found:#?}");
}

#[test]
fn a_full_processor_comes_before_what_is_read_beside_it() {
    let found = sweep()
        .tier(files().demand_us(2_000.0).cpus(&[0]))
        .disk(Platter { demand_us: 200.0, ..Platter::default() })
        .memory(AGAIN)
        .conclude();
    assert_eq!(kind(&found), ResourceKind::Cpu, "{found:#?}");
}

#[test]
fn what_comes_back_whatever_the_load_is_not_for_the_users() {
    let backup = LittleMemory { again: 0.0, background: 5e7, stalled: Some(0.9) };
    assert_eq!(kind(&reading(files(), backup).conclude()), ResourceKind::Disk);
}

#[test]
fn where_data_is_meant_to_come_from_the_disk_the_disk_is_named() {
    let mut lab = reading(files(), AGAIN);
    lab.context = Context { cold: true, ..lab.context };
    assert_eq!(kind(&lab.conclude()), ResourceKind::Disk);
}
