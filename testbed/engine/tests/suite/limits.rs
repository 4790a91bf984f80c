//! Limits, and errors that the peer did not cause.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use engine::{
    Counters, EngineError, Listeners, Model, Options, Server,
    service::{Connection, Factory},
};

use crate::{commands::Commands, common::*};

#[test]
fn connections_beyond_the_limit_wait_until_one_closes() {
    for model in models() {
        let counters = Arc::new(Counters::default());
        let limited = Options { max_connections: 3, counters: Arc::clone(&counters), ..options() };
        let server = start_with(model, &limited, Commands::new());
        // With half a request, none is idle; the first three send theirs before anybody waits.
        let mut clients: Vec<_> = (0..8).map(|_| connect_and_send(&server, b"number")).collect();
        eventually("the limit is met", || counters.limit_pauses() > 0 && counters.accepted() == 3);
        assert_eq!(counters.active(), 3, "{model}");
        for (number, client) in clients.iter_mut().enumerate() {
            client.write_all(format!(" {number}\n").as_bytes()).unwrap();
        }
        // Each is served as places become free, in whatever order they were accepted.
        thread::scope(|scope| {
            for (number, mut client) in clients.into_iter().enumerate() {
                scope
                    .spawn(move || assert_eq!(read_line(&mut client), format!("number {number}"), "{model}"));
            }
        });
        eventually("all are closed", || counters.closed() == 8);
        assert!(Arc::ptr_eq(&counters, server.counters()), "{model}");
    }
}

fn connect_and_send(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut client = connect(server);
    client.write_all(bytes).expect("sent");
    client
}

/// Idle connections held all places, and nobody else was served.
#[test]
fn idle_connections_end_for_clients_that_wait_and_none_at_work_does() {
    let by_limit = Options { max_connections: 3, loops: 1, ..options() };
    let by_workers = Options { workers: 3, ..options() };
    let with_workers = models().filter(|model| model.has_workers()).map(|model| (model, &by_workers));
    let all: Vec<_> = models().map(|model| (model, &by_limit)).chain(with_workers).collect();
    // Those that fork go one by one: until a new process has dropped what it inherited, it would hold the others' sockets.
    let (forking, others) = all.into_iter().partition::<Vec<_>, _>(|(model, _)| model.forks());
    thread::scope(|scope| {
        for (model, full) in others {
            scope.spawn(move || ends_idle_ones(model, full));
        }
    });
    forking.into_iter().for_each(|(model, full)| ends_idle_ones(model, full));
}

/// Three connections fill the server, and one of them is at work. Two more clients come.
fn ends_idle_ones(model: Model, full: &Options) {
    let server = start_with(model, &Options { counters: Arc::default(), ..full.clone() }, Commands::new());
    let mut answered = connect(&server);
    assert_eq!(ask(&mut answered, "hello you"), "hello you", "{model}");
    let mut working = connect(&server);
    working.write_all(b"half a").expect("sent");
    let mut silent = connect(&server);
    eventually("the server is full", || server.counters().active() == 3);
    let later: Vec<_> = (0..2)
        .map(|number| {
            let mut client = connect(&server);
            // With half of another request it is not idle.
            client.write_all(format!("number {number}\nhalf").as_bytes()).expect("sent");
            assert_eq!(read_line(&mut client), format!("number {number}"), "{model}");
            client
        })
        .collect();
    assert_eq!(rest(&mut answered), b"", "{model}");
    assert_eq!(rest(&mut silent), b"", "{model}");
    working.write_all(b" request\n").expect("sent");
    assert_eq!(read_line(&mut working), "half a request", "{model}");
    drop(later);
}

#[test]
fn the_connection_idle_longest_ends_first() {
    // Models that fork ask their processes in turn.
    thread::scope(|scope| {
        for model in models().filter(|model| !model.forks()) {
            scope.spawn(move || {
                let full = Options { max_connections: 2, loops: 1, counters: Arc::default(), ..options() };
                let server = start_with(model, &full, Commands::new());
                let [mut older, mut newer] = [(); 2].map(|()| {
                    let mut client = connect(&server);
                    assert_eq!(ask(&mut client, "hello you"), "hello you", "{model}");
                    thread::sleep(Duration::from_millis(300));
                    client
                });
                assert_eq!(ask(&mut older, "hello again"), "hello again", "{model}");
                assert_eq!(ask(&mut connect(&server), "hello too"), "hello too", "{model}");
                assert_eq!(rest(&mut newer), b"", "{model}");
                assert_eq!(ask(&mut older, "still here"), "still here", "{model}");
            });
        }
    });
}

#[test]
fn one_loop_makes_room_for_clients_of_another() {
    thread::scope(|scope| {
        for model in models().filter(|model| model.has_loops()) {
            scope.spawn(move || {
                let full = Options { max_connections: 6, loops: 2, counters: Arc::default(), ..options() };
                let server = start_with(model, &full, Commands::new());
                let idle: Vec<_> = (0..6).map(|_| connect(&server)).collect();
                eventually("the server is full", || server.counters().active() == 6);
                // With half of another request none of them is idle.
                let mut clients: Vec<_> =
                    (0..6).map(|_| connect_and_send(&server, b"hello you\nhalf")).collect();
                for client in &mut clients {
                    assert_eq!(read_line(client), "hello you", "{model}");
                }
                drop(idle);
            });
        }
    });
}

