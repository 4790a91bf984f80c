//! `nstar serve` and `nstar lab`: the systems, run as a user runs them.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use http_io::{
    Method,
    client::{self as asked, BlockingClient, ClientOptions, Trust},
};

use crate::common::support::{PATIENCE, Place, Running};

/// Asks a server how it is.
pub(crate) const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Waits until a condition holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < patience, "never came true: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for a server to print its address.
pub(crate) fn listening(running: &mut Running) -> String {
    running.listening()
}

/// Sends one request on a new connection. Returns the whole response.
pub(crate) fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: &str, path: &str, authorization: &str) -> String {
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}\r\n"),
    )
}

#[test]
fn open_files_are_served_until_told_to_stop() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    for engine in ["threads", "epoll"] {
        let (running, address) = open_files(&place, engine);
        let answer = get(&address, "/files/hello.txt", "");
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello, reader"),
            "{engine}: {answer}"
        );
        assert!(get(&address, "/files/none", "").starts_with("HTTP/1.1 404"));
        running.signal("TERM");
        running.finish().exits(0);
    }
}

/// Starts the file server on a folder of open files.
fn open_files(place: &Place, engine: &str) -> (Running, String) {
    let words = ["serve", "files", "--root", "shared", "--accounts", "none", "--listen", "127.0.0.1:0"];
    let mut running = place.nstar(words.into_iter().chain(["--engine", engine])).start();
    let address = listening(&mut running);
    (running, address)
}

#[test]
fn bad_requests_are_told_and_hold_up_nobody() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    let long = "a".repeat(100_000);
    let bad = [
        ("garbage\r\n\r\n".to_string(), "400"),
        ("GET /files/hello.txt HTTP/1.1\r\n\r\n".to_string(), "400"),
        ("GET / HTTP/3.7\r\nHost: localhost\r\n\r\n".to_string(), "505"),
        (format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"), "414"),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"), "431"),
        (
            "POST /files/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
                .to_string(),
            "400",
        ),
    ];
    for engine in ["threads", "epoll"] {
        let (running, address) = open_files(&place, engine);
        let slow: Vec<_> = (0..200)
            .map(|number| {
                let mut stream = TcpStream::connect(&address).expect("a connection");
                let sent = if number % 2 == 0 { &b""[..] } else { b"GET /files/hello.txt HT" };
                stream.write_all(sent).expect("sent");
                stream
            })
            .collect();
        for (request, status) in &bad {
            let answer = ask(&address, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{engine}, {status}: {answer}");
        }
        assert!(get(&address, "/files/hello.txt", "").ends_with("hello, reader"), "{engine}");
        drop(slow);
        running.signal("TERM");
        running.finish().exits(0);
    }
}

#[test]
fn a_low_soft_limit_on_descriptors_is_raised() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    let words = ["serve", "files", "--root", "shared", "--accounts", "none", "--listen", "127.0.0.1:0"];
    let mut running = place.wrapped(["sh", "-c", "ulimit -Sn 64; exec \"$@\"", "sh"], words).start();
    let address = listening(&mut running);
    let idle: Vec<_> = (0..200).map(|_| TcpStream::connect(&address).expect("a connection")).collect();
    assert!(get(&address, "/files/hello.txt", "").ends_with("hello, reader"));
    drop(idle);
    running.signal("TERM");
    running.finish().exits(0);
}

#[test]
fn both_tiers_make_an_account_and_let_its_owner_in() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    let mut accounts =
        place.nstar(["serve", "accounts", "--database", "a.db", "--listen", "127.0.0.1:0"]).start();
    let backend = format!("http://{}", listening(&mut accounts));
    let words = ["serve", "files", "--root", "shared", "--accounts", &backend, "--listen", "127.0.0.1:0"];
    let mut files = place.nstar(words).start();
    let address = listening(&mut files);

    let body = r#"{"name":"ada","password":"a long enough one"}"#;
    let new = format!(
        "POST /accounts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(ask(&address, &new).starts_with("HTTP/1.1 201"));
    assert!(ask(&address, &new).starts_with("HTTP/1.1 409"));
    assert!(get(&address, "/files/hello.txt", "").starts_with("HTTP/1.1 401"));
    // ada:a long enough one
    let basic = "Authorization: Basic YWRhOmEgbG9uZyBlbm91Z2ggb25l\r\n";
    assert!(get(&address, "/files/hello.txt", basic).ends_with("hello, reader"));

    accounts.signal("TERM");
    accounts.finish().exits(0);
    let wrong = "Authorization: Basic YWRhOm5vdCBpdA==\r\n";
    assert!(
        get(&address, "/files/hello.txt", wrong).starts_with("HTTP/1.1 503"),
        "the accounts server is away"
    );
    files.signal("TERM");
    files.finish().exits(0);
}

