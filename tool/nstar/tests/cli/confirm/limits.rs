//! `--confirm` as root: a CPU quota and the rate of a link are lowered for a time, and are afterwards what they were.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::COMPUTES;
use crate::common::{
    support::{Cgroup, PATIENCE, Place, Running, Server, is_root_or_skip},
    verdict::{HTTP, is_said, named_by},
};
use crate::namespaces::{Apart, apart_or_skip, succeeds};

const SWEEP: [&str; 5] = ["-c", "1..16", "-d", "1s", "--confirm"];

/// A server that computes, in this cgroup.
fn limited(quota: &Cgroup) -> Server {
    quota.python(&format!("{HTTP}{COMPUTES}"))
}

/// Answers with 4 KB after 10 ms.
const BULKY: &str = r#"
def bulky(connection, before):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while read(connection):
            time.sleep(0.01)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n" + b"x" * 4096)
    except OSError: pass
    connection.close()
serve(bulky, None)
"#;

/// A server that sends through a token bucket of 8 Mb/s; `None` where there is none, which is said.
fn shaped_or_skip(test: &str, number: u8) -> Option<(Apart, Server)> {
    let apart = apart_or_skip(test, number)?;
    let name = &apart.name;
    let bucket = format!("dev {name}b root tbf rate 8mbit burst 16kb latency 2s");
    if !succeeds(&format!("tc -n {name} qdisc add {bucket}")) {
        eprintln!("SKIPPED {test}: it needs token buckets (tc-tbf)");
        return None;
    }
    let server = apart.serve(BULKY, &[]);
    Some((apart, server))
}

/// The queueing disciplines of the server's interface.
fn disciplines(apart: &Apart) -> String {
    let (name, interface) = (&apart.name, format!("{}b", apart.name));
    let shown = Command::new("tc").args(["-n", name, "qdisc", "show", "dev", &interface]).output();
    String::from_utf8(shown.expect("tc").stdout).expect("text")
}

/// What was slowed by these means: it is told as followed, as far as its interval says anything.
#[track_caller]
fn is_followed(run: &Value, by: &str) {
    let confirmation = &run["confirmation"];
    let tiers = confirmation["tiers"].as_array().expect("tiers");
    let tier = tiers.iter().find(|tier| tier["by"] == by);
    let tier = tier.unwrap_or_else(|| panic!("nothing was slowed by {by}: {confirmation}"));
    let number = |value: &Value| value.as_f64().expect("a number");
    let [low, high] = [0, 1].map(|end| number(&tier["elasticity_ci"][end]));
    // Beside other work the interval is wide; it is round 1 all the same.
    assert!(low < 1.3 && high > 0.7, "{confirmation}");
    assert!((number(&tier["stopped_share"]) - 0.1).abs() < 1e-3, "{confirmation}");
    if confirmation["answer"]["kind"] != "confirmed" {
        eprintln!("UNDECIDED: this machine was too busy to confirm it: {confirmation}");
    }
}

/// A process that traces another, as a debugger does.
struct Debugger(Child);

const TRACES: &str = "
import ctypes, sys, time
ptrace = ctypes.CDLL(None).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
PTRACE_SEIZE = 0x4206
if ptrace(PTRACE_SEIZE, int(sys.argv[1]), None, None) == 0: time.sleep(600)
";

impl Debugger {
    /// `None` where processes may not be traced.
    fn of(server: &Server) -> Option<Self> {
        let pid = server.pid().to_string();
        let mut command = Command::new("python3");
        command.args(["-c", TRACES, &pid]).stderr(Stdio::null());
        let mut debugger = Self(command.spawn().expect("python3"));
        let status = || fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        let holds = format!("TracerPid:\t{}\n", debugger.0.id());
        comes(|| status().contains(&holds) || !matches!(debugger.0.try_wait(), Ok(None)));
        status().contains(&holds).then_some(debugger)
    }
}

