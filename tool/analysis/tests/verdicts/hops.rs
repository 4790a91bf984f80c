//! Requests outstanding between tiers: the holder is the tier at which they queue.

use analysis::counters::{Hop, Role, ServerAddress, ThreadState};
use analysis::run::{Bottleneck, Cause, Evidence, HopEvidence, Identity, ResourceKind};

use super::lab::{Lab, conclude, server, sweep};

/// Process numbers in the lab: the first tier, the one behind it.
pub(super) const FRONT: u32 = 812;
const BEHIND: u32 = 912;

/// An idle front, and an idle tier behind it; one request at a time waits 5 ms somewhere.
fn idle_front() -> Lab {
    let waiting = server("app").downstream().demand_us(100.0).threads(8).state(ThreadState::Futex);
    sweep().tier(server("nginx").demand_us(50.0).threads(8)).tier(waiting).pool(1, 5_000.0)
}

fn address(port: u16) -> ServerAddress {
    ServerAddress::Tcp { address: ([10, 0, 0, 7], port).into() }
}

pub(super) fn hop(server: Option<u32>, callers: &[u32], connections: u32, held: u32) -> Hop {
    let port = server.map_or(5432, |pid| pid as u16);
    Hop {
        server,
        callers: callers.to_vec(),
        connections: connections.into(),
        held: held.into(),
        ..Hop::without_connections(address(port))
    }
}

/// The users' connections to the front, with a request each.
pub(super) fn users_hop(users: u32) -> Hop {
    hop(Some(FRONT), &[], users, users)
}

/// The verdict where each look at the connections sees what `hops` says of this number of users.
fn seen(lab: &Lab, hops: impl Fn(u32) -> Vec<Hop>) -> Bottleneck {
    seen_where(lab, |_| true, hops)
}

/// The same where only steps of such numbers of users were looked at.
fn seen_where(lab: &Lab, looked: impl Fn(u32) -> bool, hops: impl Fn(u32) -> Vec<Hop>) -> Bottleneck {
    let mut observed = lab.observed();
    for step in observed.iter_mut().filter(|step| looked(step.step.users)) {
        let users = step.step.users;
        step.counters.iter_mut().for_each(|sample| sample.hops = Some(hops(users)));
    }
    conclude(&observed, &lab.context).verdict.bottleneck
}

/// The same where it is known which look it is, from 0 on.
fn seen_by_look(lab: &Lab, hops: impl Fn(u32, usize) -> Vec<Hop>) -> Bottleneck {
    let mut observed = lab.observed();
    for step in &mut observed {
        let users = step.step.users;
        for (number, sample) in step.counters.iter_mut().enumerate() {
            sample.hops = Some(hops(users, number));
        }
    }
    conclude(&observed, &lab.context).verdict.bottleneck
}

/// An idle application before a database that has room: four requests at a time take 20 ms.
fn before_postgres() -> Lab {
    sweep()
        .tier(server("app").demand_us(50.0).threads(8))
        .tier(server("postgres").downstream().demand_us(50.0))
        .pool(4, 20_000.0)
}

/// The same before a server that is no database.
fn before_back(front: &'static str) -> Lab {
    sweep()
        .tier(server(front).demand_us(50.0).threads(8))
        .tier(server("back").downstream().demand_us(50.0))
        .pool(4, 20_000.0)
}

/// Each request holds one of four connections to the tier behind, which are opened as they are needed.
fn over_four_connections(users: u32) -> Vec<Hop> {
    vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users.min(4), users.min(4))]
}

/// The kinds of all explanations that are told of.
fn kinds(found: &Bottleneck) -> Vec<ResourceKind> {
    found.alternatives.iter().map(|other| other.kind).chain([found.kind]).collect()
}

fn holder(found: &Bottleneck) -> &str {
    match &found.identity {
        Some(Identity::Processes(of)) => &of.name,
        other => panic!("no processes: {other:?}"),
    }
}

#[test]
fn a_lock_behind_an_idle_front_is_held_by_the_tier_behind() {
    let blind = seen(&idle_front(), |_| Vec::new());
    assert_eq!((blind.kind, &blind.identity), (ResourceKind::Lock, &None), "{blind:#?}");
    let found =
        seen(&idle_front(), |users| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users, users)]);
    assert_eq!((found.kind, holder(&found)), (ResourceKind::Lock, "app"), "{found:#?}");
    let queue = found.findings.iter().find_map(|seen| match seen {
        Evidence::Hops(HopEvidence::RequestsQueue { to_users, to_requests, .. }) => {
            Some((*to_users, *to_requests))
        }
        _ => None,
    });
    assert_eq!(queue, Some((64, 64.0)), "{found:#?}");
}