#[test]
fn what_cannot_be_served_is_told() {
    let place = Place::beside_others();
    let files = |root: &'static str, listen: &'static str| {
        let words =
            ["serve", "files", "--accounts", "none", "--root", root, "--listen", listen, "--user", "root"];
        place.nstar(words).run()
    };
    files("missing", "127.0.0.1:0").exits(1).complains("missing");
    files(".", "0.0.0.0:0").exits(2).complains("open-to-all");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    place
        .nstar(["serve", "accounts", "--database", "a.db", "--listen", &address])
        .run()
        .exits(1)
        .complains(&address);
}

#[test]
fn whoever_restarts_servers_can_ask_whether_one_is_up() {
    let place = Place::beside_others();
    let health = |url: &str| place.nstar(["lab", "health", url]).run();
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    place.write("cert.pem", pair.cert.pem());
    place.write("key.pem", pair.signing_key.serialize_pem());
    for (flags, said) in [("", "ok"), (" --tls-cert cert.pem --tls-key key.pem", "ok, over TLS")] {
        let words = format!("serve sink --listen 127.0.0.1:0{flags}");
        let mut running = place.nstar(words.split(' ').map(String::from)).start();
        let address = listening(&mut running);
        let outcome = health(&format!("http://{address}")).exits(0);
        assert!(outcome.stdout.starts_with(said), "{outcome}");
        running.signal("TERM");
        running.finish().exits(0);
        health(&format!("http://{address}")).exits(1).complains(&address);
    }
    health("https://127.0.0.1:8080").exits(2).complains("asked over http");
    health("http://127.0.0.1:8080/healthz").exits(2).complains("a path");
    let outcome = health("http://ann:opensesame@127.0.0.1:8080").exits(2);
    assert!(!outcome.stderr.contains("opensesame"), "{outcome}");
}

#[test]
fn mistakes_with_certificates_are_told_before_anything_is_served() {
    let place = Place::beside_others();
    let pair = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (one, other) = (pair(), pair());
    place.write("cert.pem", one.cert.pem());
    place.write("key.pem", one.signing_key.serialize_pem());
    place.write("other.pem", other.signing_key.serialize_pem());
    let serve = |system: &str, flags: &str| {
        let words = format!("serve {system} --listen 127.0.0.1:0 {flags}");
        place.nstar(words.split_whitespace().map(String::from)).run()
    };
    for (flags, said) in [
        ("--tls-cert cert.pem", "--tls-key FILE"),
        ("--tls-key key.pem", "--tls-cert FILE"),
        ("--tls-cert none.pem --tls-key key.pem", "none.pem cannot be read"),
        ("--tls-cert key.pem --tls-key key.pem", "no certificate in key.pem"),
        ("--tls-cert cert.pem --tls-key cert.pem", "no private key in cert.pem"),
        ("--tls-cert cert.pem --tls-key other.pem", "does not belong to"),
    ] {
        for system in ["accounts --database new.db", "booking --database new.db", "sink"] {
            let outcome = serve(system, flags).exits(2).complains(said);
            assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
        }
        assert!(!place.path("new.db").exists(), "nothing was made");
    }
    let flags = "--tls-cert cert.pem --tls-key key.pem --engine pool --overload 503";
    serve("sink", flags).exits(2).complains("plain HTTP");
}

