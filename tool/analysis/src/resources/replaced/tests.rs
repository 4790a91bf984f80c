use super::*;
use crate::counters::Hop;

/// A sample in which these serve: number, and when it began.
fn sample(at_us: u64, serving: &[(u32, u64)]) -> Counters {
    let process = |&(pid, started_ticks): &(u32, u64)| Process {
        pid,
        started_ticks,
        name: "app".into(),
        ..Process::default()
    };
    let generator = Process { pid: 1, role: Role::Generator, ..Process::default() };
    let processes = serving.iter().map(process).chain([generator]).collect();
    Counters { at_us, processes, ..Counters::default() }
}

/// The only one, if there is any.
fn only(samples: &[Counters]) -> Option<Replacement> {
    let mut found = replaced(samples);
    assert!(found.len() < 2, "{found:?}");
    found.pop()
}

#[test]
fn a_server_that_ended_and_was_started_anew_is_replaced() {
    let samples = [
        sample(0, &[(10, 5), (11, 6)]),
        sample(250, &[(10, 5)]),
        sample(500, &[]),
        sample(750, &[(20, 90), (21, 91)]),
        sample(1_000, &[(30, 120)]),
    ];
    let found = only(&samples).expect("another serves");
    assert_eq!((found.before.pid, found.after.pid), (Some(10), Some(20)));
    assert_eq!((found.at_us, found.times), (250, 2));
}

#[test]
fn a_number_that_is_used_again_is_another_server() {
    assert!(only(&[sample(0, &[(10, 5)]), sample(250, &[(10, 90)])]).is_some());
}

#[test]
fn workers_that_come_and_go_replace_nothing() {
    let forked = [sample(0, &[(10, 5), (11, 6)]), sample(250, &[(10, 5), (12, 80)])];
    assert_eq!(only(&forked), None);
    let found_late = [sample(0, &[(11, 60)]), sample(250, &[(10, 5)])];
    assert_eq!(only(&found_late), None, "it was there before");
    assert_eq!(only(&[sample(0, &[(10, 5)]), sample(250, &[])]), None, "nobody serves");
    assert_eq!(only(&[]), None);
}

/// A look behind a server that stays: these processes, by name, number and when they began, and at each port the number of
/// the one that listens there.
fn look(at_us: u64, behind: &[(&str, u32, u64)], listening: &[(u16, u32)]) -> Counters {
    let process = |&(name, pid, started_ticks): &(&str, u32, u64)| Process {
        pid,
        started_ticks,
        name: name.into(),
        role: Role::Downstream,
        ..Process::default()
    };
    let mut sample = sample(at_us, &[(3, 1)]);
    sample.processes.extend(behind.iter().map(process));
    sample.hops = Some(listening.iter().map(|(port, pid)| hop(*port, *pid)).collect());
    sample
}

fn hop(port: u16, server: u32) -> Hop {
    let address = ServerAddress::Tcp { address: ([127, 0, 0, 1], port).into() };
    Hop { server: Some(server), callers: vec![3], connections: 4, ..Hop::without_connections(address) }
}

#[test]
fn a_tier_that_ended_and_was_started_anew_is_replaced() {
    let samples = [
        look(0, &[("db", 10, 5), ("db", 12, 40), ("cache", 11, 6)], &[(54, 10), (64, 11)]),
        // Between looks, and while nobody listens.
        Counters { hops: None, ..look(250, &[("db", 10, 5), ("cache", 11, 6)], &[]) },
        look(500, &[("cache", 11, 6)], &[(54, 10), (64, 11)]),
        look(750, &[("db", 20, 90), ("cache", 11, 6)], &[(64, 11)]),
        look(1_000, &[("db", 20, 90), ("db", 22, 95), ("cache", 11, 6)], &[(54, 20), (64, 11)]),
        look(1_250, &[("db", 30, 120), ("cache", 11, 6)], &[(54, 30), (64, 11)]),
    ];
    let found = only(&samples).expect("another serves");
    assert_eq!((found.before.role, found.before.name.as_str()), (Role::Downstream, "db"));
    assert_eq!((found.before.pid, found.after.pid), (Some(10), Some(20)));
    assert_eq!((found.at_us, found.times), (0, 2));
}