#[test]
fn a_lock_of_the_front_stays_the_fronts() {
    let found =
        seen(&idle_front(), |users| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users, users.min(1))]);
    assert_eq!((found.kind, holder(&found)), (ResourceKind::Lock, "nginx"), "{found:#?}");
}

#[test]
fn a_pool_behind_a_unix_socket_is_held_by_the_tier_behind() {
    let workers = server("php-fpm").downstream().demand_us(100.0).processes(4).threads(4);
    let lab = sweep().tier(server("nginx").demand_us(50.0)).tier(workers).pool(4, 50_000.0);
    // Each request has a connection of its own; four are accepted, and of those it is not known what they do.
    let found = seen(&lab, |users| {
        let accepted = users.min(4);
        let waiting = u64::from(users - accepted);
        let php = Hop {
            address: ServerAddress::Unix { path: "/run/php.sock".to_owned() },
            unread: waiting,
            unaccepted: waiting,
            connections: users.into(),
            unclear: accepted.into(),
            opened: accepted.into(),
            ..hop(Some(BEHIND), &[FRONT], 0, 0)
        };
        vec![users_hop(users), php]
    });
    assert_eq!((found.kind, holder(&found)), (ResourceKind::WorkerPool, "php-fpm"), "{found:#?}");
    let not_read = |seen: &Evidence| matches!(seen, Evidence::Hops(HopEvidence::NotRead { .. }));
    assert!(found.findings.iter().any(not_read), "{found:#?}");
}

/// A tier of one process with one thread, which computes for so much of each request, before a unix socket that only it reads.
fn only_worker(demand_us: f64) -> Bottleneck {
    let worker = server("php-fpm").downstream().demand_us(demand_us).processes(1).threads(1);
    let lab = sweep().tier(server("nginx").demand_us(50.0)).tier(worker).pool(1, 5_000.0);
    seen(&lab, |users| {
        let waiting = u64::from(users - 1);
        let php = Hop {
            address: ServerAddress::Unix { path: "/run/php.sock".to_owned() },
            unread: waiting,
            unaccepted: waiting,
            connections: users.into(),
            unclear: 1,
            opened: 1,
            ..hop(Some(BEHIND), &[FRONT], 0, 0)
        };
        vec![users_hop(users), php]
    })
}

#[test]
fn a_single_worker_is_a_pool_of_one() {
    let found = only_worker(100.0);
    assert_eq!((found.kind, holder(&found)), (ResourceKind::WorkerPool, "php-fpm"), "{found:#?}");
}

/// A worker that computed for 82 % of the time and asked a database for the rest was neither full nor idle.
#[test]
fn a_worker_that_waits_in_between_is_what_unread_requests_wait_for() {
    let found = only_worker(4_100.0);
    let named = matches!(found.kind, ResourceKind::WorkerPool | ResourceKind::Lock);
    assert!(named && holder(&found) == "php-fpm", "{found:#?}");
}

#[test]
fn a_row_lock_in_a_database_is_not_a_lock_of_the_program_in_front_of_it() {
    let app = server("app").demand_us(50.0).threads(8);
    let lab = sweep().tier(app).tier(server("postgres").downstream().demand_us(50.0)).pool(1, 5_000.0);
    // The program opens sixteen sessions, and all of them wait for the row.
    let found =
        seen(&lab, |users| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users.min(16), users.min(16))]);
    assert_eq!((found.kind, holder(&found)), (ResourceKind::Lock, "postgres"), "{found:#?}");
}

#[test]
fn an_upstream_that_nobody_observes_is_named_by_its_address() {
    let lab = sweep().tier(server("nginx").demand_us(50.0)).pool(4, 50_000.0);
    let found = seen(&lab, |users| vec![users_hop(users), hop(None, &[FRONT], users, users)]);
    assert_eq!(found.kind, ResourceKind::Upstream, "{found:#?}");
    assert_eq!(found.holder.as_str(), "10.0.0.7:5432");
    let unread = |found: &Bottleneck| {
        found.findings.iter().find_map(|seen| match seen {
            Evidence::Hops(HopEvidence::NotJoined { translation_unread, .. }) => Some(*translation_unread),
            _ => None,
        })
    };
    assert_eq!(unread(&found), Some(false), "{found:#?}");
    let found = seen(&lab, |users| {
        vec![users_hop(users), Hop { translation_unread: true, ..hop(None, &[FRONT], users, users) }]
    });
    assert_eq!(unread(&found), Some(true), "{found:#?}");
}

