//! The closed loop: connections kept, equal work, steps, think time.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Counted, NEVER, OK, PATIENCE, Server, collect_until, plan, run};
use analysis::ticks::Tick;
use load::{Connections, Generator, Pacing, SLICE_US, Stop, Think};

#[test]
fn connections_are_kept_and_ticks_are_consecutive() {
    let server = Server::answering(OK);
    let mut generator = Generator::start(&server.plan()).unwrap();
    generator.set_users(3).unwrap();
    let mut ticks = generator.collect(100_000, &NEVER).unwrap();
    // A slow server may accept late.
    let all_came = |counted: &Counted| counted.completed > 0 && server.accepted() >= 3;
    ticks.extend(collect_until(&mut generator, 100_000, all_came));
    let counted = Counted::of(&ticks);
    assert!(counted.completed > 0 && counted.errors.is_empty(), "{counted:?}");
    assert_eq!(counted.bytes, 2 * counted.completed);
    assert_eq!(server.accepted(), 3);
    assert!(ticks.len() >= 10);
    for pair in ticks.windows(2) {
        assert_eq!(pair[1].start_us, pair[0].start_us + SLICE_US);
    }
    assert!(ticks.iter().all(|tick| tick.start_us % SLICE_US == 0 && tick.generator.threads == 1));
    assert!(ticks.iter().any(|tick| tick.generator.busy_us > 0));
}

#[test]
fn steps_up_and_down_keep_the_connections_of_users_that_stay() {
    let server = Server::answering(OK);
    let mut plan = server.plan();
    plan.threads = 2;
    let mut generator = Generator::start(&plan).unwrap();
    for (users, accepted) in [(2, 2), (5, 5), (1, 5), (3, 7)] {
        generator.set_users(users).unwrap();
        // A slow server may accept late.
        let all_came = |counted: &Counted| counted.completed > 0 && server.accepted() >= accepted;
        let counted = Counted::of(&collect_until(&mut generator, 60_000, all_came));
        assert!(counted.completed > 0 && counted.errors.is_empty(), "{users} users: {counted:?}");
        assert_eq!(server.accepted(), accepted, "{users} users");
    }
}

#[test]
fn every_user_does_equal_work() {
    let per_connection: Arc<[AtomicUsize; 7]> = Arc::default();
    let counts = per_connection.clone();
    let server = Server::start(move |mut peer, number| {
        while peer.request().is_some() {
            counts[number].fetch_add(1, Ordering::SeqCst);
            peer.send(OK).unwrap();
        }
    });
    let mut plan = server.plan();
    plan.threads = 2;
    assert_eq!(run(&plan, 7, Stop::PerUser(23)).completed, 7 * 23);
    assert!(per_connection.iter().all(|count| count.load(Ordering::SeqCst) == 23));
}

#[test]
fn a_total_is_reached_exactly() {
    let server = Server::answering(OK);
    let mut plan = server.plan();
    plan.threads = 2;
    let counted = run(&plan, 5, Stop::Total(1_001));
    assert_eq!((counted.completed, counted.errors_total()), (1_001, 0));
}

#[test]
fn one_connection_per_request() {
    let server = Server::start(|mut peer, _| {
        let request = peer.request().unwrap();
        assert_eq!(request.header("connection"), Some("close"));
        peer.send(OK).unwrap();
    });
    let mut plan = server.plan();
    plan.connections = Connections::PerRequest;
    let mut generator = Generator::start(&plan).unwrap();
    generator.set_users(2).unwrap();
    let ticks = generator.run(Stop::PerUser(20), &NEVER).unwrap();
    let counted = Counted::of(&ticks);
    assert_eq!((counted.completed, counted.errors_total()), (40, 0), "{counted:?}");
    assert_eq!((server.accepted(), generator.connects()), (40, 40));
    // A request waits for its connection, so that time is part of its response time.
    let sum = |count: fn(&Tick) -> u64| ticks.iter().map(count).sum::<u64>();
    let (connecting_ns, response_ns) =
        (sum(|tick| tick.connecting_ns_sum), sum(|tick| tick.response_time_ns_sum));
    assert_eq!(sum(|tick| tick.connected), 40);
    assert!(0 < connecting_ns && connecting_ns < response_ns, "{connecting_ns} of {response_ns}");
}

