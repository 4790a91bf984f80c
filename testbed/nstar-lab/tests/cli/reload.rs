//! What a running server reads or opens anew upon SIGHUP, what it says of the end of its certificate, and what it does when
//! its terminal goes away.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::rights::Manager;
use super::serve::{HEALTH, ask, eventually, listening};
use crate::common::support::{Place, Running};

/// What each system is served with.
const SYSTEMS: [&str; 6] = [
    "files --root shared --accounts none",
    "accounts --database a.db",
    "booking --database b.db",
    "index",
    "peer --share shared --index 127.0.0.1:9",
    "sink",
];
const DAY: u64 = 24 * 60 * 60;

fn serve(place: &Place, flags: &str) -> (Running, String) {
    let words = format!("serve {flags} --listen 127.0.0.1:0");
    let mut running = place.nstar(words.split_whitespace().map(String::from)).start();
    let address = listening(&mut running);
    (running, address)
}

/// Writes a certificate, which has been valid for 60 days, and its key.
fn certify(place: &Place, days_left: u64) {
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
    let at = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    (params.not_before, params.not_after) = (at(now - 60 * DAY), at(now + days_left * DAY + 60));
    let key = KeyPair::generate().expect("a key");
    place.write("cert.pem", params.self_signed(&key).expect("a certificate").pem());
    place.write("key.pem", key.serialize_pem());
}

#[test]
fn every_server_reloads_on_sighup_and_tells_the_manager_of_services() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    let manager = Manager::listen(&place);
    for system in SYSTEMS {
        let words = format!("serve {system} --listen 127.0.0.1:0");
        let mut server = place.wrapped(["env", &manager.socket], words.split(' ')).start();
        let address = listening(&mut server);
        assert!(manager.told().starts_with("READY=1\n"), "{system}");
        server.signal("HUP");
        let reloading = manager.told();
        let since =
            reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap_or_else(|| panic!("{reloading}"));
        assert!(since.trim_end().parse::<u64>().is_ok(), "{reloading}");
        let ready = manager.told();
        assert!(ready.starts_with("READY=1\n") && ready.contains("STATUS=listening on"), "{ready}");
        assert!(ask(&address, HEALTH).starts_with("HTTP/1.1 200"), "{system}");
        server.signal("TERM");
        assert_eq!(manager.told(), "STOPPING=1\n");
        server.finish().exits(0);
    }
}

#[test]
fn a_log_that_was_moved_away_is_opened_anew_in_every_process() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    for engine in ["epoll", "threads", "prefork --workers 2", "processes"] {
        let (server, address) = serve(
            &place,
            &format!("files --root shared --accounts none --access-log --log-file log --engine {engine}"),
        );
        let logs = |name: &str, path: &str| {
            let said = ask(
                &address,
                &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
            );
            assert!(said.starts_with("HTTP/1.1 "), "{engine}: {said}");
            let has = |name: &str| fs::read_to_string(place.path(name)).is_ok_and(|text| text.contains(path));
            eventually(&format!("{engine}: {name} has {path}"), || has(name));
        };
        logs("log", "/before");
        fs::rename(place.path("log"), place.path("log.1")).expect("moved");
        logs("log.1", "/moved");
        server.signal("HUP");
        eventually(&format!("{engine}: a new log"), || place.path("log").exists());
        (0..8).for_each(|request| logs("log", &format!("/after-{request}")));
        let old = fs::read_to_string(place.path("log.1")).expect("the old log");
        assert!(!old.contains("/after"), "{engine}: {old}");
        server.signal("TERM");
        let outcome = server.finish().exits(0);
        assert!(!outcome.stderr.contains("/before"), "{outcome}");
        ["log", "log.1"].into_iter().for_each(|name| fs::remove_file(place.path(name)).expect("a log"));
    }
    let refused = place.nstar(["serve", "sink", "--log-file", "none/log", "--listen", "127.0.0.1:0"]).run();
    refused.exits(2).complains("none/log cannot be opened");
}

#[test]
fn an_audit_file_that_was_moved_away_is_opened_anew_in_every_process() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    for engine in ["epoll", "threads", "prefork --workers 2", "processes"] {
        let (server, address) = serve(
            &place,
            &format!("files --root shared --accounts none --log-file log --audit audit --engine {engine}"),
        );
        let records = |name: &str, path: &str| {
            let head = format!("PUT /files/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n");
            let said = ask(&address, &format!("{head}Connection: close\r\n\r\n"));
            assert!(said.starts_with("HTTP/1.1 4"), "{engine}: {said}");
            let has = || fs::read_to_string(place.path(name)).is_ok_and(|text| text.contains(path));
            eventually(&format!("{engine}: {name} has {path}"), has);
        };
        records("audit", "before");
        for name in ["audit", "log"] {
            fs::rename(place.path(name), place.path(&format!("{name}.1"))).expect("moved");
        }
        records("audit.1", "moved");
        server.signal("HUP");
        eventually(&format!("{engine}: a new log"), || place.path("log").exists());
        (0..8).for_each(|request| records("audit", &format!("after-{request}")));
        server.signal("TERM");
        server.finish().exits(0);
        for name in ["audit", "audit.1", "log", "log.1"] {
            fs::remove_file(place.path(name)).expect("a file");
        }
    }
}

#[test]
fn a_log_is_not_among_the_files_that_are_served() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    for system in ["files --root shared --accounts none", "peer --share shared --index 127.0.0.1:9"] {
        let words = format!("serve {system} --log-file shared/log --listen 127.0.0.1:0");
        place.nstar(words.split(' ')).run().exits(2).complains("the log (--log-file)");
    }
}

#[test]
fn a_certificate_that_will_expire_is_told_before_and_no_more_once_it_is_renewed() {
    let place = Place::beside_others();
    certify(&place, 5);
    let flags = "sink --tls-cert cert.pem --tls-key key.pem";
    let (mut server, _) = serve(&place, flags);
    let said = server.wait_for_stderr("expires in 5 days");
    assert!(
        said.contains("the certificate in cert.pem expires in 5 days") && said.contains("renew it"),
        "{said}"
    );
    certify(&place, 400);
    server.signal("HUP");
    server.wait_for_stderr("was reloaded");
    certify(&place, 3);
    server.signal("HUP");
    server.wait_for_stderr("expires in 3 days");
    server.signal("TERM");
    let outcome = server.finish().exits(0);
    assert!(!outcome.stderr.contains("expires in 4"), "{outcome}");
    certify(&place, 400);
    let (server, _) = serve(&place, flags);
    server.signal("TERM");
    assert!(!server.finish().exits(0).stderr.contains("expires"));
}

/// Runs a command on a terminal of its own, and closes that once the command says that it listens. SIGHUP is not ignored, also
/// where these tests run under `nohup`.
const HANG_UP: &str = r#"
import os, pty, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
pid, master = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
while b"listening on" not in seen: seen += os.read(master, 4096)
os.close(master)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

#[test]
fn a_terminal_that_goes_away_ends_a_server_cleanly() {
    let place = Place::beside_others();
    let program = env!("CARGO_BIN_EXE_nstar-lab");
    let words = [
        "python3",
        "-c",
        HANG_UP,
        program,
        "serve",
        "accounts",
        "--database",
        "a.db",
        "--listen",
        "127.0.0.1:0",
    ];
    place.call(words).run().exits(0);
}