#[test]
fn connections_that_are_all_in_use_while_the_tier_behind_has_room_are_a_connection_pool() {
    let lab = before_postgres();
    let found = seen(&lab, over_four_connections);
    assert_eq!((found.kind, holder(&found)), (ResourceKind::ConnectionPool, "app"), "{found:#?}");
    assert!(found.evidence[0].contains("4 connections to postgres"), "{found:#?}");
}

/// Only steps with three and five users were looked at on a busy host. The tier behind had one request more with five, since
/// three do not take up four connections, and was said to hold a pool of workers, 98 %.
#[test]
fn a_tier_that_was_not_full_with_fewer_users_is_not_where_requests_queue() {
    let lab = before_postgres().users(&[1, 2, 3, 4, 5, 8, 16]);
    let found = seen_where(&lab, |users| [3, 5].contains(&users), over_four_connections);
    assert!(kinds(&found).contains(&ResourceKind::ConnectionPool), "{found:#?}");
    assert!(found.confidence.share() < 0.6, "{found:#?}");
}

/// A row that is locked for 5 ms, by requests that wait 50 ms elsewhere first: ten more of these are served at a time than the
/// database serves, and that was taken for room in the database behind its sixteen sessions.
#[test]
fn a_lock_behind_connections_that_are_all_in_use_is_not_their_pool() {
    let lab = idle_front().delay_us(50_000.0);
    let found = seen(&lab, |users| {
        let sessions = users.saturating_sub(10).min(16);
        vec![users_hop(users), hop(Some(BEHIND), &[FRONT], 16, sessions)]
    });
    assert_ne!(found.kind, ResourceKind::ConnectionPool, "{found:#?}");
    assert!(found.confidence.share() < 0.6 || holder(&found) == "app", "{found:#?}");
}

/// Three calls at once for each request, over twelve connections: four requests are served at a time, and that was taken for
/// a full tier behind.
#[test]
fn several_calls_at_once_over_full_connections_are_not_a_full_tier_behind() {
    let lab = before_postgres();
    let found = seen(&lab, |users| {
        let calls = (3 * users).min(12);
        vec![users_hop(users), hop(Some(BEHIND), &[FRONT], calls, calls)]
    });
    assert_eq!((found.kind, holder(&found)), (ResourceKind::ConnectionPool, "app"), "{found:#?}");
}

/// Connections that are opened as they are needed, and sessions that are not all in use with few users, were taken for a tier
/// behind that has no queue, although nobody had looked with as many users as there are connections.
#[test]
fn connections_that_may_all_be_in_use_leave_open_where_requests_queue() {
    let pool = before_postgres();
    let found = seen_where(&pool, |users| [2, 16].contains(&users), over_four_connections);
    assert!(found.confidence.share() < 0.6, "{found:#?}");
    let sessions = |users: u32| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], 16, users.min(16))];
    let found = seen_where(&idle_front(), |users| [8, 64].contains(&users), sessions);
    assert!(found.identity.is_none() || holder(&found) != "nginx", "{found:#?}");
    // Where the tables of sockets cannot be read, it is not known which connections have a request.
    let unclear =
        |users: u32| vec![users_hop(users), Hop { unclear: 4, ..hop(Some(BEHIND), &[FRONT], 4, 0) }];
    let found = seen(&pool, unclear);
    let not_told = |seen: &Evidence| matches!(seen, Evidence::Hops(HopEvidence::NotTold { .. }));
    assert!(found.findings.iter().any(not_told) || found.confidence.share() < 0.6, "{found:#?}");
}

/// The agent of a tier looks seldom where there are many sockets: with few users nobody saw who serves the connections, and
/// all that they carried counted as new.
#[test]
fn connections_whose_server_was_seen_only_with_many_users_are_no_new_queue() {
    let lab = sweep()
        .users(&[1, 2, 4, 8, 16, 32, 64])
        .tier(server("app").demand_us(50.0).threads(32))
        .tier(server("postgres").downstream().demand_us(50.0))
        .pool(16, 20_000.0);
    let found = seen(&lab, |users| {
        let behind = hop(Some(BEHIND), &[FRONT], users.min(16), users.min(16));
        let server = (users > 32).then_some(BEHIND);
        vec![users_hop(users), Hop { server, ..behind }]
    });
    assert!(found.confidence.share() < 0.6 || holder(&found) != "postgres", "{found:#?}");
}