/// A server that writes head and body apart waits in between for an acknowledgement, which is delayed once a connection has
/// carried a few segments; one that sends at once does not.
#[test]
fn responses_held_back_by_nagle_are_counted() {
    let held_back = |nodelay: bool| {
        let server = Server::start(move |mut peer, _| {
            peer.stream().set_nodelay(nodelay).unwrap();
            while peer.request().is_some() {
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").unwrap();
                peer.send(b"ok").unwrap();
            }
        });
        let mut generator = Generator::start(&server.plan()).unwrap();
        generator.set_users(1).unwrap();
        let ticks = generator.run(Stop::PerUser(60), &NEVER).unwrap();
        let sum = |count: fn(&Tick) -> u64| ticks.iter().map(count).sum::<u64>();
        (sum(|tick| tick.held_back), sum(|tick| tick.held_back_ns_sum), sum(|tick| tick.completed))
    };
    let (paused, pauses_ns, completed) = held_back(false);
    assert_eq!(completed, 60);
    assert!(paused > 5, "{paused} of {completed}");
    assert!((39_000_000..=48_000_000).contains(&(pauses_ns / paused)), "{}", pauses_ns / paused);
    let (paused, _, completed) = held_back(true);
    assert!(paused < completed / 2, "{paused} of {completed}");
}

#[test]
fn a_server_that_closes_after_each_response_gets_new_connections() {
    let server = Server::start(|mut peer, _| {
        peer.request().unwrap();
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").unwrap();
    });
    let counted = run(&server.plan(), 2, Stop::PerUser(10));
    assert_eq!((counted.completed, counted.errors_total()), (20, 0), "{counted:?}");
    assert_eq!(server.accepted(), 20);
}

#[test]
fn think_time_is_part_of_the_cycle() {
    let server = Server::answering(OK);
    let mut plan = server.plan();
    plan.pacing = Pacing::Closed { think: Think::Constant(Duration::from_millis(10)) };
    let mut generator = Generator::start(&plan).unwrap();
    generator.set_users(8).unwrap();
    let mut told = Vec::new();
    // A machine that stands still at an edge makes all users wait there for longer than any response took.
    for _ in 0..5 {
        let ticks = collect_until(&mut generator, 400_000, |counted| counted.completed > 0);
        let elapsed_us = ticks.len() as u64 * SLICE_US;
        let counted = Counted::of(&ticks);
        // A user's cycle is never shorter than its think time, which limits the count; each user may add one at each edge.
        assert!(counted.completed <= 8 * (elapsed_us / 10_000 + 2), "{}", counted.completed);
        assert!(counted.completed > 0);
        // Little's law, exact except at the edges: user time is response time plus think time.
        let thinking: u64 = ticks.iter().map(|tick| tick.generator.thinking_user_us).sum();
        let waiting: u64 = ticks.iter().map(|tick| tick.response_time_ns_sum).sum::<u64>() / 1_000;
        let edges = 8 * 2 * counted.response_time_max.as_micros() as u64 + 1_000;
        if (thinking + waiting).abs_diff(8 * elapsed_us) <= edges {
            return;
        }
        told.push(format!("{thinking} + {waiting} of {}", 8 * elapsed_us));
    }
    panic!("{told:?}");
}

#[test]
fn an_interrupted_run_returns_what_was_measured() {
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    let server = Server::start(move |mut peer, _| {
        while peer.request().is_some() {
            seen.fetch_add(1, Ordering::SeqCst);
            if peer.send(OK).is_err() {
                return;
            }
        }
    });
    let mut generator = Generator::start(&server.plan()).unwrap();
    generator.set_users(1).unwrap();
    let interrupt = Arc::new(AtomicBool::new(false));
    let later = interrupt.clone();
    let waiter = std::thread::spawn(move || {
        // A second request shows that the first has its response.
        let give_up = Instant::now() + PATIENCE;
        while asked.load(Ordering::SeqCst) < 2 && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(100));
        later.store(true, Ordering::SeqCst);
    });
    let ticks = generator.run(Stop::Total(u64::MAX), &interrupt).unwrap();
    waiter.join().unwrap();
    assert!(Counted::of(&ticks).completed > 0);
}

#[test]
fn threads_without_users_do_not_keep_a_counted_load_from_ending() {
    let server = Server::answering(OK);
    let mut plan = server.plan();
    plan.threads = 4;
    for _ in 0..20 {
        assert_eq!(run(&plan, 1, Stop::PerUser(2)).completed, 2);
        assert_eq!(run(&plan, 1, Stop::Total(3)).completed, 3);
    }
}

