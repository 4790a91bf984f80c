//! A tree of files that imitates a host with ten faults, and one with none.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

#[path = "support/tree.rs"]
mod tree;

use analysis::counters::{Role, Tracked};
use analysis::doctor::{Fault, LimitedMemory, Subject, faults};
use observe::{facts_in, find_in};

use self::tree::Tree;

const GENERATOR: u32 = 50;
const SERVER: u32 = 7;

impl Tree {
    /// A host without faults: nginx on processor 0, the generator on processor 1.
    fn healthy() -> Self {
        let tree = Self::empty();
        tree.file("proc/stat", "cpu0 1 0 1 9 0 0 0 0 0 0\ncpu1 1 0 1 9 0 0 0 0 0 0\n");
        tree.process(GENERATOR, "nstar", "1", 65_536);
        tree.process(SERVER, "nginx", "0", 65_536);
        tree.process(9, "backup", "0-1", 1_024);
        for (name, text) in [
            ("core/somaxconn", "4096"),
            ("core/netdev_max_backlog", "1000"),
            ("ipv4/tcp_max_syn_backlog", "512"),
            ("ipv4/tcp_tw_reuse", "2"),
            ("ipv4/ip_local_port_range", "32768\t60999"),
            ("netfilter/nf_conntrack_max", "65536"),
        ] {
            tree.file(&format!("proc/sys/net/{name}"), text);
        }
        tree.file("proc/net/stat/nf_conntrack", "entries found\n00000010 00000000\n");
        tree.file("proc/net/sockstat", "TCP: inuse 3 orphan 0 tw 10 alloc 4 mem 1\n");
        tree.file("proc/vmstat", "pswpin 4\n");
        for processor in [0, 1] {
            tree.of_cpu(processor, "cpufreq/scaling_governor", "performance");
            tree.of_cpu(processor, "cpuidle/state1/latency", "2");
            tree.of_cpu(processor, "topology/thread_siblings_list", &processor.to_string());
        }
        tree.file("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
        tree.file("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n");
        tree.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        tree.listener();
        tree
    }

    fn of_cpu(&self, processor: u32, name: &str, text: &str) {
        self.file(&format!("sys/devices/system/cpu/cpu{processor}/{name}"), text);
    }

    fn process(&self, pid: u32, name: &str, allowed: &str, files: u64) {
        self.time(pid, name, 70);
        self.file(&format!("proc/{pid}/comm"), name);
        self.file(&format!("proc/{pid}/status"), &format!("Cpus_allowed_list:\t{allowed}\n"));
        self.limit(pid, files);
    }

    fn time(&self, pid: u32, name: &str, ticks: u64) {
        let zeros = "0 ".repeat(20);
        let stat =
            format!("{pid} ({name}) S 1 1 1 0 -1 0 5 0 6 0 {ticks} 30 4 6 20 0 2 0 {pid}00 1 7 {zeros}\n");
        self.file(&format!("proc/{pid}/stat"), &stat);
    }

    fn limit(&self, pid: u32, files: u64) {
        let text =
            format!("Max open files            {files}                 {files}                 files\n");
        self.file(&format!("proc/{pid}/limits"), &text);
    }

    /// nginx listens on 127.0.0.1:8080.
    fn listener(&self) {
        let row = " 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:0 0 0 0 77 1\n";
        self.file("proc/net/tcp", &format!("head\n{row}"));
        self.file("proc/net/fib_trie", "Main:\n     |-- 127.0.0.1\n        /32 host LOCAL\n");
        for pid in [SERVER, GENERATOR, 9] {
            self.link(&format!("proc/{pid}/ns/net"), "net:[1]");
        }
        self.link("proc/self/ns/net", "net:[1]");
        self.link(&format!("proc/{SERVER}/fd/3"), "socket:[77]");
    }

    /// The faults seen from now until after `meanwhile`.
    fn faults(&self, meanwhile: impl FnOnce(&Self)) -> Vec<Fault> {
        let paths = self.paths();
        let topology = find_in(&paths, ([127, 0, 0, 1], 8080).into()).unwrap();
        assert_eq!(topology.servers, [SERVER]);
        let look = || facts_in(&paths, GENERATOR, Some(&topology));
        let first = look();
        meanwhile(self);
        // A second later, however fast the test is.
        let mut second = look();
        second.at_us = first.at_us + 1_000_000;
        faults(&first, &second)
    }
}

/// The server, which may open so many files.
fn few_files(limit: u64) -> Fault {
    let of = Subject::Server { name: "nginx".into(), pid: SERVER, role: Role::Server };
    Fault::OpenFiles { of, processes: 1, limit }
}

#[test]
fn a_healthy_host_has_no_fault() {
    assert_eq!(Tree::healthy().faults(|tree| tree.time(SERVER, "nginx", 9_000)), []);
}

#[test]
fn a_server_from_a_folder_of_debug_builds_is_found() {
    let tree = Tree::healthy();
    tree.link(&format!("proc/{SERVER}/exe"), "/src/target/debug/app");
    tree.link(&format!("proc/{GENERATOR}/exe"), "/src/target/debug/nstar");
    let expected = Fault::DebugServer { name: "nginx".into(), pid: SERVER, processes: 1 };
    assert_eq!(tree.faults(|_| ()), [expected]);
}

#[test]
fn a_cgroup_with_little_memory_left_is_found_and_files_that_nobody_reads_are_no_use_of_it() {
    let tree = Tree::healthy();
    for pid in [SERVER, GENERATOR] {
        tree.file(&format!("proc/{pid}/cgroup"), "0::/web\n");
    }
    tree.file("cgroup/web/memory.max", "100000000\n");
    tree.file("cgroup/web/memory.current", "95000000\n");
    tree.file("cgroup/web/memory.stat", "inactive_file 40000000\n");
    assert_eq!(tree.faults(|_| ()), []);
    tree.file("cgroup/web/memory.stat", "inactive_file 2000000\n");
    let memory = LimitedMemory { most_bytes: 100_000_000, used_bytes: 93_000_000 };
    let server = Subject::Server { name: "nginx".into(), pid: SERVER, role: Role::Server };
    let found = [Subject::Generator, server].map(|of| Fault::Memory { of, processes: 1, memory });
    assert_eq!(tree.faults(|_| ()), found);
}

#[test]
fn nodes_of_memory_are_shared_or_apart() {
    let tree = Tree::healthy();
    tree.of_cpu(0, "node0/cpulist", "0\n");
    tree.of_cpu(1, "node1/cpulist", "1-2\n");
    assert_eq!(tree.faults(|_| ()), [Fault::NodesApart { generator: 1, server: 0 }]);
    let tree = Tree::healthy();
    for (processor, node) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        tree.of_cpu(processor, &format!("node{node}/cpulist"), "");
    }
    assert_eq!(tree.faults(|_| ()), [Fault::SharedNode { node: 0, nodes: 2 }]);
}