#[test]
fn a_client_gets_no_more_connections_than_its_share() {
    for model in models() {
        let counters = Arc::new(Counters::default());
        let limited =
            Options { max_connections_per_client: Some(2), counters: Arc::clone(&counters), ..options() };
        let server = start_with(model, &limited, Commands::new());
        let mut held: Vec<_> = (0..2).map(|_| connect(&server)).collect();
        for client in &mut held {
            assert_eq!(ask(client, "hello you"), "hello you", "{model}");
        }
        // Closed in order, or reset.
        assert!(matches!(connect(&server).read(&mut [0; 9]), Ok(0) | Err(_)), "{model}");
        eventually("it is counted", || counters.refused() == 1 && counters.active() == 2);
        assert_eq!(counters.accepted(), 2, "{model}");
        held.pop();
        eventually("there is room for another", || counters.closed() == 1);
        assert_eq!(ask(&mut connect(&server), "hello again"), "hello again", "{model}");
    }
}

#[test]
fn a_port_in_use_is_an_error_with_any_number_of_loops() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    for model in models() {
        for loops in [1, 2] {
            let busy = Options { loops, ..Options::new(holder.local_addr().unwrap()) };
            let error = engine::start(model, &busy, Same(Arc::new(Commands::new()))).unwrap_err();
            assert!(matches!(error, EngineError::AddressInUse { address } if address == busy.listen));
            // Two servers of one user do not share a port by accident either.
            let first = start(model, Commands::new());
            let again = Options { loops, ..Options::new(first.local_addr()) };
            let error = engine::start(model, &again, Same(Arc::new(Commands::new()))).unwrap_err();
            assert!(matches!(error, EngineError::AddressInUse { .. }), "{model}, {loops} loops: {error}");
        }
    }
}

#[test]
fn a_server_listens_on_sockets_that_were_bound_before_whatever_their_number() {
    for model in models() {
        for count in [1, 2] {
            let bound = Listeners::bind(options().listen, count).unwrap();
            let at = bound.address();
            assert!(TcpStream::connect(at).is_err(), "nobody is answered yet");
            let server = start_with(model, &Options { bound: Some(bound), ..options() }, Commands::new());
            assert_eq!(server.local_addr(), at);
            let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
            for client in &mut clients {
                assert_eq!(ask(client, "hello you"), "hello you", "{model}, {count}");
            }
            drop(server);
            is_left(model, at);
        }
    }
}

#[test]
fn sockets_that_another_model_listened_on_before_keep_no_client_waiting() {
    let models: Vec<_> = models().collect();
    // A port that was asked for by its number stays bound when a server that stops shuts its sockets down.
    let bound = bound_by_number(4);
    for loops in [4, 1, 2] {
        for &model in &models {
            let reused = Options { bound: Some(bound.clone()), loops, ..options() };
            let server = start_with(model, &reused, Commands::new());
            for _ in 0..8 {
                assert_eq!(ask(&mut connect(&server), "hello you"), "hello you", "{model}, {loops}");
            }
        }
    }
}

/// So many sockets at a port that was free a moment ago. A process that another test starts may hold a copy of the socket that
/// found it until it runs its program; then another port is tried.
fn bound_by_number(count: usize) -> Listeners {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let free = Listeners::bind(options().listen, 1).expect("a port").address();
        match Listeners::bind(free, count) {
            Err(EngineError::AddressInUse { .. }) if Instant::now() < deadline => {}
            bound => return bound.expect("sockets"),
        }
    }
}

#[test]
fn a_port_is_free_again_once_its_server_has_stopped() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut client = connect(&server);
        assert_eq!(ask(&mut client, "hello you"), "hello you");
        let again = Options { listen: server.local_addr(), ..options() };
        drop(server);
        let server = started_at(model, &again);
        assert_eq!(ask(&mut connect(&server), "hello again"), "hello again", "{model}");
    }
}

/// Starts a server at a port that was free a moment ago. The system may have given it to a client of another test meanwhile.
fn started_at(model: Model, options: &Options) -> Server {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match engine::start(model, options, Same(Arc::new(Commands::new()))) {
            Err(EngineError::AddressInUse { .. }) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(20));
            }
            started => return started.expect("the server starts"),
        }
    }
}

#[test]
fn an_address_of_another_host_is_an_error() {
    for model in models() {
        // 192.0.2.0/24 belongs to nobody: RFC 5737.
        let foreign = Options { listen: SocketAddr::from(([192, 0, 2, 1], 0)), ..options() };
        let error = engine::start(model, &foreign, Same(Arc::new(Commands::new()))).unwrap_err();
        assert!(matches!(error, EngineError::AddressNotOurs { .. }), "{model}: {error}");
    }
}

#[test]
fn a_panic_closes_its_connection_only() {
    for model in models() {
        let server = start(model, Commands::new());
        let (mut other, mut faulty) = (connect(&server), connect(&server));
        assert_eq!(ask(&mut other, "hello you"), "hello you", "{model}");
        faulty.write_all(b"panic\n").unwrap();
        assert_eq!(rest(&mut faulty), b"", "{model}");
        assert_eq!(ask(&mut other, "still here"), "still here", "{model}");
        assert_eq!(ask(&mut connect(&server), "hello new"), "hello new", "{model}");
        eventually("the panic is counted", || server.counters().panics() == 1);
    }
}

/// Cannot make its service.
struct Broken;

impl Factory for Broken {
    type Service<C: Connection> = Running<Commands>;

    fn make<C: Connection>(&self) -> io::Result<Running<Commands>> {
        Err(io::Error::other("the database is away"))
    }
}

#[test]
fn start_fails_if_no_service_can_be_made() {
    for model in models() {
        let error = engine::start(model, &options(), Broken).unwrap_err();
        assert_eq!(error.to_string(), "cannot start the service: the database is away", "{model}");
    }
}
