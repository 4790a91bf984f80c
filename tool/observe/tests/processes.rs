//! Real processes: which serve a port, which are behind it, and what they use.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use analysis::counters::{Counters, Hop, Process, Role, ServerAddress};
use analysis::resources::{Group, Waiters, replaced, usage};
use observe::{KernelPaths, ObserveError, Topology, Watcher, find, find_all};
use support::Server;

#[test]
#[ignore = "the other tests run it in processes of their own"]
fn child() {
    support::run_role();
}

#[test]
fn the_process_behind_a_port() {
    for bind in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
        let server = Server::start(&format!("listen {bind}"));
        let loopback = if bind.starts_with("[::1") { "[::1]" } else { "127.0.0.1" };
        let target = format!("{loopback}:{}", server.addr.port()).parse().unwrap();
        let topology = find(target).unwrap();
        assert_eq!((topology.servers, topology.downstream), (vec![server.pid()], vec![]), "{bind}");
    }
}

#[test]
fn all_that_share_a_listener() {
    let server = Server::start("share 127.0.0.1:0");
    let topology = find(server.addr).unwrap();
    assert_eq!(topology.servers.len(), 2);
    assert!(topology.servers.contains(&server.pid()));
}

#[test]
fn tiers_behind_tiers() {
    let database = Server::start("listen 127.0.0.1:0");
    let accounts = Server::start(&format!("call 127.0.0.1:0 {}", database.addr));
    let files = Server::start(&format!("call 127.0.0.1:0 {}", accounts.addr));
    let topology = find(files.addr).unwrap();
    let mut behind = vec![database.pid(), accounts.pid()];
    behind.sort_unstable();
    assert_eq!((topology.servers, topology.downstream), (vec![files.pid()], behind));
}

/// Peers that call one another are all servers, and none is the tier behind another.
#[test]
fn several_servers_are_one_system() {
    let index = Server::start("listen 127.0.0.1:0");
    let one = Server::start(&format!("call 127.0.0.1:0 {}", index.addr));
    let other = Server::start(&format!("call 127.0.0.1:0 {}", one.addr));
    let topology = find_all(&[other.addr, one.addr]).unwrap();
    let mut servers = vec![one.pid(), other.pid()];
    servers.sort_unstable();
    assert_eq!((topology.servers, topology.downstream), (servers, vec![index.pid()]));
    drop(one);
    assert!(find_all(&[other.addr, "192.0.2.200:80".parse().unwrap()]).is_err());
    assert!(find_all(&[]).is_err());
}

#[test]
fn children_belong_to_the_server() {
    let server = Server::start("fork 127.0.0.1:0");
    // The main thread waits while another one has forked; the process tree shows it.
    assert_eq!(find(server.addr).unwrap().servers.len(), 2);
}

#[test]
fn a_tier_behind_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let database = Server::start(&format!("listen-unix 127.0.0.1:0 {}", path.display()));
    let front = Server::start(&format!("call-unix 127.0.0.1:0 {}", path.display()));
    // The kernel tells whose connection it is only once it has been accepted.
    let watcher = watch(&front);
    sample_until(&watcher, |_, last| last.processes.len() == 3);
    let topology = watcher.topology();
    assert_eq!((topology.servers, topology.downstream), (vec![front.pid()], vec![database.pid()]));
}

#[test]
fn a_tier_called_later_is_found_while_watching() {
    let database = Server::start("listen 127.0.0.1:0");
    let mut front = Server::start("call-later 127.0.0.1:0");
    let watcher = watch(&front);
    assert!(watcher.topology().downstream.is_empty());
    front.tell(&database.addr.to_string());
    let (_, last) = sample_until(&watcher, |_, last| last.processes.len() == 3);
    assert_eq!(process(&last, database.pid()).role, Role::Downstream);
    assert_eq!(watcher.topology().downstream, [database.pid()]);
}

/// This process is no tier: what it calls behind the server is not the server's, and what it calls as a user is.
#[test]
fn connections_of_processes_that_are_no_tier_are_left_out() {
    let database = Server::start("listen 127.0.0.1:0");
    let mut front = Server::start("call-later 127.0.0.1:0");
    let _user = TcpStream::connect(front.addr).unwrap();
    let other = TcpStream::connect(database.addr).unwrap();
    let client = other.local_addr().unwrap();
    (0..2).for_each(|_| front.tell(&database.addr.to_string()));
    let watcher = watch(&front);
    let (_, last) = sample_until(&watcher, |_, last| {
        hop_to(last, database.addr).is_some_and(|hop| hop.connections == 2 && !hop.clients.contains(&client))
    });
    let called = hop_to(&last, database.addr).unwrap();
    assert_eq!((called.server, called.callers.as_slice()), (Some(database.pid()), [front.pid()].as_slice()));
    assert_eq!(hop_to(&last, front.addr).unwrap().connections, 1, "the users' connections count");
}

