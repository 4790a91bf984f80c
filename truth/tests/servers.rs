//! The servers of cases start, answer, and take as long for one request as their stages say.

use std::{
    env,
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use truth::{
    case::{self, Case},
    queueing::Network,
    run::Servers,
};

/// Stacks that the tests of the workspace install.
const CASES: [&str; 4] = ["pool", "python-lock", "pool-behind-nginx", "php-fpm"];

fn case(name: &str) -> Case {
    case::all().expect("the list").into_iter().find(|case| case.name == name).expect(name)
}

/// The whole response to one request, and how long it took.
fn get(url: &str) -> (String, Duration) {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").expect("a request");
    let mut response = vec![0; 12];
    stream.read_exact(&mut response).expect("a response");
    (String::from_utf8_lossy(&response).into_owned(), begin.elapsed())
}

#[test]
fn a_request_takes_no_less_than_its_stages() {
    for case in CASES.map(case) {
        let servers = match Servers::start(&case) {
            Ok(servers) => servers,
            Err(trouble) if trouble.is_lack() && env::var_os("CI").is_none() => {
                eprintln!("SKIPPED {}: {trouble}", case.name);
                continue;
            }
            Err(trouble) => panic!("{}: {trouble}", case.name),
        };
        let network = Network::of(&case.tiers, 2).expect("an exact answer");
        let least = Duration::from_secs_f64(1.0 / network.throughput(1));
        let (response, took) = get(servers.url());
        assert_eq!(response, "HTTP/1.1 200", "{}", case.name);
        // Clocks of other languages count in whole microseconds.
        assert!(took + Duration::from_micros(10) >= least, "{}: {took:?}, not {least:?}", case.name);
    }
}

#[test]
fn servers_end_with_their_case() {
    let servers = Servers::start(&case("pool")).expect("the suite's own server");
    let address = servers.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert!(TcpStream::connect(&address).is_ok());
    drop(servers);
    // What a server has started may end a moment after it.
    let give_up = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(&address).is_ok() {
        assert!(Instant::now() < give_up, "something still listens on {address}");
        thread::sleep(Duration::from_millis(10));
    }
}
