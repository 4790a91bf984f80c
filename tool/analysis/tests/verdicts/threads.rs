//! Which threads the CPU time of a full process went to.

use analysis::conclude::Conclusion;
use analysis::run::{ResourceKind, Words};

use super::lab::{Tier, server, sweep};

/// A server on two processors whose hashing threads do three quarters of the work.
fn accounts() -> Tier {
    let names = &["password-hash", "password-hash", "password-hash", "accounts"];
    server("accounts").demand_us(400.0).threads(4).cpus(&[0, 1]).thread_names(names)
}

fn said(found: &Conclusion) -> &[Words] {
    &found.verdict.bottleneck.evidence
}

#[test]
fn threads_with_the_better_part_of_the_time_are_named() {
    let found = sweep().tier(accounts()).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Cpu);
    assert_eq!(
        said(&found)[1],
        "Of the CPU time of accounts (pid 812), 75 % was spent in 3 threads named `password-hash`: 300 µs of each request."
    );
    let threads = found.verdict.bottleneck.threads.expect("their names tell");
    let names: Vec<_> = threads.names.iter().map(|found| (found.name.as_str(), found.threads)).collect();
    assert_eq!(names, [("password-hash", 3), ("accounts", 1)]);
    assert!((threads.names[1].share - 0.25).abs() < 0.01 && threads.rest < 0.01, "{threads:?}");
    assert!((threads.names[1].demand_us.unwrap() - 100.0).abs() < 2.0, "{threads:?}");
}

#[test]
fn the_workers_of_several_processes_count_together() {
    let found = sweep().tier(accounts().threads(8).processes(2)).conclude();
    assert!(
        said(&found)[1]
            .starts_with("Of the CPU time of accounts (2 processes), 75 % was spent in 6 threads named")
    );
}

#[test]
fn threads_that_differ_in_their_number_are_named_together() {
    let found =
        sweep().tier(accounts().thread_names(&["worker-1", "worker-2", "worker-3", "worker-4"])).conclude();
    assert!(said(&found)[1].contains("100 % was spent in 4 threads named `worker-*`"), "{:?}", said(&found));
}

#[test]
fn without_a_better_part_no_threads_are_blamed_but_all_are_listed() {
    let found = sweep().tier(accounts().thread_names(&["a", "b", "c", "GC Thread#0"])).conclude();
    assert!(!said(&found).iter().any(|said| said.contains("threads named")), "{:?}", said(&found));
    assert_eq!(found.verdict.bottleneck.threads.unwrap().names.len(), 4);
}

#[test]
fn threads_named_like_their_process_tell_nothing() {
    let found = sweep().tier(accounts().thread_names(&[])).conclude();
    assert!(!said(&found).iter().any(|said| said.contains("threads named")), "{:?}", said(&found));
    assert_eq!(found.verdict.bottleneck.threads, None);
    let numbered = server("python3").demand_us(400.0).threads(4).cpus(&[0, 1]);
    assert_eq!(sweep().tier(numbered).conclude().verdict.bottleneck.threads, None);
}

#[test]
fn a_single_full_thread_is_not_named_twice() {
    let found = sweep().tier(server("node").cpus(&[0, 1]).thread_names(&["MainThread"])).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::SingleThread);
    let times = said(&found).iter().filter(|said| said.contains("MainThread")).count();
    assert_eq!(times, 1, "{:?}", said(&found));
}

#[test]
fn several_full_threads_are_named_after_what_they_could_not_use() {
    let names = &["worker-1", "worker-2"];
    let found = sweep().tier(server("app").threads(2).cpus(&[0, 1, 2]).thread_names(names)).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::SingleThread);
    assert!(said(&found)[1].contains("more workers could use the rest"), "{:?}", said(&found));
    assert!(said(&found)[2].contains("in 2 threads named `worker-*`"), "{:?}", said(&found));
}

#[test]
fn threads_that_came_and_went_are_not_guessed() {
    let found = sweep().tier(accounts().short_lived_threads(0.8)).conclude();
    assert_eq!(said(&found)[1], "80 % of that CPU time was spent in threads that came and went.");
    let threads = found.verdict.bottleneck.threads.expect("what was seen is listed");
    assert!((threads.rest - 0.8).abs() < 0.01, "{threads:?}");
    let some = sweep().tier(accounts().short_lived_threads(0.2)).conclude();
    assert!(
        said(&some)[1].contains("60 % was spent in 3 threads named `password-hash`"),
        "{:?}",
        said(&some)
    );
}

#[test]
fn threads_that_were_not_sampled_are_said_to_be() {
    let found = sweep().tier(accounts().short_lived_threads(0.9).too_many_threads(10_000)).conclude();
    assert_eq!(
        said(&found)[1],
        "90 % of that CPU time was spent in threads that were not sampled, because there are 10 000 of them."
    );
    let some = sweep().tier(accounts().short_lived_threads(0.1).too_many_threads(10_000)).conclude();
    assert!(said(&some)[1].contains("68 % was spent in threads named `password-hash`"), "{:?}", said(&some));
}

#[test]
fn children_that_ended_are_not_threads_that_came_and_went() {
    let found = sweep().tier(accounts().unseen_children(0.7).reaping()).conclude();
    assert!(
        !said(&found).iter().any(|said| said.contains("threads that came and went")),
        "{:?}",
        said(&found)
    );
}

#[test]
fn a_quota_and_shared_processors_name_them_too() {
    let quota = sweep().tier(accounts().quota(0.5, "/app")).conclude();
    assert_eq!(quota.verdict.bottleneck.kind, ResourceKind::CpuQuota, "{quota:#?}");
    assert!(said(&quota)[2].contains("`password-hash`"), "{:?}", said(&quota));
    let lab = sweep().cores(2).generator(|tier| tier.cpus(&[0, 1])).tier(accounts());
    let shared = lab.conclude();
    assert_eq!(shared.verdict.bottleneck.kind, ResourceKind::Cpu, "{shared:#?}");
    assert!(said(&shared)[1].contains("in 3 threads named `password-hash`"), "{:?}", said(&shared));
}