/// User u sends to server u modulo their count, with that server's name in the Host header.
#[test]
fn users_are_spread_over_several_servers() {
    let asked: Arc<[AtomicUsize; 3]> = Arc::default();
    let servers: Vec<Server> = (0..3)
        .map(|place| {
            let asked = asked.clone();
            Server::start(move |mut peer, _| {
                let here = peer.stream().local_addr().unwrap().to_string();
                while let Some(request) = peer.request() {
                    assert_eq!(request.header("host"), Some(here.as_str()));
                    asked[place].fetch_add(1, Ordering::SeqCst);
                    peer.send(OK).unwrap();
                }
            })
        })
        .collect();
    let mut plan = servers[0].plan();
    plan.scenario = plan.scenario.with_bases(servers.iter().map(|server| server.url("/")).collect());
    plan.threads = 2;
    let addresses: Vec<_> = servers.iter().map(|server| server.address).collect();
    assert_eq!(Generator::start(&plan).unwrap().addresses(), addresses);
    let counted = run(&plan, 7, Stop::PerUser(10));
    assert_eq!((counted.completed, counted.errors_total()), (70, 0));
    // Users 0, 3 and 6; 1 and 4; 2 and 5.
    assert_eq!(asked.each_ref().map(|count| count.load(Ordering::SeqCst)), [30, 20, 20]);
}

#[test]
fn another_think_time_counts_from_the_next_assignment_on() {
    let server = Server::answering(OK);
    let mut generator = Generator::start(&server.plan()).unwrap();
    let mut requests_with = |think: Option<Think>| {
        think.into_iter().for_each(|think| generator.set_think(think));
        generator.set_users(1).unwrap();
        let ticks = collect_until(&mut generator, 200_000, |counted| counted.completed > 0);
        (Counted::of(&ticks).completed, ticks.len() as u64 * SLICE_US)
    };
    requests_with(None);
    let (requests, elapsed_us) = requests_with(Some(Think::Constant(Duration::from_millis(20))));
    assert!((1..=elapsed_us / 20_000 + 2).contains(&requests), "{requests} in {elapsed_us} us");
    let (again, elapsed_us) = requests_with(None);
    assert!((1..=elapsed_us / 20_000 + 2).contains(&again), "it stays: {again} in {elapsed_us} us");
    assert_eq!(server.accepted(), 1, "the connection is kept");
}

/// The kernel repeats a handshake after 1 s, then after 2, 4 and 8 s more. A user who stays when others leave does not wait
/// for that.
#[test]
fn users_that_stay_when_others_leave_connect_anew() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _fills_the_queue = TcpStream::connect(address).unwrap();
    let mut generator = Generator::start(&plan(&format!("http://{address}/").parse().unwrap())).unwrap();
    generator.set_users(4).unwrap();
    generator.collect(1_500_000, &NEVER).unwrap();
    let waiting = connecting_to(address.port());
    assert_eq!(waiting.len(), 4, "{waiting:?}");

    rustix::net::listen(&listener, 128).unwrap();
    let server = Server::on(listener, |mut peer, _| {
        while peer.request().is_some() {
            peer.send(OK).unwrap();
        }
    });
    generator.set_users(1).unwrap();
    let mut completed = 0;
    while completed == 0 {
        completed = Counted::of(&generator.collect(20_000, &NEVER).unwrap()).completed;
    }
    assert_eq!(server.accepted(), 2, "of the four that waited none got through");
    assert_eq!(connecting_to(address.port()), [] as [u16; 0]);
    let uncertain: u64 = generator.finish().iter().map(|total| total.uncertain()).sum();
    assert!(uncertain <= 1, "{uncertain}: at most the request under way");
}

/// The ports from which somebody tries to connect to this port of this machine.
fn connecting_to(port: u16) -> Vec<u16> {
    const SYN_SENT: &str = "02";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port_of = |address: &str| u16::from_str_radix(address.rsplit(':').next().unwrap(), 16).unwrap();
    let from = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields[3] == SYN_SENT && port_of(fields[2]) == port).then(|| port_of(fields[1]))
    };
    table.lines().skip(1).filter_map(from).collect()
}