#[test]
fn a_renewed_certificate_is_shown_without_a_restart() {
    let place = Place::beside_others();
    let renew = || {
        let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        place.write("cert.pem", pair.cert.pem());
        place.write("key.pem", pair.signing_key.serialize_pem());
    };
    for engine in ["epoll", "processes"] {
        renew();
        let words = format!(
            "serve sink --engine {engine} --tls-cert cert.pem --tls-key key.pem --listen 127.0.0.1:0"
        );
        let mut running = place.nstar(words.split_whitespace().map(String::from)).start();
        let address: SocketAddr = listening(&mut running).parse().expect("an address");
        // Clients that trust the certificate now in the file get a response.
        let is_answered = || {
            let peer = Trust::of_file(&place.path("cert.pem")).and_then(|trust| trust.peer("127.0.0.1"));
            let server = asked::Upstream::secure(address, peer.expect("a certificate"));
            BlockingClient::new(server, ClientOptions::default())
                .send(&asked::Request::new(Method::Get, "/"))
                .is_ok()
        };
        assert!(is_answered(), "{engine}");
        renew();
        let patience = Instant::now() + PATIENCE;
        while !is_answered() {
            assert!(Instant::now() < patience, "{engine}: it is shown no more");
            std::thread::sleep(Duration::from_millis(100));
        }
        running.wait_for_stderr("was reloaded");
    }
}

#[test]
fn secrets_that_would_cross_a_network_in_the_open_are_told() {
    let place = Place::beside_others();
    std::fs::create_dir(place.path("shared")).expect("a folder");
    for (system, listen, told) in [
        ("accounts --database a.db", "0.0.0.0:0", true),
        ("booking --database b.db", "[::]:0", true),
        ("files --root shared --accounts sqlite:a.db", "0.0.0.0:0", true),
        ("accounts --database a.db", "127.0.0.1:0", false),
        ("sink", "0.0.0.0:0", false),
    ] {
        let words = format!("serve {system} --listen {listen} --user root --until-stdin-closes");
        let outcome = place.nstar(words.split_whitespace().map(String::from)).run().exits(0);
        assert_eq!(outcome.stderr.contains("unencrypted"), told, "{outcome}");
    }
}

/// Off loopback, what lets strangers in or fills the disk must have been chosen, and is said.
#[test]
fn nothing_is_open_to_a_network_unless_somebody_chose_it() {
    let place = Place::beside_others();
    std::fs::create_dir(place.path("shared")).expect("a folder");
    let chosen = "--registration open --quota none --max-upload 2GiB";
    let files = "files --root shared --accounts sqlite:a.db";
    for (words, listen, told) in [
        (files.to_owned(), "0.0.0.0:0", [false; 3]),
        (format!("{files} {chosen}"), "0.0.0.0:0", [true; 3]),
        (format!("{files} {chosen}"), "127.0.0.1:0", [false; 3]),
        ("accounts --database a.db".to_owned(), "0.0.0.0:0", [false; 3]),
        ("accounts --database a.db --registration open".to_owned(), "[::]:0", [true, false, false]),
    ] {
        let words = format!("serve {words} --listen {listen} --user root --until-stdin-closes");
        let outcome = place.nstar(words.split_whitespace().map(String::from)).run().exits(0);
        let says =
            ["--registration open", "--quota none", "--max-upload"].map(|flag| outcome.stderr.contains(flag));
        assert_eq!(says, told, "{outcome}");
    }
    let words = format!("serve {files} --listen 0.0.0.0:0 --user root");
    let mut files = place.nstar(words.split_whitespace().map(String::from)).start();
    let address = listening(&mut files).replace("0.0.0.0", "127.0.0.1");
    let body = r#"{"name":"ann","password":"correct horse 1"}"#;
    let fields = "Host: x\r\nConnection: close\r\nContent-Type: application/json\r\n";
    let length = body.len();
    let said =
        ask(&address, &format!("POST /accounts HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{body}"));
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
}

/// It knows no users, and so has no limit for any.
#[test]
fn a_booking_server_that_others_can_reach_says_that_anybody_may_book() {
    let place = Place::beside_others();
    for (flags, told) in [
        ("--listen 127.0.0.1:0", false),
        ("--listen 0.0.0.0:0", true),
        ("--listen 127.0.0.1:0 --trusted-proxy 127.0.0.1", true),
    ] {
        let words = format!("serve booking --database b.db --user root --until-stdin-closes {flags}");
        let outcome = place.nstar(words.split(' ')).run().exits(0);
        assert_eq!(outcome.stderr.contains("anybody may book"), told, "{outcome}");
    }
}