fn hop_to(sample: &Counters, address: SocketAddr) -> Option<&Hop> {
    sample.hops.iter().flatten().find(|hop| hop.address == ServerAddress::Tcp { address })
}

#[test]
fn a_full_listen_queue_is_seen() {
    let server = Server::start("listen 127.0.0.1:0");
    let _waiting: Vec<_> = (0..3).map(|_| TcpStream::connect(server.addr).unwrap()).collect();
    let watcher = watch(&server);
    let samples = watcher.stop();
    let listener = &samples[0].listeners[0];
    assert_eq!((listener.port, listener.pid, listener.waiting), (server.addr.port(), server.pid(), 3));
    assert!(listener.backlog > 0);
}

#[test]
fn errors_say_why_a_process_cannot_be_found() {
    let elsewhere = "192.0.2.200:80".parse().unwrap();
    assert!(matches!(find(elsewhere), Err(ObserveError::NotLocal(_))));
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = own.local_addr().unwrap();
    assert!(matches!(find(addr), Err(ObserveError::OwnProcess(_))));
    // A port that is in use, but not listened on.
    let stream = TcpStream::connect(addr).unwrap();
    let found = find(stream.local_addr().unwrap());
    // Root alone sees that nothing leads on from there.
    assert!(matches!(found, Err(ObserveError::NotListening(_) | ObserveError::TranslationUnread(_))));
}

fn watch(server: &Server) -> Watcher {
    let topology = find(server.addr).unwrap();
    Watcher::start(KernelPaths::default(), topology, Duration::from_millis(20)).unwrap()
}

fn process(sample: &Counters, pid: u32) -> &Process {
    sample.processes.iter().find(|process| process.pid == pid).unwrap()
}

