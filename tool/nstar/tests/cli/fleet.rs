//! Fleets that meet on a real NATS server.

mod experiments;
mod restarts;
mod secure;

use std::{
    fs,
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::generators::{COUNTING, UNIQUE, completed, generators, measured, seen, sum};
use super::observe::far::{HIDDEN, Network, nstar_is_hidden_or_skip};
use crate::common::support::{
    Outcome, PATIENCE, Place, Running, Server, free_port, is_root_or_skip, tool_program,
};

/// A NATS server, stopped when dropped.
struct Bus {
    port: u16,
    flags: Vec<String>,
    child: Child,
}

impl Bus {
    /// `None` where it is not installed, which under CI it must be.
    fn start(flags: &[&str]) -> Option<Self> {
        let (port, flags) = (free_port(), flags.iter().copied().map(str::to_owned).collect::<Vec<_>>());
        let child = Self::run(port, &flags);
        if child.is_none() {
            assert!(std::env::var_os("CI").is_none(), "nats-server is needed: make setup");
            eprintln!("SKIPPED: nats-server is not installed");
        }
        Some(Self { port, flags, child: child? })
    }

    fn run(port: u16, flags: &[String]) -> Option<Child> {
        let mut command = Command::new("nats-server");
        command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
        command.args(["-a", "0.0.0.0", "-p", &port.to_string()]).args(flags);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "it does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Some(child)
    }

    fn stop(&mut self) {
        self.child.kill().expect("a process");
        self.child.wait().expect("a process");
    }

    fn start_again(&mut self) {
        self.child = Self::run(self.port, &self.flags).expect("nats-server");
    }

    fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A machine that joined.
fn member(place: &Place, url: &str, more: &[&str]) -> Running {
    let mut member = place.nstar(["agent", "--join", url].iter().chain(more)).start();
    member.wait_for_stderr("joined the fleet");
    member
}

/// Loads a server that counts, with a fleet of so many.
fn load(place: &Place, server: &Server, fleet: (&str, &str), more: &[&str]) -> crate::common::support::Nstar {
    let scenario = place.write("unique.toml", UNIQUE).display().to_string();
    let base = server.url("");
    let words =
        ["load", &scenario, "--base", &base, "-o", "run.json", "--fleet", fleet.0, "--members", fleet.1];
    place.nstar(words.iter().chain(more))
}

fn lost(run: &Value) -> Value {
    let warnings = run["warnings"].as_array().expect("warnings");
    let lost = warnings.iter().find(|one| one["kind"] == "generators");
    lost.expect("a warning")["cause"]["trouble"].clone()
}

#[test]
fn what_three_members_in_namespaces_count_is_what_the_server_saw() {
    let test = "what_three_members_in_namespaces_count_is_what_the_server_saw";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(bus) = Bus::start(&[]) else { return };
    let networks: Vec<_> = (0..3).map_while(|_| Network::make()).collect();
    let [_, _, _] = &networks[..] else { return };
    let program = tool_program().display().to_string();
    let members = networks.iter().map(|network| {
        let [a, b, c, _] = network.address;
        let (url, name) = (format!("nats://{a}.{b}.{c}.1:{}", bus.port), &network.name);
        let script = format!("hostname {name}; exec ip netns exec {name} {program} agent --join {url}");
        let mut member = place.call(["unshare", "--uts", "sh", "-c", &script]).start();
        member.wait_for_stderr("joined the fleet");
        member
    });
    let _members: Vec<_> = members.collect();
    // Everybody reaches the server through an address of this side of a link.
    let mut command = Command::new("python3");
    let port = free_port();
    command.args(["-c", &COUNTING.replace("127.0.0.1", "0.0.0.0"), &port.to_string()]);
    let server = Server::at(([127, 0, 0, 1], port).into(), command);
    let routes = networks.iter().skip(1).all(|network| {
        let [a, b, c, _] = network.address;
        let [x, y, z, _] = networks[0].address;
        let route = format!("ip -n {} route add {x}.{y}.{z}.1/32 via {a}.{b}.{c}.1", network.name);
        super::observe::far::succeeds(&route.split(' ').collect::<Vec<_>>())
    });
    assert!(routes, "no routes");
    let [x, y, z, _] = networks[0].address;
    let target = format!("http://{x}.{y}.{z}.1:{port}");
    let scenario = place.write("unique.toml", UNIQUE).display().to_string();
    let mut before = 0;
    // The second begins as soon as the first has ended: all are free again by then.
    for (stop, made) in [(["-n", "30"], 210), (["--total", "151"], 151)] {
        let url = bus.url();
        let words = ["load", &scenario, "--base", &target, "-c", "7", "-o", "run.json", "--fleet", &url];
        println!("{}", place.nstar(words.iter().chain(&["--members", "3"]).chain(&stop)).run().exits(0));
        let run = place.run_file();
        assert_eq!(completed(&run), made, "{}", run["requests"]);
        let (saw, step) = (seen(&server), &run["steps"][0]);
        let all = saw.values().sum::<u64>();
        assert_eq!(all - before, made + 3, "and one first request of each generator: {saw:?}");
        before = all;
        assert_eq!((sum(step, "users"), sum(step, "completed")), (7, measured(&run)), "{step}");
        let names: Vec<_> = generators(&run["load"]).iter().filter_map(|one| one["name"].as_str()).collect();
        assert!(networks.iter().all(|network| names.contains(&&*network.name)), "{names:?}");
    }
}

/// nstar and one of the members see no process of the server, and only of that nobody complains.
#[test]
fn members_that_observe_name_the_server_and_those_elsewhere_are_no_trouble() {
    let test = "members_that_observe_name_the_server_and_those_elsewhere_are_no_trouble";
    if !is_root_or_skip(test) || !nstar_is_hidden_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(bus) = Bus::start(&[]) else { return };
    let server = Server::python(COUNTING);
    let (url, target) = (bus.url(), server.url("/"));
    let join = ["agent", "--observe", "--join", &url];
    let observers = [&[][..], &HIDDEN].map(|wrapper: &[&str]| {
        let mut observer = place.wrapped(wrapper.iter().copied(), join).start();
        observer.wait_for_stderr("to observe");
        observer
    });
    let load = |more: &[&str]| {
        let words = ["load", &target, "-d", "2s", "-o", "run.json", "--fleet", &url];
        place.wrapped(HIDDEN, words.iter().chain(more)).run()
    };
    println!("{}", load(&["--generator", "here"]).exits(0));
    let run = place.run_file();
    let resources = run["steps"][0]["resources"].to_string();
    assert!(resources.contains(&format!("(pid {})", server.pid())), "{resources}");
    assert!(!run["warnings"].to_string().contains("agent-trouble"), "{}", run["warnings"]);
    load(&[]).exits(1).complains("only observe").complains("--generator here");
    drop(observers);
}

#[test]
fn a_fleet_that_has_a_run_refuses_another_and_goes_on_without_a_member_that_is_killed() {
    let place = Place::beside_sleepers();
    let Some(bus) = Bus::start(&[]) else { return };
    let gate = place.path("gate");
    let port = free_port();
    let mut command = Command::new("python3");
    command.args(["-c", COUNTING, &port.to_string()]).arg(&gate);
    let server = Server::at(([127, 0, 0, 1], port).into(), command);
    let url = bus.url();
    let (victim, _other) = (member(&place, &url, &[]), member(&place, &url, &[]));
    let running = load(&place, &server, (&url, "2"), &["-c", "4", "-n", "100"]).start();
    let deadline = Instant::now() + PATIENCE;
    while seen(&server).values().sum::<u64>() <= 50 {
        assert!(Instant::now() < deadline, "no load came");
        thread::sleep(Duration::from_millis(20));
    }
    let target = server.url("/");
    // On a busy machine a member may be late to answer that it is there.
    let second = || place.nstar(["load", &target, "-d", "1s", "--fleet", &url]).run();
    let told = (0..4).map(|_| second()).find(|outcome| outcome.stderr.contains("runs on 2"));
    told.unwrap_or_else(second).exits(1).complains("another run has it").complains("runs on 2");
    victim.signal("KILL");
    fs::write(&gate, "").expect("a file");
    let outcome = running.finish().has_not_panicked();
    println!("{outcome}");
    outcome.exits(0);
    let run = place.run_file();
    let (step, trouble) = (&run["steps"][0], lost(&run));
    assert_eq!((generators(step).len(), sum(step, "users")), (1, 4), "{step}");
    assert_eq!((&trouble["kind"], &trouble["loss"]["kind"]), (&"lost".into(), &"silent".into()), "{trouble}");
}

#[test]
fn what_is_no_fleet_fails_before_the_load_and_no_password_is_told() {
    let place = Place::beside_others();
    let Some(bus) = Bus::start(&["--user", "ann", "--pass", "opensesame"]) else { return };
    let run = |words: &[&str]| -> Outcome {
        let outcome = place.nstar(words).run();
        assert!(!outcome.stderr.contains("sesame") && !outcome.stdout.contains("sesame"), "{outcome}");
        outcome
    };
    let with = |fleet: &str, more: &[&str]| {
        run(&[&["load", "http://127.0.0.1:9/", "-d", "1s", "--fleet", fleet][..], more].concat())
    };
    let at = |login: &str| format!("nats://{login}127.0.0.1:{}", bus.port);
    let none = format!("nats://ann:sesame@127.0.0.1:{}", free_port());
    with(&none, &[]).exits(1).complains("--fleet: the bus").complains("cannot be reached");
    with(&at("ann:sesame@"), &[]).exits(1).complains("does not let this user in");
    with(&at("ann:opensesame@"), &[]).exits(1).complains("nobody joined").complains("--nats-password-file");
    with("http://sesame@bus", &[]).exits(2).complains("--fleet: expected nats://");
    let password = place.write("password", "opensesame\n").display().to_string();
    let file = ["--nats-password-file", &*password];
    with(&at("ann@"), &file).exits(1).complains("nobody joined");
    with(&at("ann:sesame@"), &file).exits(2).complains("leave out one of them");
    run(&["load", "http://127.0.0.1:9/", file[0], file[1]]).exits(2).complains("goes with --fleet");
    run(&["load", "http://127.0.0.1:9/", "--members", "2"]).exits(2).complains("--fleet");
    run(&["agent", "--join", &at("ann:sesame@")]).exits(1).complains("does not let this user in");
    run(&["agent", file[0], file[1]]).exits(2).complains("goes with --join");
}