/// A call over four connections that are all in use, and a longer one after it over twenty that are not: the one with
/// more requests alone was asked.
#[test]
fn the_full_connections_are_found_beside_others_that_carry_more() {
    const LATER: u32 = 1012;
    let lab = sweep()
        .tier(server("app").demand_us(50.0).threads(16))
        .tier(server("postgres").downstream().demand_us(50.0))
        .delay_us(25_000.0)
        .pool(4, 20_000.0);
    let mut observed = lab.observed();
    for step in &mut observed {
        let users = step.step.users;
        for (number, sample) in step.counters.iter_mut().enumerate() {
            // The requests of a few users are at either of the two.
            let turn = u32::from(number.is_multiple_of(2)) * users;
            let [first, later] = if users < 9 { [users - turn, turn] } else { [4, 5] };
            let [first, later] = [first, later].map(|requests| users.min(requests));
            sample.hops = Some(vec![
                users_hop(users),
                hop(Some(BEHIND), &[FRONT], users.min(4), first),
                hop(Some(LATER), &[FRONT], 20, later),
            ]);
        }
    }
    let found = conclude(&observed, &lab.context).verdict.bottleneck;
    assert_eq!((found.kind, holder(&found)), (ResourceKind::ConnectionPool, "app"), "{found:#?}");
}

/// Two tiers of one name behind one another are counted together: four connections to the first and four to the second
/// looked like eight to a tier that serves four.
#[test]
fn connections_to_a_chain_of_one_name_are_not_a_full_tier() {
    let lab = sweep()
        .tier(server("nginx").demand_us(50.0).threads(8))
        .tier(server("python3").downstream().demand_us(50.0))
        .pool(4, 20_000.0);
    let found =
        seen(&lab, |users| vec![users_hop(users), hop(Some(BEHIND), &[FRONT, BEHIND], 8, 2 * users.min(4))]);
    assert!(found.confidence.share() < 0.6, "{found:#?}");
}

/// Three looks, of which some found a request at the front: 1.8 at a time behind it was said to be no pool of two.
#[test]
fn a_few_looks_do_not_tell_how_many_are_served_elsewhere() {
    let lab = sweep()
        .tier(server("nginx").demand_us(50.0).threads(8))
        .tier(server("php-fpm").downstream().demand_us(50.0).processes(2).threads(2))
        .users(&[1, 2, 4, 8])
        .pool(2, 10_000.0);
    let mut observed = lab.observed();
    for step in observed.iter_mut() {
        let users = step.step.users;
        for (number, sample) in step.counters.iter_mut().enumerate() {
            let missed = u32::from(users == 4 && number == 9) * 2;
            let behind =
                Hop { unread: (users - missed).into(), ..hop(Some(BEHIND), &[FRONT], users - missed, 0) };
            sample.hops = [1, 5, 9].contains(&number).then(|| vec![users_hop(users), behind]);
        }
    }
    let found = conclude(&observed, &lab.context).verdict.bottleneck;
    assert!(kinds(&found).contains(&ResourceKind::WorkerPool), "{found:#?}");
    assert!(found.kind == ResourceKind::WorkerPool || found.confidence.share() < 0.6, "{found:#?}");
}

/// Four connections that hold a request each for a part of the time: too little to be sure, and too much for workers alone.
#[test]
fn connections_that_are_mostly_in_use_may_be_the_pool() {
    let lab = sweep()
        .tier(server("app").demand_us(50.0).threads(4))
        .tier(server("postgres").downstream().demand_us(50.0))
        .pool(4, 20_000.0);
    let mostly = seen(&lab, |users| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], 4, users.min(3))]);
    let kinds: Vec<ResourceKind> = mostly.alternatives.iter().map(|other| other.kind).collect();
    assert!(mostly.kind == ResourceKind::ConnectionPool, "{mostly:#?}");
    assert!(kinds.contains(&ResourceKind::WorkerPool), "{mostly:#?}");
    assert!(mostly.confidence.share() < 0.9, "{mostly:#?}");
}

