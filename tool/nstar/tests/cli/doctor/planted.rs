//! Faults that are planted on a kernel, each alone: it is found while it is there, no other of them is, and none before and after.
//!
//! What is changed is a network namespace of the test's own, cgroups of its own, or a process of its own: nothing of the machine.

use std::{fs, process::Command, sync::LazyLock};

use serde_json::Value;

use super::findings;
use crate::common::{
    support::{
        Cgroup, Limit, Place, Server, free_port, has_two_cores_or_skip, is_root_or_skip, tool_program,
    },
    verdict::{HTTP, SHORT_QUEUE},
};
use crate::observe::far::{Daemon, Network, succeeds};

/// Settings of a network namespace with which none of these faults is there.
const HEALTHY: [(&str, &str); 4] = [
    ("core/somaxconn", "4096"),
    ("ipv4/tcp_max_syn_backlog", "1024"),
    ("ipv4/ip_local_port_range", "32768 60999"),
    // Kernels with little memory keep fewer connections that have ended than are planted here.
    ("ipv4/tcp_max_tw_buckets", "16384"),
];

/// Listens with room for 1 024.
const HEALTHY_SERVER: &str = "serve(keep, lambda: None)";

/// Keeps 82 MiB, and serves.
const KEEPS_MUCH: &str = "kept = b'x' * (82 << 20)\nserve(keep, lambda: None)";

/// Opens 6 000 connections and closes each from the side that opened it, which holds its port for a minute then.
const HOLDS_PORTS: &str = r#"
import socket
listener = socket.create_server(("127.0.0.1", 0), backlog=16)
for _ in range(6000):
    caller = socket.create_connection(listener.getsockname())
    answerer, _ = listener.accept()
    caller.close()
    answerer.close()
"#;

/// The first two processors that this process may use: the server's, and the generator's.
static PROCESSORS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let status = fs::read_to_string("/proc/self/status").expect("what this process may use");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let numbers = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let [first, last] = [first, last].map(|number| number.parse::<u32>().expect("a processor"));
        first..=last
    };
    let mut all = list.expect("a list of processors").trim().split(',').flat_map(numbers);
    [(); 2].map(|()| all.next().expect("two processors").to_string())
});

/// A server on the first processor, in a network namespace of its own, without any of these faults.
struct Bench {
    server: Server,
    network: Network,
    place: Place,
}

/// What doctor looks at: a server, for a generator on these processors, beside a process that is at work.
#[derive(Clone, Copy)]
struct Look<'a> {
    server: &'a Server,
    cpus: &'a str,
    neighbour: Option<u32>,
}

impl Look<'_> {
    /// Whether this is one of the faults that are planted here. Others of the host, and of processes that are not looked at, are
    /// not the test's doing.
    fn is_about(&self, fault: &Value) -> bool {
        let of_server = |fault: &Value| fault["of"]["pid"] == self.server.pid();
        match kind(fault) {
            "listen-queue" | "syn-queue" | "few-ports" | "time-wait" | "backlog" | "shared-processors"
            | "debug-server" => true,
            "open-files" => of_server(fault),
            "quota" => of_server(fault) && fault["cores"] == 0.3,
            "memory" => of_server(fault) && fault["memory"]["most_bytes"] == MEMORY_BYTES,
            "neighbour" => self.neighbour.is_some_and(|pid| fault["pid"] == pid),
            _ => false,
        }
    }
}

fn kind(fault: &Value) -> &str {
    fault["kind"].as_str().expect("a kind")
}

/// The kinds of faults that are found.
type Kinds = Vec<String>;

impl Bench {
    /// `None` where the kernel has no such namespaces; then it says so.
    fn make() -> Option<Self> {
        let (place, network) = (Place::new(), Network::make()?);
        if !HEALTHY.iter().all(|(name, value)| set(&network, name, value)) {
            eprintln!("SKIPPED: settings of a network namespace cannot be changed here");
            return None;
        }
        let server = serve(&network, HEALTHY_SERVER, &[], "python3");
        Some(Self { server, network, place })
    }

