//! Agents that do not start, lie, flood, stall or die: each is told, and a run that has begun goes on.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use super::warnings;
use crate::{
    common::support::{Place, Server, free_port, tool_program},
    experiment::wait_until,
};

/// Runs the agent that its second argument names, and after two seconds does what the first says.
const TURNS: &str = r#"
import os, subprocess, sys, threading, time
mode, program = sys.argv[1:]
agent = subprocess.Popen([program, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
turned = threading.Event()
def tell():
    while chunk := os.read(0, 65536):
        if not turned.is_set():
            agent.stdin.write(chunk)
            agent.stdin.flush()
    os._exit(0)
def hear():
    while chunk := os.read(agent.stdout.fileno(), 65536):
        if not turned.is_set(): os.write(1, chunk)
for work in tell, hear: threading.Thread(target=work, daemon=True).start()
time.sleep(2)
turned.set()
time.sleep(0.3)
agent.kill()
pong = b"\x08\0\0\0" + b"\x02" + b"\x03\0\0\0" + b"\x05\x01\x01"
def write(all):
    while all: all = all[os.write(1, all):]
if mode == "dies":
    print("the lights went out", file=sys.stderr, flush=True)
    os._exit(3)
if mode == "lies": write(b"\xff\xff\xff\x00" * 99)
if mode == "floods":
    while True: write(pong * 1000)
if mode == "half":
    write(b"\x64\0\0\0half")
    os._exit(0)
time.sleep(60)
"#;

/// Loads a local server for so long, with an agent that turns.
fn loaded(mode: &str, time: &str) -> Value {
    let place = Place::beside_sleepers();
    let server = Server::python_http();
    let script = place.write("turns.py", TURNS);
    let observe = format!("python3 {} {mode} {}", script.display(), tool_program().display());
    let load = ["load", &server.url("/"), "-c", "1", "-d", time, "-o", "run.json", "--observe", &observe];
    println!("{}", place.nstar(load).run().has_not_panicked().exits(0));
    place.run_file()
}

#[test]
fn an_agent_that_dies_is_told_with_its_last_words() {
    let run = loaded("dies", "4s");
    assert!(warnings(&run).contains("ended during the run with exit code 3"), "{}", warnings(&run));
    assert!(warnings(&run).contains("the lights went out"), "{}", warnings(&run));
}

#[test]
fn an_agent_that_sends_what_none_sends_is_not_listened_to() {
    assert!(warnings(&loaded("lies", "4s")).contains("\"malformed\""));
}

#[test]
fn an_agent_that_floods_is_not_listened_to() {
    assert!(warnings(&loaded("floods", "6s")).contains("\"flooded\""));
}

#[test]
fn half_a_message_is_the_end() {
    assert!(warnings(&loaded("half", "4s")).contains("\"ended\""));
}

#[test]
fn an_agent_that_stalls_is_told_and_not_waited_for() {
    assert!(warnings(&loaded("stalls", "7s")).contains("\"silent\""));
}

#[test]
fn a_command_that_cannot_be_an_agent_fails_before_the_load_with_what_it_said() {
    let place = Place::beside_others();
    // Nothing listens there: that is found out only after the agents have begun.
    let url = format!("http://127.0.0.1:{}/", free_port());
    let observe = |command: &str| place.nstar(["load", &url, "-d", "1s", "--observe", command]).run();
    observe("no-such-program x").exits(1).complains("cannot run `no-such-program`");
    let ended = observe("sh -c 'echo no such container: web >&2; exit 7'").exits(1);
    ended.complains("exit code 7").complains("no such container: web");
    observe("echo Welcome to web").exits(1).complains("came: Welcome to web");
    let other = observe("echo nstar-agent 0.0.9 protocol 0").exits(1);
    other.complains("0.0.9 (protocol 0)").complains(env!("CARGO_PKG_VERSION"));
    observe("true").exits(1).complains("ended with exit code 0");
}

/// A shell script that notes the number of its process in a file, and says nothing more.
fn silent(noted: &Path) -> String {
    let noted = noted.display();
    format!("echo $$ >{noted}.new; mv {noted}.new {noted}; exec sleep 600")
}

/// By a host that takes the connection and says nothing, and by a command that does.
#[test]
fn a_signal_while_an_agent_starts_ends_nstar_and_what_it_started() {
    let place = Place::beside_others();
    let noted = place.path("noted");
    // There is no connection to be closed.
    let closes = "case \" $* \" in *\" -O \"*) exit 0;; esac";
    let ssh = place.write("bin/ssh", format!("#!/bin/sh\n{closes}\n{}\n", silent(&noted)));
    fs::set_permissions(ssh, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("PATH={}:{path}", place.path("bin").display());
    let command = format!("sh -c '{}'", silent(&noted));
    let pairs = ["--observe", "--generator"].map(|flag| [(flag, "ssh://web"), (flag, command.as_str())]);
    for (flag, endpoint) in pairs.concat() {
        let load = ["load", "http://127.0.0.1:1/", "-d", "1s", flag, endpoint];
        let load = place.wrapped(["env", path.as_str()], load).start();
        wait_until("no agent was started", || noted.exists());
        let started = fs::read_to_string(&noted).expect("a number").trim().to_owned();
        fs::remove_file(&noted).expect("a file");
        load.signal("INT");
        load.finish().exits(130).complains("interrupted while agents were started");
        let gone = || fs::read(format!("/proc/{started}/cmdline")).unwrap_or_default().is_empty();
        wait_until("what was started goes on", gone);
    }
}

#[test]
fn a_command_line_that_names_nothing_to_observe_is_refused() {
    let place = Place::beside_others();
    let observe = |words: &[&str]| place.nstar([&["load", "http://127.0.0.1:1/"], words].concat()).run();
    observe(&["--observe", "sh -c 'x"]).exits(2).complains("quotation mark");
    observe(&["--observe", ""]).exits(2).complains("empty");
    observe(&["--observe", "ssh://"]).exits(2).complains("ssh://[USER@]HOST[:PORT]");
    observe(&["--observe", "ssh://-oProxyCommand=reboot"]).exits(2).complains("host");
    observe(&["--observe", "ssh://web:99999"]).exits(2).complains("port");
    observe(&["--sudo"]).exits(2).complains("--sudo goes with");
    observe(&["--observe", "true", "--sudo"]).exits(2).complains("--sudo goes with");
}

/// What an agent prints and how it ends, given this input.
fn agent(input: &[u8]) -> (Option<i32>, Vec<u8>, String) {
    let mut command = Command::new(tool_program());
    command.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("nstar");
    // An agent that has refused what it was sent reads no further.
    let _ = child.stdin.take().expect("stdin").write_all(input);
    let output = child.wait_with_output().expect("its end");
    (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_agent_greets_and_ends_with_its_input() {
    let (code, said, _) = agent(b"");
    assert_eq!(code, Some(0));
    assert!(said.starts_with(format!("nstar-agent {} protocol ", env!("CARGO_PKG_VERSION")).as_bytes()));
}

#[test]
fn an_agent_refuses_another_version_and_what_is_no_command() {
    let (code, _, said) = agent(b"nstar-agent 0.0.9 protocol 0\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("0.0.9 (protocol 0)") && said.contains(env!("CARGO_PKG_VERSION")), "{said}");
    let (_, greeting, _) = agent(b"");
    let end = greeting.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    let flood = [&greeting[..end], &[0xff; 100_000]].concat();
    let (code, _, said) = agent(&flood);
    assert!(code == Some(1) && said.contains("4194304 are allowed"), "{code:?} {said}");
}