/// Four workers, each of which calls the tier behind for three fifths of its time. The looks show that at all but so many of the
/// heaviest steps: there four of the five looks met a call.
fn workers_that_call(heaviest: usize) -> Bottleneck {
    let lab = sweep()
        .tier(server("app").demand_us(50.0).threads(8))
        .tier(server("back").downstream().demand_us(50.0))
        .pool(4, 25_000.0);
    let mut observed = lab.observed();
    let lighter = observed.len() - heaviest;
    observed.sort_by_key(|step| step.step.users);
    for (place, step) in observed.iter_mut().enumerate() {
        let users = step.step.users;
        let (seldom, of_five) = if place >= lighter { (true, 4) } else { (false, 3) };
        for (number, sample) in step.counters.iter_mut().enumerate() {
            let held = if number % 5 < of_five { users.min(4) } else { 0 };
            let behind = hop(Some(BEHIND), &[FRONT], users.min(4), held);
            sample.hops = (!seldom || number < 5).then(|| vec![users_hop(users), behind]);
        }
    }
    conclude(&observed, &lab.context).verdict.bottleneck
}

/// Five looks with the most users met a call four times, and that was said to be a pool of connections, 83 %.
#[test]
fn a_few_looks_at_a_busy_moment_are_no_pool_of_connections() {
    let found = workers_that_call(1);
    assert!(found.kind == ResourceKind::WorkerPool && kinds(&found).len() > 1, "{found:#?}");
}

/// The looks at the two heaviest steps alone counted, and it was a pool of connections, 67 %. From N* on the share is the same.
#[test]
fn looks_from_saturation_on_count_for_connections() {
    let found = workers_that_call(2);
    assert!(found.kind == ResourceKind::WorkerPool && kinds(&found).len() > 1, "{found:#?}");
}

#[test]
fn a_pool_whose_queue_was_not_seen_may_be_one_of_connections() {
    let app = sweep().tier(server("app").demand_us(50.0).threads(8));
    let alone = seen(&app.clone().pool(4, 20_000.0), |_| Vec::new());
    assert!(alone.confidence.share() > 0.8, "{alone:#?}");
    let behind = app.tier(server("postgres").downstream().demand_us(50.0)).pool(4, 20_000.0);
    let found = seen(&behind, |_| Vec::new());
    let others: Vec<ResourceKind> = found.alternatives.iter().map(|other| other.kind).collect();
    assert!(others.contains(&ResourceKind::ConnectionPool), "{found:#?}");
    assert!(found.confidence.share() < 0.6, "which of the two is open: {found:#?}");
}

/// The front of an upstream on a busy host: its calls were in too few looks to follow them, and it was a pool of workers, 98 %.
#[test]
fn a_pool_before_an_upstream_that_was_seldom_looked_at_is_not_sure() {
    let found = before_an_upstream_seldom_looked_at(4);
    assert!(found.confidence.share() < 0.6, "who holds the requests was not seen: {found:#?}");
}

/// The same where requests pass one at a time: in the front, or at what it calls.
#[test]
fn a_lock_before_an_upstream_that_was_seldom_looked_at_is_not_sure() {
    let found = before_an_upstream_seldom_looked_at(1);
    assert!(found.confidence.share() < 0.6, "who holds the requests was not seen: {found:#?}");
    let others: Vec<_> = found.alternatives.iter().map(|other| other.kind).collect();
    assert!(
        found.kind == ResourceKind::Upstream || others.contains(&ResourceKind::Upstream),
        "the upstream may be why: {found:#?}"
    );
}

/// What is found where so many requests are served at a time, and two looks at each step saw all of them handed on.
fn before_an_upstream_seldom_looked_at(at_a_time: u32) -> Bottleneck {
    let lab = sweep().tier(server("nginx").demand_us(50.0)).pool(at_a_time, 50_000.0);
    let mut observed = lab.observed();
    for step in &mut observed {
        let users = step.step.users;
        for sample in step.counters.iter_mut().take(2) {
            sample.hops = Some(vec![users_hop(users), hop(None, &[FRONT], users, users)]);
        }
    }
    conclude(&observed, &lab.context).verdict.bottleneck
}