/// Another site may point a name of its own to this machine: its page, in a browser here, would pass for the server's.
#[test]
fn servers_on_this_machine_answer_to_no_name_that_others_gave_them() {
    let place = Place::beside_others();
    let is_misdirected = |address: &str, path: &str, host: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        ask(address, &head).starts_with("HTTP/1.1 421")
    };
    for (system, path) in
        [("booking --database b.db", "/rooms"), ("accounts --database a.db", "/auth"), ("sink", "/upload")]
    {
        let words = format!("serve {system} --listen 127.0.0.1:0 --host-name ours.example");
        let mut running = place.nstar(words.split(' ')).start();
        let address = listening(&mut running);
        for host in ["localhost", address.as_str(), "ours.example:80"] {
            assert!(!is_misdirected(&address, path, host), "{system}: {host}");
        }
        assert!(is_misdirected(&address, path, "evil.example"), "{system}");
        assert!(!is_misdirected(&address, "/healthz", "evil.example"), "{system}: for monitoring");
        running.signal("TERM");
        running.finish().exits(0);
        let words = format!("serve {system} --listen 0.0.0.0:0 --user root");
        let mut running = place.nstar(words.split(' ')).start();
        let address = listening(&mut running).replace("0.0.0.0", "127.0.0.1");
        assert!(!is_misdirected(&address, path, "nstar.svc.cluster.local"), "{system}: others name it");
        running.signal("TERM");
        running.finish().exits(0);
    }
}

/// Another site makes a browser of this machine send an upload.
#[test]
fn a_sink_on_this_machine_takes_no_upload_that_another_site_sent() {
    let place = Place::beside_others();
    let mut running = place.nstar(["serve", "sink", "--listen", "127.0.0.1:0"]).start();
    let address = listening(&mut running);
    for (fields, status) in [("", 200), ("Origin: http://evil.example\r\n", 403)] {
        let head = "POST /upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3\r\n";
        let said = ask(&address, &format!("{head}{fields}\r\nabc"));
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{fields}: {said}");
    }
    running.signal("TERM");
    running.finish().exits(0);
}

/// Everybody on the network could read them.
#[test]
fn metrics_are_for_programs_on_this_machine_unless_all_may_see_them() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    for system in [
        "files --root shared --accounts none",
        "accounts",
        "booking",
        "index",
        "peer --share shared --index 127.0.0.1:9",
        "sink",
    ] {
        for (flag, status) in [("", "403"), (" --open-metrics", "200")] {
            let words = format!("serve {system} --listen 127.0.0.1:0{flag}");
            let mut running = place.nstar(words.split(' ')).start();
            let address = listening(&mut running);
            let here = get(&address, "/metrics", "");
            assert!(here.starts_with("HTTP/1.1 200"), "{words}: {here}");
            let passed_on = get(&address, "/metrics", "X-Forwarded-For: 127.0.0.1\r\n");
            assert!(passed_on.starts_with(&format!("HTTP/1.1 {status}")), "{words}: {passed_on}");
            running.signal("TERM");
            running.finish().exits(0);
        }
    }
}

/// Every server takes a file, and what it prints as its configuration is such a file.
#[test]
fn flags_of_every_server_may_stand_in_a_file() {
    let place = Place::beside_others();
    std::fs::create_dir(place.path("shared")).expect("a folder");
    let words = |words: &str| words.split_whitespace().map(String::from).collect::<Vec<_>>();
    let print = |flags: &str| {
        place.nstar(words(&format!("serve {flags} --print-config"))).run().exits(0).stdout.clone()
    };
    for system in
        ["files --root shared --accounts none", "accounts", "booking", "sink", "index", "peer --share shared"]
    {
        let first = print(&format!("{system} --max-connections 77"));
        assert!(first.contains("max-connections = \"77\"\n"), "{system}: {first}");
        place.write("server.toml", &first);
        let name = system.split(' ').next().unwrap_or_default();
        assert_eq!(print(&format!("{name} --config server.toml")), first, "{system}");
        assert!(print(&format!("{name} --config server.toml --max-connections 78")).contains("= \"78\"\n"));
    }
    place.write("files.toml", "root = 'shared'\naccounts = 'none'\nlisten = '127.0.0.1:0'\nengin = 'poll'\n");
    let serve = words("serve files --config files.toml");
    place
        .nstar(serve.clone())
        .run()
        .exits(2)
        .complains("files.toml:4: unknown flag `engin`, did you mean `engine`?");
    place
        .write("files.toml", "root = 'shared'\naccounts = 'none'\nlisten = '127.0.0.1:0'\nengine = 'poll'\n");
    place.write("shared/hello.txt", "hello");
    let mut running = place.nstar(serve).start();
    let address = listening(&mut running);
    assert!(get(&address, "/files/hello.txt", "").ends_with("hello"));
    running.signal("TERM");
    running.finish().exits(0);
}