    /// The server as it is, and a generator on the other processor.
    fn healthy(&self) -> Look<'_> {
        Look { server: &self.server, cpus: &PROCESSORS[1], neighbour: None }
    }

    /// What doctor finds of the faults that are planted here.
    fn found(&self, look: Look<'_>) -> Kinds {
        let (entrance, url) = (entrance(&self.network), look.server.url("/"));
        let nstar = tool_program().display().to_string();
        let words = ["nsenter", &entrance, &nstar, "doctor", &url, "--cpus", look.cpus, "--json"];
        let outcome = self.place.call(words).run().has_not_panicked();
        println!("{outcome}");
        let findings = findings(&outcome);
        let faults = findings.iter().map(|finding| &finding["fault"]);
        faults.filter(|fault| look.is_about(fault)).map(|fault| kind(fault).to_owned()).collect()
    }

    /// The same of another server.
    fn found_of(&self, server: &Server) -> Kinds {
        self.found(Look { server, ..self.healthy() })
    }

    /// The same while a setting has this value.
    fn found_with(&self, name: &str, value: &str) -> Kinds {
        assert!(set(&self.network, name, value), "{name} cannot be set to {value}");
        let found = self.found(self.healthy());
        let healthy = HEALTHY.iter().find(|(of, _)| *of == name).map(|(_, healthy)| *healthy);
        assert!(set(&self.network, name, healthy.expect("a healthy value")), "{name} cannot be set back");
        found
    }

    /// Lets the server open so many files.
    fn limit_files(&self, limit: u32) {
        let (pid, limit) = (self.server.pid().to_string(), format!("--nofile={limit}:"));
        assert!(succeeds(&["prlimit", "--pid", &pid, &limit]), "{limit}");
    }
}

/// Enters a network namespace and no other: control groups and `/sys` stay those of the machine.
fn entrance(network: &Network) -> String {
    format!("--net=/var/run/netns/{}", network.name)
}

/// Sets a setting of a network namespace. Returns whether it has the value then.
fn set(network: &Network, name: &str, value: &str) -> bool {
    let script = r#"echo "$1" > "$0" && test "$(xargs < "$0")" = "$1""#;
    let path = format!("/proc/sys/net/{name}");
    succeeds(&["nsenter", &entrance(network), "sh", "-c", script, &path, value])
}

/// A server in a network namespace, started through these words.
fn serve(network: &Network, program: &str, through: &[&str], python: &str) -> Server {
    let port = free_port();
    let program = format!("{}{program}", HTTP.replace("127.0.0.1", "0.0.0.0"));
    let mut command = Command::new("nsenter");
    command.args([entrance(network).as_str(), "taskset", "-c", &PROCESSORS[0], "prlimit", "--nofile=4096:"]);
    command.args(through).args([python, "-c", &program, &port.to_string()]);
    Server::at((network.address, port).into(), command)
}

const QUOTA: Limit<'_> =
    Limit { controller: "cpu", files: [("cpu.cfs_quota_us", "30000"), ("cpu.max", "30000 100000")] };

/// What the limit below lets a server use: 100 MiB.
const MEMORY_BYTES: u64 = 104_857_600;

const MEMORY: Limit<'_> = Limit {
    controller: "memory",
    files: [("memory.limit_in_bytes", "104857600"), ("memory.max", "104857600")],
};