#[test]
fn workers_that_call_one_by_one_are_not_a_connection_pool() {
    let lab = sweep()
        .tier(server("app").demand_us(50.0).threads(4))
        .tier(server("postgres").downstream().demand_us(50.0))
        .pool(4, 20_000.0);
    let found = seen(&lab, |users| {
        let busy = users.min(4);
        let unread = u64::from(users - busy);
        let front = Hop { unread, held: busy.into(), ..users_hop(users) };
        vec![front, hop(Some(BEHIND), &[FRONT], busy, busy)]
    });
    assert_eq!((found.kind, holder(&found)), (ResourceKind::WorkerPool, "app"), "{found:#?}");
}

/// Queue full at the heavier steps only, so that the average over the plateau is small.
#[test]
fn a_listen_queue_that_admits_connections_slowly_is_the_accept_queue() {
    let lab = sweep().tier(server("app").demand_us(50.0).threads(8)).pool(1, 5_000.0);
    let lab = lab.listen_queue(40.0, 128).room_for(32);
    let waiting = |users: u32, held: u32| {
        let unread = u64::from(users - held);
        vec![Hop { unread, unaccepted: unread, held: held.into(), ..users_hop(users) }]
    };
    let found = seen(&lab, |users| waiting(users, 0));
    assert_eq!(found.kind, ResourceKind::AcceptQueue, "{found:#?}");
    assert_eq!(found.identity, Some(Identity::ListenQueue { port: FRONT as u16 }));
    // Where one request is always worked on, the queue is that of the worker.
    let worker = seen(&lab, |users| waiting(users, 1));
    assert_eq!(worker.kind, ResourceKind::Lock, "{worker:#?}");
}

#[test]
fn work_of_the_front_before_a_lock_behind_it_does_not_make_it_a_pool() {
    // The front takes 5 ms before it calls: two requests are served at a time, one of them behind the lock.
    let found = seen(&idle_front().delay_us(5_000.0), |users| {
        vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users.max(1) - 1, users.max(1) - 1)]
    });
    assert_eq!((found.kind, holder(&found)), (ResourceKind::Lock, "app"), "{found:#?}");
    assert!(found.evidence.iter().any(|said| said.contains("were at other tiers")), "{found:#?}");
}

#[test]
fn a_lock_on_a_host_that_others_fill_is_told_by_where_requests_queue() {
    let lab = idle_front().interference(3.4);
    let found = seen(&lab, |users| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users, users)]);
    assert_eq!((found.kind, holder(&found)), (ResourceKind::Lock, "app"), "{found:#?}");
    // Without a look at the connections, the work of others may be for the load.
    let blind = seen(&lab, |_| Vec::new());
    assert_eq!(blind.kind, ResourceKind::Unknown, "{blind:#?}");
}

#[test]
fn connections_that_tell_nothing_leave_the_holder_open() {
    let found = seen(&idle_front(), |users| {
        let unclear = Hop { unclear: users.into(), ..hop(Some(BEHIND), &[FRONT], users, 0) };
        vec![users_hop(users), unclear]
    });
    assert_eq!((found.kind, &found.identity), (ResourceKind::Lock, &None), "{found:#?}");
    let not_told = |seen: &Evidence| matches!(seen, Evidence::Hops(HopEvidence::NotTold { .. }));
    assert!(found.findings.iter().any(not_told), "{found:#?}");
}

#[test]
fn the_server_and_the_tier_behind_may_have_one_name() {
    let behind = server("python3").downstream().demand_us(100.0).threads(8).state(ThreadState::Futex);
    let lab = sweep().tier(server("python3").demand_us(50.0).threads(8)).tier(behind).pool(1, 5_000.0);
    let found = seen(&lab, |users| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users, users)]);
    let Some(Identity::Processes(of)) = &found.identity else { panic!("{found:#?}") };
    assert_eq!((of.role, of.pid), (Role::Downstream, Some(BEHIND)));
}

/// One kept connection to a tier behind that is always in use, as one of HTTP/2 is, which carries all requests, or one that a
/// listener of the front waits on: it was said to be a pool of one connection that is too small, 87 %.
#[test]
fn a_single_connection_that_is_always_in_use_is_not_too_few() {
    let single = |users: u32| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], 1, 1)];
    let found = seen(&before_postgres(), single);
    assert!(found.kind != ResourceKind::ConnectionPool || found.confidence.share() < 0.6, "{found:#?}");
    // A lock that is held over the call: only one connection was ever needed.
    let found = seen(&idle_front(), single);
    assert!(found.confidence.share() < 0.6, "{found:#?}");
    let kinds = kinds(&found);
    assert!(
        kinds.contains(&ResourceKind::Lock) && kinds.contains(&ResourceKind::ConnectionPool),
        "{found:#?}"
    );
}