#[test]
fn a_tier_that_listens_at_two_addresses_is_replaced_once() {
    let before = look(0, &[("db", 10, 5)], &[(54, 10), (55, 10)]);
    let first = look(250, &[("db", 20, 90)], &[(54, 20)]);
    let second = look(500, &[("db", 20, 90), ("db", 21, 95)], &[(54, 20), (55, 20)]);
    assert_eq!(only(&[before, first, second]).map(|found| found.times), Some(1));
}

#[test]
fn every_tier_is_told_by_its_name_after_the_server() {
    let before = look(0, &[("db", 10, 5), ("cache", 11, 6)], &[(54, 10), (64, 11)]);
    let mut after = look(250, &[("db", 20, 90), ("cache", 21, 91)], &[(54, 20), (64, 21)]);
    after.processes[0] = Process { pid: 30, started_ticks: 92, name: "app".into(), ..Process::default() };
    let names: Vec<String> = replaced(&[before, after]).into_iter().map(|one| one.before.name).collect();
    assert_eq!(names, ["app", "cache", "db"]);
}

#[test]
fn sessions_that_a_database_forks_replace_nothing() {
    let at = |at_us, sessions: &[(&'static str, u32, u64)]| {
        look(at_us, &[&[("db", 10, 5)][..], sessions].concat(), &[(54, 10)])
    };
    let samples = [
        at(0, &[("db", 12, 40)]),
        at(250, &[("db", 13, 50), ("db", 14, 51)]),
        at(500, &[]),
        at(750, &[("db", 15, 70)]),
    ];
    assert_eq!(only(&samples), None);
}

#[test]
fn programs_that_are_run_for_a_request_replace_nothing() {
    let at = |at_us, scripts: &[(&'static str, u32, u64)]| {
        look(at_us, &[&[("httpd", 10, 5)][..], scripts].concat(), &[(80, 10)])
    };
    let samples = [
        at(0, &[("report", 12, 40)]),
        at(250, &[]),
        at(500, &[("report", 13, 60)]),
        at(750, &[("report", 14, 90)]),
    ];
    assert_eq!(only(&samples), None);
}

/// Each opens the port for itself, and a look tells of one of them.
#[test]
fn workers_that_are_recycled_one_by_one_replace_nothing() {
    let samples = [
        look(0, &[("app", 10, 5), ("app", 11, 6)], &[(81, 10)]),
        look(250, &[("app", 11, 6), ("app", 12, 70)], &[(81, 11)]),
        look(500, &[("app", 12, 70), ("app", 13, 80)], &[(81, 12)]),
        look(750, &[("app", 13, 80), ("app", 14, 90), ("app", 15, 91)], &[(81, 13)]),
    ];
    assert_eq!(only(&samples), None);
    // They share one socket, and whoever opened it has ended.
    let shared = [
        look(0, &[("app", 10, 5), ("app", 11, 6)], &[(81, 10)]),
        look(250, &[("app", 12, 70), ("app", 13, 71)], &[(81, 10)]),
    ];
    assert_eq!(only(&shared), None);
}

#[test]
fn services_of_one_name_are_told_apart_by_their_addresses() {
    let both = look(0, &[("java", 10, 5), ("java", 20, 6)], &[(81, 10), (82, 20)]);
    let one_anew = look(250, &[("java", 30, 90), ("java", 20, 6)], &[(81, 30), (82, 20)]);
    let found = only(&[both, one_anew]).expect("another serves at the first address");
    assert_eq!((found.before.pid, found.after.pid), (Some(10), Some(30)));
    let one = look(0, &[("java", 10, 5)], &[(81, 10)]);
    let other = look(250, &[("java", 40, 90)], &[(82, 40)]);
    assert_eq!(only(&[one, other]), None, "it serves something else");
}

#[test]
fn a_tier_that_was_there_before_or_has_another_name_replaces_nothing() {
    let of = |tier: (&'static str, u32, u64)| look(0, &[tier], &[(81, tier.1)]);
    assert_eq!(only(&[of(("app", 11, 60)), of(("app", 10, 5))]), None, "it was there before");
    assert_eq!(only(&[of(("old", 10, 5)), of(("new", 11, 60))]), None, "whatever both are");
    assert_eq!(only(&[of(("app", 10, 5)), look(250, &[], &[])]), None, "nobody serves");
}