impl Drop for Debugger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether something comes about, sooner or later.
fn comes(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

#[test]
fn a_quota_is_confirmed_by_lowering_it_also_under_a_debugger() {
    let test = "a_quota_is_confirmed_by_lowering_it_also_under_a_debugger";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::new();
    let quota = Cgroup::of_a_core(0.3);
    let before = quota.text();
    let server = limited(&quota);
    let Some(_debugger) = Debugger::of(&server) else {
        eprintln!("SKIPPED {test}: it needs to trace a process");
        return;
    };
    let run = named_by(&place, 3, || place.sweep(&server, SWEEP));
    assert_eq!(quota.text(), before);
    let Some(run) = run.filter(|run| is_said(run, &["cpu-quota"])) else { return };
    is_followed(&run, "quota");
}

#[test]
fn a_link_is_confirmed_by_lowering_its_rate() {
    let test = "a_link_is_confirmed_by_lowering_its_rate";
    let place = Place::new();
    let Some((apart, server)) = shaped_or_skip(test, 3) else { return };
    let before = disciplines(&apart);
    let run = named_by(&place, 3, || place.sweep(&server, SWEEP));
    assert_eq!(disciplines(&apart), before);
    let Some(run) = run.filter(|run| is_said(run, &["network"])) else { return };
    is_followed(&run, "rate");
    let tiers = run["confirmation"]["tiers"].as_array().expect("tiers");
    let link = tiers.iter().find_map(|tier| tier["link"]["name"].as_str()).expect("a link");
    assert!(link.starts_with(&format!("{}b", apart.name)), "{link}");
}

/// Whether a limit is lower than it was before. For some seconds after nstar is stopped it stays so.
fn is_lower_while_stopped(running: &Running, limit: &impl Fn() -> String, before: &str) -> bool {
    if limit() == before {
        return false;
    }
    running.signal("STOP");
    let is_lower = limit() != before;
    if !is_lower {
        running.signal("CONT");
    }
    is_lower
}

/// nstar, stopped while a limit is lower than it was before; `None` where it lowered none, which is said.
fn stopped_while_lower(
    place: &Place,
    server: &Server,
    limit: &impl Fn() -> String,
    before: &str,
) -> Option<Running> {
    let url = server.url("/");
    for _ in 0..3 {
        let mut running = place.nstar(["sweep", &url].into_iter().chain(SWEEP)).start();
        let mut is_lower = false;
        if running.stderr_until("slowing").is_ok() {
            comes(|| {
                is_lower = is_lower_while_stopped(&running, limit, before);
                is_lower || !running.is_alive()
            });
        }
        if is_lower {
            return Some(running);
        }
        eprintln!("not yet: {}", running.finish());
    }
    eprintln!("UNDECIDED: this machine was too busy for a verdict that would be tested so");
    None
}

/// Kills nstar while a limit is lower, and sees that it is then what it was before.
fn is_put_back_after_a_kill(place: &Place, server: &Server, limit: impl Fn() -> String) {
    let before = limit();
    let Some(running) = stopped_while_lower(place, server, &limit, &before) else { return };
    running.signal("KILL");
    let outcome = running.finish();
    assert!(comes(|| limit() == before), "{} was {before}: {outcome}", limit());
}

#[test]
fn a_quota_is_put_back_where_nstar_is_killed() {
    if !is_root_or_skip("a_quota_is_put_back_where_nstar_is_killed") {
        return;
    }
    let place = Place::new();
    let quota = Cgroup::of_a_core(0.3);
    let server = limited(&quota);
    is_put_back_after_a_kill(&place, &server, || quota.text());
}

#[test]
fn a_quota_is_put_back_while_nstar_is_suspended() {
    if !is_root_or_skip("a_quota_is_put_back_while_nstar_is_suspended") {
        return;
    }
    let place = Place::new();
    let quota = Cgroup::of_a_core(0.3);
    let server = limited(&quota);
    let before = quota.text();
    let Some(running) = stopped_while_lower(&place, &server, &|| quota.text(), &before) else { return };
    assert!(comes(|| quota.text() == before), "{} was {before}", quota.text());
    running.signal("INT");
    running.signal("CONT");
    let outcome = running.finish();
    assert_eq!(quota.text(), before, "{outcome}");
}

#[test]
fn the_rate_of_a_link_is_put_back_where_nstar_is_killed() {
    let test = "the_rate_of_a_link_is_put_back_where_nstar_is_killed";
    let place = Place::new();
    let Some((apart, server)) = shaped_or_skip(test, 4) else { return };
    is_put_back_after_a_kill(&place, &server, || disciplines(&apart));
}