/// Four workers behind one connection that carries all requests, as one of HTTP/2 does. Which end sent last tells nothing there:
/// it seemed to be idle now and then, and the workers were said to be those of the front.
#[test]
fn a_connection_that_carries_several_requests_leaves_open_where_they_queue() {
    let found = seen_by_look(&before_back("nginx"), |users, look| {
        let held = u32::from(users < 4 || look % 5 < 3);
        vec![users_hop(users), hop(Some(BEHIND), &[FRONT], 1, held)]
    });
    assert!(found.identity.is_none() && found.confidence.share() < 0.6, "{found:#?}");
}

/// What a look sees of one connection that carries a request in so many of ten looks.
fn over_one_connection(users: u32, look: usize, of_ten: u32) -> Vec<Hop> {
    let held = u32::from(look % 10 < of_ten as usize);
    vec![users_hop(users), hop(Some(BEHIND), &[FRONT], 1, held)]
}

/// By the time that a request of one user spends behind it, a single connection has room: requests pass it one by one.
#[test]
fn a_single_connection_with_room_leaves_the_queue_at_the_front() {
    let lock = seen_by_look(&idle_front(), |users, look| over_one_connection(users, look, 3));
    assert_eq!((lock.kind, holder(&lock)), (ResourceKind::Lock, "nginx"), "{lock:#?}");
    let used = |users: u32, look: usize| over_one_connection(users, look, users.min(4));
    let pool = seen_by_look(&before_back("app"), used);
    assert_eq!((pool.kind, holder(&pool)), (ResourceKind::WorkerPool, "app"), "{pool:#?}");
}

/// Each request holds a session for all of its time and a statement is on it for a quarter: that was a pool of workers, 98 %.
#[test]
fn sessions_that_requests_hold_without_using_them_may_be_the_pool() {
    let held = |users: u32| vec![users_hop(users), hop(Some(BEHIND), &[FRONT], 4, users.min(1))];
    let found = seen(&before_postgres(), held);
    let pool = found.alternatives.iter().find(|other| other.kind == ResourceKind::ConnectionPool);
    assert!(pool.is_some_and(|pool| pool.probability.share() > 0.3), "{found:#?}");
}

/// Four threads of one name with a connection each: either may be what is full.
#[test]
fn as_many_threads_as_connections_may_be_the_pool() {
    let names = &["puma srv tp 1", "puma srv tp 2", "puma srv tp 3", "puma srv tp 4"];
    let lab = sweep()
        .tier(server("puma").demand_us(50.0).threads(4).thread_names(names))
        .tier(server("postgres").downstream().demand_us(50.0))
        .pool(4, 20_000.0);
    let found = seen(&lab, over_four_connections);
    assert!(found.confidence.share() < 0.6, "{found:#?}");
    let kinds = kinds(&found);
    assert!(kinds.contains(&ResourceKind::WorkerPool), "{found:#?}");
}

/// A semaphore lets four requests at a time call a tier that has room, over connections that are kept: that was a pool of
/// connections, 87 %. Proxies, and clients of databases, are known to limit theirs.
#[test]
fn full_connections_of_other_programs_may_be_those_of_as_many_workers() {
    let found = seen(&before_back("go-tier"), over_four_connections);
    assert!(found.confidence.share() < 0.6 && holder(&found) == "go-tier", "{found:#?}");
    let kinds = kinds(&found);
    assert!(
        kinds.contains(&ResourceKind::ConnectionPool) && kinds.contains(&ResourceKind::WorkerPool),
        "{found:#?}"
    );
    for limited in [before_back("haproxy"), before_postgres()] {
        let found = seen(&limited, over_four_connections);
        let sure = found.kind == ResourceKind::ConnectionPool && found.confidence.share() > 0.8;
        assert!(sure, "{found:#?}");
    }
}

/// The same where the looks with the most users met fewer calls: then all that spoke for a pool spoke for one of connections.
#[test]
fn nearly_full_connections_are_no_surer_than_full_ones() {
    let found = seen_by_look(&before_back("go-tier"), |users, look| {
        let held = if users == 64 && look % 4 == 3 { 0 } else { users.min(4) };
        vec![users_hop(users), hop(Some(BEHIND), &[FRONT], users.min(4), held)]
    });
    assert!(found.confidence.share() < 0.6 && holder(&found) == "go-tier", "{found:#?}");
    assert!(kinds(&found).contains(&ResourceKind::WorkerPool), "{found:#?}");
}