/// What is found of a server in a cgroup with such a limit; `None` where none can be made.
fn in_cgroup(bench: &Bench, limit: &Limit<'_>, program: &str) -> Option<Kinds> {
    let group = Cgroup::limited(limit).ok()?;
    let join = ["sh", "-c", r#"echo $$ > "$0" && exec "$@""#, group.tasks()];
    let server = serve(&bench.network, program, &join, "python3");
    Some(bench.found_of(&server))
}

fn few_files(bench: &Bench) -> Option<Kinds> {
    bench.limit_files(512);
    let found = bench.found(bench.healthy());
    bench.limit_files(4_096);
    Some(found)
}

fn short_queue(bench: &Bench) -> Option<Kinds> {
    Some(bench.found_of(&serve(&bench.network, SHORT_QUEUE, &[], "python3")))
}

/// A copy of the interpreter stands for a program that cargo built.
fn debug_build(bench: &Bench) -> Option<Kinds> {
    let program = bench.place.path("target/debug/app").display().to_string();
    let about = "import sys; print(sys.executable); print(sys.base_prefix)";
    let about = bench.place.call(["python3", "-c", about]).run().exits(0);
    let (python, home) = about.stdout.trim_end().split_once('\n').expect("two lines");
    // Copied by another program: a descriptor that writes to it could be inherited by a child of another test.
    assert!(succeeds(&["install", "-D", "-m", "755", python, &program]), "no copy of {python}");
    let home = format!("PYTHONHOME={home}");
    Some(bench.found_of(&serve(&bench.network, HEALTHY_SERVER, &["env", &home], &program)))
}

/// A process keeps a processor busy meanwhile, for a minute of its time at most.
fn neighbour(bench: &Bench) -> Option<Kinds> {
    let mut busy = Command::new("sh");
    busy.args(["-c", "ulimit -t 60; while :; do :; done"]);
    let busy = Daemon::start(busy);
    Some(bench.found(Look { neighbour: Some(busy.pid()), ..bench.healthy() }))
}

/// As many as 6 000 of 10 000 ports, which are not few.
fn held_ports(bench: &Bench) -> Option<Kinds> {
    let entrance = entrance(&bench.network);
    let is_held = succeeds(&["nsenter", &entrance, "python3", "-c", HOLDS_PORTS]);
    assert!(is_held, "connections cannot be opened");
    Some(bench.found_with("ipv4/ip_local_port_range", "50000 59999"))
}

/// A fault by its kind, and what is found while it is there; `None` where it cannot be planted.
type Plant = (&'static str, fn(&Bench) -> Option<Kinds>);

const FAULTS: [Plant; 11] = [
    ("listen-queue", |bench| Some(bench.found_with("core/somaxconn", "128"))),
    ("syn-queue", |bench| Some(bench.found_with("ipv4/tcp_max_syn_backlog", "128"))),
    ("few-ports", |bench| Some(bench.found_with("ipv4/ip_local_port_range", "40000 41000"))),
    ("open-files", few_files),
    ("backlog", short_queue),
    ("debug-server", debug_build),
    ("shared-processors", |bench| Some(bench.found(Look { cpus: &PROCESSORS[0], ..bench.healthy() }))),
    ("neighbour", neighbour),
    ("quota", |bench| in_cgroup(bench, &QUOTA, HEALTHY_SERVER)),
    ("memory", |bench| in_cgroup(bench, &MEMORY, KEEPS_MUCH)),
    // The last: its connections stay for a minute, and would be too many for the few ports above.
    ("time-wait", held_ports),
];

#[test]
fn each_fault_that_is_planted_is_found_while_it_is_there_and_no_other() {
    let test = "each_fault_that_is_planted_is_found_while_it_is_there_and_no_other";
    if !is_root_or_skip(test) || !has_two_cores_or_skip(test) {
        return;
    }
    let Some(bench) = Bench::make() else { return };
    assert_eq!(bench.found(bench.healthy()), [""; 0], "nothing is planted");
    for (kind, while_planted) in FAULTS {
        let Some(found) = while_planted(&bench) else {
            eprintln!("SKIPPED a part of {test}: {kind} cannot be planted here");
            continue;
        };
        assert_eq!(found, [kind], "while {kind} is planted");
        assert_eq!(bench.found(bench.healthy()), [""; 0], "{kind} is undone");
    }
}
