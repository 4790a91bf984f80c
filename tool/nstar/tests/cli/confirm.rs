//! `--confirm`: the verdict tested by slowing each tier in turn.

mod limits;

use std::fs;

use serde_json::Value;

use crate::common::{
    support::{Place, Server},
    verdict::{HTTP, kind},
};

/// Computes for 3 ms of CPU time before each answer, one request at a time.
const COMPUTES: &str = r#"
def work():
    until = time.thread_time() + 0.003
    while time.thread_time() < until: pass
turn = threading.Lock()
def one_at_a_time():
    with turn: work()
serve(keep, one_at_a_time)
"#;

/// Passes each request on over a connection of its own user, and adds next to nothing.
const FORWARDS: &str = r#"
local = threading.local()
def forward():
    if not hasattr(local, "back"): local.back = socket.create_connection(("127.0.0.1", BACK))
    local.back.sendall(b"GET / HTTP/1.1\r\n\r\n")
    local.back.recv(4096)
serve(keep, forward)
"#;

fn front_of(back: &Server) -> Server {
    Server::python(&format!("{HTTP}BACK = {}\n{FORWARDS}", back.address.port()))
}

fn goes_on(server: &Server) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("a process");
    !stat.rsplit_once(") ").expect("a state").1.starts_with('T')
}

fn elasticity(run: &Value, role: &str) -> Option<f64> {
    let tiers = run["confirmation"]["tiers"].as_array()?;
    let of_role = tiers.iter().find(|tier| tier["processes"]["role"] == role)?;
    assert_eq!(of_role["by"], "stopping", "{of_role}");
    of_role["elasticity"].as_f64()
}

#[test]
fn throughput_follows_the_tier_that_requests_queue_at() {
    let place = Place::new();
    let back = Server::python(&format!("{HTTP}{COMPUTES}"));
    let front = front_of(&back);
    for _ in 0..3 {
        let outcome = place.sweep(&front, ["-c", "1..16", "-d", "1s", "--confirm"]);
        assert!(goes_on(&front) && goes_on(&back), "{outcome}");
        let run = place.run_file();
        let Some((ahead, behind)) = elasticity(&run, "server").zip(elasticity(&run, "downstream")) else {
            eprintln!("not yet: {}", run["confirmation"]);
            continue;
        };
        // Where the machine is busy the intervals are wide; whatever is said holds. `sweep::confirm` tests in virtual time that
        // intervals do name a tier.
        let said = run["confirmation"]["answer"]["kind"].as_str().expect("an answer");
        if ["confirmed", "found", "elsewhere"].contains(&said) {
            assert!(behind > ahead, "{outcome}");
            outcome.says("Tested by experiment");
            return;
        }
        eprintln!("not yet: {}", run["confirmation"]);
    }
    eprintln!("UNDECIDED: this machine was too busy to tell which tier throughput follows");
}

#[test]
fn an_interrupted_test_lets_everything_go_on() {
    let place = Place::new();
    let back = Server::python(&format!("{HTTP}{COMPUTES}"));
    let front = front_of(&back);
    let command = place.nstar(["sweep", &front.url("/"), "-c", "1,2,4,8", "-d", "1s", "--confirm"]);
    // Beside other work a sweep may find no knee, and then tests nothing.
    let mut untested = Vec::new();
    let begun = (0..6).find_map(|_| {
        let mut running = command.start();
        if running.stderr_until("slowing").is_ok() {
            return Some(running);
        }
        let outcome = running.finish();
        if outcome.status.code() != Some(4) && kind(&place.run_file()) != "unknown" {
            untested.push(outcome.to_string());
        }
        None
    });
    let Some(running) = begun else {
        assert!(untested.is_empty(), "a verdict to test: {untested:?}");
        eprintln!("UNDECIDED: this machine was too busy for a verdict to test, and every answer said so");
        return;
    };
    running.signal("INT");
    let outcome = running.finish();
    assert_eq!(outcome.status.code(), Some(130), "{outcome}");
    assert!(goes_on(&front) && goes_on(&back), "{outcome}");
    assert!(place.run_file()["confirmation"].is_object(), "{outcome}");
}