/// Looks until `enough` of two samples, the first and the last.
fn sample_until(watcher: &Watcher, enough: impl Fn(&Counters, &Counters) -> bool) -> (Counters, Counters) {
    watcher.sample_now();
    let samples = watcher.between(0, 0);
    let first = samples.first().unwrap().clone();
    let give_up = Instant::now() + Duration::from_secs(60);
    while Instant::now() < give_up {
        let last = watcher.between(u64::MAX, u64::MAX).pop().unwrap();
        if enough(&first, &last) {
            return (first, last);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("not seen within a minute");
}

#[test]
fn a_busy_process_is_seen_busy_on_one_thread() {
    let server = Server::start("burn 127.0.0.1:0");
    // Not from one sample's time to the other's: what it used is read a moment later, which a busy machine may make long.
    let begin_us = observe::monotonic_us();
    let watcher = watch(&server);
    let used =
        |sample: &Counters| process(sample, server.pid()).user_us + process(sample, server.pid()).system_us;
    let (first, last) = sample_until(&watcher, |first, last| used(last) > used(first) + 100_000);
    let elapsed_us = observe::monotonic_us() - begin_us;
    assert!(used(&last) - used(&first) <= elapsed_us + 50_000, "more than one processor's worth");
    let server = process(&last, server.pid());
    assert_eq!(server.role, Role::Server);
    let busiest = server.threads.iter().map(|thread| thread.cpu_us).max().unwrap();
    assert!(busiest * 10 > (server.user_us + server.system_us) * 8, "one thread has nearly all of it");
    assert!(server.allowed_cpus > 0 && server.open_files.unwrap() >= 3 && server.resident_bytes > 0);
    assert!(server.open_files_limit.unwrap() > 3);
}

/// What a server did once that is as it should be, or the last time. The times of a process and of its threads are read one
/// after the other, so that they differ where a busy machine stops whoever reads them.
fn tried(role: &str, is_right: impl Fn(&Group) -> bool) -> Group {
    let server = Server::start(role);
    (0..4).map(|_| used_by(&server)).find(is_right).unwrap_or_else(|| used_by(&server))
}

/// What a server did between its first sample and one taken after it had used a good part of a second.
fn used_by(server: &Server) -> Group {
    let watcher = watch(server);
    let used =
        |sample: &Counters| process(sample, server.pid()).user_us + process(sample, server.pid()).system_us;
    let (first, last) = sample_until(&watcher, |first, last| used(last) > used(first) + 500_000);
    let window = (first.at_us, last.at_us);
    usage(&[first, last], &[], window).tiers().next().unwrap().clone()
}

#[test]
fn the_threads_that_use_the_time_are_known_by_their_names() {
    let most_of = |group: &Group| group.threads_by_name.first().map_or(0.0, |most| most.cores / group.cores);
    let is_right = |group: &Group| (0.9..1.1).contains(&most_of(group)) && group.threads_left_out < 0.1;
    let group = tried("hash 127.0.0.1:0", is_right);
    let most = &group.threads_by_name[0];
    assert_eq!((most.name.as_str(), most.threads), ("hash-*", 2));
    assert!(is_right(&group), "{group:?}");
}

/// A sample covers some of ten thousand threads, and among them the one that works; a look at where threads wait fewer still.
#[test]
fn a_process_with_ten_thousand_threads_is_watched_with_bounded_work() {
    let server = Server::start("crowd 127.0.0.1:0");
    let watcher = watch(&server);
    watcher.look_closely(true);
    let cpu_us = |sample: &Counters| {
        let threads = &process(sample, server.pid()).threads;
        threads.iter().find(|thread| thread.name == "hash-1").map_or(0, |thread| thread.cpu_us)
    };
    let (_, last) = sample_until(&watcher, |_, last| cpu_us(last) > 300_000);
    assert!(process(&last, server.pid()).threads.len() <= 256);
    let give_up = Instant::now() + Duration::from_secs(60);
    let look = loop {
        let looks = watcher.looks_between(0, u64::MAX);
        let processes = looks.iter().flat_map(|look| &look.processes);
        let look = processes.max_by_key(|process| process.threads).cloned();
        match look.filter(|look| look.threads > 1_000) {
            Some(look) => break look,
            None => assert!(Instant::now() < give_up, "not seen within a minute"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(look.looked_at <= 128 && look.futexes.len() as u32 + 1 >= look.looked_at, "{look:?}");
}

/// What looks at a server's threads saw once it was this.
fn waiting(role: &str, seen: impl Fn(&Waiters) -> bool) -> Waiters {
    let server = Server::start(role);
    let topology = find(server.addr).unwrap();
    let watcher = Watcher::start(KernelPaths::default(), topology, Duration::from_millis(250)).unwrap();
    let start_us = observe::monotonic_us();
    std::thread::sleep(Duration::from_millis(5));
    assert!(watcher.looks_between(start_us, u64::MAX).is_empty(), "nobody has asked for looks");
    watcher.look_closely(true);
    let give_up = Instant::now() + Duration::from_secs(60);
    while Instant::now() < give_up {
        let looks = watcher.looks_between(start_us, u64::MAX);
        let last: Vec<_> = looks.last().cloned().into_iter().collect();
        let samples = watcher.between(start_us, observe::monotonic_us());
        let usage = usage(&samples, &[], (start_us, observe::monotonic_us())).with_looks(&last);
        let waiters = usage.tiers().find_map(|group| group.waiters).filter(|waiters| waiters.closely);
        if let Some(found) = waiters.filter(&seen) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("not seen within a minute");
}

#[test]
fn threads_that_wait_for_one_mutex_are_at_one_futex_and_parked_ones_are_not() {
    let at_one = |waiters: &Waiters| waiters.at_one.unwrap().mean;
    assert_eq!(at_one(&waiting("queue 127.0.0.1:0", |waiters| at_one(waiters) >= 5.0)), 5.0);
    let anew = waiting("queue-anew 127.0.0.1:0", |waiters| at_one(waiters) >= 5.0);
    assert_eq!(at_one(&anew), 5.0, "threads that do not last");
    assert_eq!(at_one(&waiting("park 127.0.0.1:0", |waiters| waiters.in_all.mean >= 5.0)), 1.0);
}

#[test]
fn threads_that_sleep_until_a_time_are_counted_and_parked_ones_are_not() {
    let asleep = |waiters: &Waiters| waiters.asleep.unwrap().mean;
    assert_eq!(asleep(&waiting("sleep 127.0.0.1:0", |waiters| asleep(waiters) >= 5.0)), 5.0);
    assert_eq!(asleep(&waiting("park 127.0.0.1:0", |waiters| waiters.in_all.mean >= 5.0)), 0.0);
}

/// Seen at the client's end, as it is of a server on another host.
#[test]
fn handshakes_are_tried_again_where_nobody_accepts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let target = listener.local_addr().unwrap();
    let watcher =
        Watcher::start(KernelPaths::default(), Topology::unseen(target), Duration::from_millis(20)).unwrap();
    let connect = || TcpStream::connect_timeout(&target, Duration::from_secs(5));
    std::thread::scope(|threads| {
        (0..6).for_each(|_| drop(threads.spawn(connect)));
        // They are in two files of the kernel's, which are not read in the same instant.
        let counts = |sample: &Counters| {
            let tcp = &sample.generator_tcp;
            (tcp.handshakes_retried, tcp.retransmits)
        };
        let (_, last) = sample_until(&watcher, |first, last| {
            counts(last).0 > counts(first).0 && counts(last).1 > counts(first).1
        });
        assert!(last.generator_tcp.opened > 0);
    });
}

/// The time of threads that end between two samples counts for their process, but for no other thread.
#[test]
fn threads_that_come_and_go_count_under_no_name() {
    let is_right = |group: &Group| {
        let named: f64 = group.threads_by_name.iter().map(|threads| threads.cores).sum();
        named < 0.5 * group.cores && group.threads_left_out < 0.5
    };
    let group = tried("churn 127.0.0.1:0", is_right);
    assert!(is_right(&group), "{group:?}");
}

#[test]
fn the_time_of_children_too_short_lived_to_sample_is_not_lost() {
    let server = Server::start("reap 127.0.0.1:0");
    let watcher = watch(&server);
    let reaped = |sample: &Counters| process(sample, server.pid()).reaped_children_us;
    sample_until(&watcher, |first, last| reaped(last) > reaped(first) + 30_000);
}

#[test]
fn the_generator_is_always_watched() {
    let watcher = Watcher::start(
        KernelPaths::default(),
        Topology::unseen("192.0.2.200:80".parse().unwrap()),
        Duration::from_secs(60),
    )
    .unwrap();
    let samples = watcher.stop();
    let sample = samples.last().unwrap();
    assert_eq!(sample.processes.len(), 1);
    let own = process(sample, std::process::id());
    assert_eq!(own.role, Role::Generator);
    assert!(own.user_us + own.system_us > 0 && own.thread_count > 1);
    assert!(!sample.cpus.is_empty() && sample.memory.total_bytes > 0 && !sample.interfaces.is_empty());
}

#[test]
fn a_process_that_ends_is_left_out() {
    let mut server = Server::start("listen 127.0.0.1:0");
    let watcher = watch(&server);
    let (first, _) = sample_until(&watcher, |_, _| true);
    assert_eq!(first.processes.len(), 2);
    server.end();
    let (_, last) = sample_until(&watcher, |_, last| last.processes.len() == 1);
    assert_eq!(last.processes[0].role, Role::Generator);
}

#[test]
fn a_restarted_server_is_found_again() {
    let mut server = Server::start("listen 127.0.0.1:0");
    let watcher = watch(&server);
    sample_until(&watcher, |_, last| last.processes.iter().any(|one| one.pid == server.pid()));
    server.end();
    let again = Server::start(&format!("listen-again {}", server.addr));
    let (_, last) = sample_until(&watcher, |_, last| last.processes.iter().any(|one| one.pid == again.pid()));
    assert_eq!(process(&last, again.pid()).role, Role::Server);
    assert_eq!((watcher.topology().servers, last.listeners.len()), (vec![again.pid()], 1));
    assert_eq!(told(&watcher), [(Role::Server, Some(server.pid()), Some(again.pid()))]);
}

/// Whose place others took, with their role.
fn told(watcher: &Watcher) -> Vec<(Role, Option<u32>, Option<u32>)> {
    let all = watcher.read(replaced);
    all.into_iter().map(|one| (one.before.role, one.before.pid, one.after.pid)).collect()
}

#[test]
fn a_restarted_tier_is_found_again() {
    let mut database = Server::start("listen 127.0.0.1:0");
    let mut front = Server::start("call-later 127.0.0.1:0");
    let (address, before) = (database.addr, database.pid());
    let serves = |last: &Counters, pid| hop_to(last, address).is_some_and(|hop| hop.server == Some(pid));
    front.tell(&address.to_string());
    let watcher = watch(&front);
    sample_until(&watcher, |_, last| serves(last, before));
    database.end();
    let again = Server::start(&format!("listen-again {address}"));
    front.tell(&address.to_string());
    let (_, last) = sample_until(&watcher, |_, last| serves(last, again.pid()));
    assert_eq!(process(&last, again.pid()).role, Role::Downstream);
    assert_eq!(told(&watcher), [(Role::Downstream, Some(before), Some(again.pid()))]);
}

#[test]
fn a_span_is_covered_on_both_sides() {
    let server = Server::start("listen 127.0.0.1:0");
    let watcher = watch(&server);
    watcher.sample_now();
    let start = observe::monotonic_us();
    watcher.sample_now();
    watcher.sample_now();
    let end = observe::monotonic_us();
    let samples = watcher.between(start, end);
    assert!(samples.len() >= 3);
    assert!(samples[0].at_us <= start && samples[1].at_us > start);
    assert!(samples[samples.len() - 1].at_us >= end && samples[samples.len() - 2].at_us < end);
    assert_eq!(watcher.between(start, end), samples);
    assert!(watcher.between(0, start).first().unwrap().at_us <= start);
}