#[test]
fn where_the_load_comes_from_another_host_only_limits_of_the_server_count() {
    let tree = Tree::healthy();
    tree.limit(GENERATOR, 64);
    tree.limit(SERVER, 512);
    // Beside the server's processor: nobody makes load there.
    tree.file(&format!("proc/{GENERATOR}/status"), "Cpus_allowed_list:\t0\n");
    let paths = tree.paths();
    let topology = find_in(&paths, ([127, 0, 0, 1], 8080).into()).unwrap().with_far_load();
    let facts = facts_in(&paths, GENERATOR, Some(&topology));
    assert_eq!(faults(&facts, &facts), [few_files(512)]);
}

#[test]
fn ten_planted_faults_are_found_and_no_other() {
    let tree = Tree::healthy();
    tree.limit(SERVER, 1_024);
    tree.file("proc/sys/net/core/somaxconn", "128\n");
    tree.file("proc/sys/net/ipv4/ip_local_port_range", "60000\t60999\n");
    tree.file("proc/net/sockstat", "TCP: inuse 3 orphan 0 tw 900 alloc 4 mem 1\n");
    tree.file("proc/sys/net/netfilter/nf_conntrack_max", "20");
    tree.of_cpu(1, "cpufreq/scaling_governor", "powersave");
    tree.of_cpu(0, "topology/thread_siblings_list", "0-1");
    tree.of_cpu(1, "topology/thread_siblings_list", "0-1");
    tree.file("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    tree.file("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    let found = tree.faults(|tree| tree.time(9, "backup", 70 + 50));
    let expected = [
        few_files(1_024),
        Fault::ListenQueue { limit: 128 },
        Fault::FewPorts { ports: 1_000 },
        Fault::TimeWait { held: 900, ports: 1_000, reuse: Some(2) },
        Fault::Tracking { table: Tracked { connections: 16, most: 20, refused: 0 } },
        Fault::Governor { name: "powersave".into(), processors: 1 },
        Fault::SharedCores { pair: [1, 0] },
        Fault::Clock { source: "hpet".into(), better: Some("tsc".into()) },
        Fault::HugePages,
        Fault::Neighbour { name: "backup".into(), pid: 9, cores: 0.5 },
    ];
    for fault in &expected {
        assert!(found.contains(fault), "{fault:?} is not among {found:?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:?}");
}