/// Workers open a connection for each request: there are never more connections than workers. A proxy limits such connections.
#[test]
fn connections_that_are_opened_anew_are_as_many_as_there_are_workers() {
    let found_in = |front: &'static str| {
        let lab = sweep()
            .tier(server(front).demand_us(50.0).threads(8))
            .tier(server("postgres").downstream().demand_us(50.0))
            .pool(4, 20_000.0);
        seen(&lab, |users| {
            let connections = Hop {
                opened: users.min(4).into(),
                ..hop(Some(BEHIND), &[FRONT], users.min(4), users.min(4))
            };
            vec![users_hop(users), connections]
        })
    };
    assert_eq!(found_in("app").kind, ResourceKind::WorkerPool);
    assert_eq!(found_in("haproxy").kind, ResourceKind::ConnectionPool);
}

/// Five tiers behind of which each has a fifth of the requests: none had many more, and the queue was said to be the front's.
#[test]
fn a_queue_that_is_spread_over_many_tiers_behind_is_not_the_fronts() {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    let front = sweep().tier(server("nginx").demand_us(50.0).threads(8));
    let tier = |lab: Lab, name: &&'static str| lab.tier(server(name).downstream().demand_us(50.0));
    let lab = NAMES.iter().fold(front, tier).pool(5, 20_000.0);
    let found = seen(&lab, |users| {
        let behind = (0..5).map(|number| hop(Some(BEHIND + 100 * number), &[FRONT], 20, users / 5));
        [users_hop(users)].into_iter().chain(behind).collect()
    });
    assert!(found.identity.is_none() || holder(&found) != "nginx", "{found:#?}");
}

/// Answers that have left the server and are on their way over something slow that nobody watches: it was a lock of the server.
#[test]
fn answers_that_are_on_their_way_are_not_behind_a_lock() {
    let lab = sweep().tier(server("nginx").demand_us(50.0)).pool(1, 20_000.0);
    let found = seen(&lab, |users| vec![Hop { held: 1, ..users_hop(users) }]);
    assert!(found.kind != ResourceKind::Lock || found.confidence.share() < 0.6, "{found:#?}");
}

/// Twenty workers behind a queue of five: the queue overflows as soon as they are full, and was said to be what stops it.
#[test]
fn a_short_listen_queue_before_full_workers_is_not_what_stops_it() {
    let lab = sweep()
        .users(&[1, 2, 4, 8, 16, 20, 40, 80])
        .tier(server("app").demand_us(100.0).threads(20))
        .pool(20, 20_000.0)
        .listen_queue(40.0, 128)
        .room_for(20);
    let found = seen(&lab, |users| {
        let (inside, held) = (users.min(25), users.min(20));
        let waiting = u64::from(inside - held);
        vec![Hop {
            connections: inside.into(),
            unread: waiting,
            unaccepted: waiting,
            held: held.into(),
            ..users_hop(users)
        }]
    });
    // Behind an acceptor that is slow there are as many requests, so that either may be what is full.
    let kinds = kinds(&found);
    assert!(kinds.contains(&ResourceKind::WorkerPool), "{found:#?}");
    assert!(found.kind == ResourceKind::WorkerPool || found.confidence.share() < 0.6, "{found:#?}");
}

#[test]
fn addresses_that_are_too_many_to_watch_are_told_where_most_were_left_out() {
    let lab = idle_front();
    let mut observed = lab.observed();
    for step in &mut observed {
        let users = step.step.users;
        for sample in &mut step.counters {
            sample.hops = Some(vec![users_hop(users), hop(Some(BEHIND), &[FRONT], 1, 1)]);
            sample.hops_left_out = u64::from(users / 8);
        }
    }
    let found = conclude(&observed, &lab.context);
    let told = found.warnings.iter().find_map(|warning| match &warning.cause {
        Cause::AddressesLeftOut { users, addresses, of, .. } => Some((*users, *addresses, *of)),
        _ => None,
    });
    let most = observed.iter().map(|step| step.step.users).max().unwrap_or_default();
    let left_out = u64::from(most / 8);
    assert_eq!(told, Some((most, left_out, left_out + 2)));
    let warned = conclude(&lab.observed(), &lab.context).warnings;
    assert!(!warned.iter().any(|warning| matches!(warning.cause, Cause::AddressesLeftOut { .. })));
}