#[test]
fn a_room_is_booked_once_and_outlives_the_server() {
    let place = Place::beside_others();
    let words = [
        "serve",
        "booking",
        "--database",
        "b.db",
        "--rooms",
        "1",
        "--allow-test-ids",
        "--listen",
        "127.0.0.1:0",
    ];
    let date = Command::new("date").args(["--date", "+30 days", "+%F"]).output().expect("date(1)").stdout;
    let date = String::from_utf8(date).expect("a date");
    let body = format!(r#"{{"room":1,"date":"{}","name":"Ada","aadhaar":"100000000004"}}"#, date.trim());
    let head = format!(
        "POST /bookings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    for status in ["201", "409"] {
        let mut running = place.nstar(words).start();
        let answer = ask(&listening(&mut running), &format!("{head}{body}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        running.signal("TERM");
        running.finish().exits(0);
    }
    place.nstar(["serve", "booking", "--database", "oracle://x/y"]).run().exits(2).complains("sqlite:PATH");
    place.nstar(["serve", "booking", "--database", "no/such.db"]).run().exits(1).complains("mkdir -p");
}

#[test]
fn a_server_ends_when_the_program_that_started_it_is_gone() {
    let place = Place::beside_others();
    let words =
        ["serve", "accounts", "--database", "a.db", "--listen", "127.0.0.1:0", "--until-stdin-closes"];
    // Its stdin is empty from the start.
    place.nstar(words).run().exits(0);
}

#[test]
fn the_lab_starts_both_tiers_sweeps_them_and_reports() {
    let place = Place::new();
    let outcome = place.nstar(["lab", "-c", "1,2,4", "-d", "1s"]).run();
    let run = place.run_file();
    assert_eq!(run["steps"].as_array().expect("steps").len(), 3, "{outcome}");
    assert_eq!(run["steps"][2]["errors"].as_object().expect("errors").len(), 0, "{outcome}");
    let holders = run["steps"][2]["resources"].to_string();
    assert!(holders.contains("nstar-files"), "{outcome}");
    assert!(std::fs::metadata(place.path("report.html")).is_ok());
    assert!(!outcome.stderr.contains("panicked"), "{outcome}");
}

#[test]
fn the_lab_lists_its_experiments_and_refuses_others() {
    let place = Place::beside_others();
    place.nstar(["lab", "--list"]).run().exits(0).says("files-same").says("accounts-new");
    place.nstar(["lab", "flies-same"]).run().exits(2).complains("files-same");
}

#[test]
fn a_run_file_is_shown_again_in_every_form() {
    let place = Place::beside_others();
    place.nstar(["lab", "-c", "1,2", "-d", "1s", "-o", "mine.json"]).run();
    let report = |format| place.nstar(["report", "mine.json", "--format", format]).run().exits(0);
    report("text").says("req/s");
    report("csv").says("users");
    report("json").says("nstar.run/1");
    report("html").says("</html>");
    assert!(std::fs::metadata(place.path("mine.html")).is_ok());
    place.write("not.json", "{}");
    place.nstar(["report", "not.json"]).run().exits(2).complains("not.json");
}

#[test]
fn an_access_log_tells_the_client_behind_a_proxy() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    for system in ["files --root shared --accounts none", "booking", "accounts"] {
        let flags = "--access-log --trusted-proxy 127.0.0.1 --user root --open-metrics";
        let words = format!("serve {system} --listen 127.0.0.1:0 {flags}");
        let mut running = place.nstar(words.split(' ')).start();
        let address = listening(&mut running);
        get(&address, "/healthz", "X-Forwarded-For: 203.0.113.7\r\n");
        let behind = running.wait_for_stderr("/healthz");
        assert!(behind.contains("client=203.0.113.7") && behind.contains("peer=127.0.0.1:"), "{behind}");
        get(&address, "/metrics", "");
        let itself = running.wait_for_stderr("/metrics");
        assert!(!itself.lines().last().unwrap().contains("client="), "{itself}");
        running.signal("TERM");
        running.finish().exits(0);
    }
}
