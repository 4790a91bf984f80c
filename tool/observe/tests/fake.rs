//! Trees of files that imitate hosts which would be hard to set up.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

#[path = "support/tree.rs"]
mod tree;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use analysis::counters::{Counters, Role, ServerAddress, ThreadState};
use observe::{KernelPaths, ObserveError, Topology, Watcher, find_in};

use self::tree::Tree;

impl Tree {
    fn new() -> Self {
        let tree = Self::empty();
        tree.file("proc/stat", "cpu0 1 0 1 9 0 0 0 2 0 0\ncpu1 1 0 1 9 0 0 0 2 0 0\n");
        tree
    }

    /// A process with its descriptors: sockets by inode.
    fn process(&self, pid: u32, parent: u32, name: &str, sockets: &[u64]) {
        let zeros = "0 ".repeat(20);
        let stat =
            format!("{pid} ({name}) S {parent} 1 1 0 -1 0 5 0 6 0 70 30 4 6 20 0 2 0 {pid}00 1 7 {zeros}\n");
        self.file(&format!("proc/{pid}/stat"), &stat);
        for (number, inode) in sockets.iter().enumerate() {
            self.link(&format!("proc/{pid}/fd/{number}"), &format!("socket:[{inode}]"));
        }
        self.link(&format!("proc/{pid}/fd/{}", sockets.len()), "/dev/null");
    }

    fn sockets(&self, net: &str, rows: &[(&str, &str, &str, u64)]) {
        let row = |(local, remote, state, inode): &(&str, &str, &str, u64)| {
            format!(" 0: {} {} {state} 00000000:00000002 00:0 0 0 0 {inode} 1\n", hex(local), hex(remote))
        };
        self.file(&format!("{net}/tcp"), &format!("head\n{}", rows.iter().map(row).collect::<String>()));
    }

    fn find(&self, target: &str) -> Result<Topology, ObserveError> {
        find_in(&self.paths(), target.parse().unwrap())
    }
}

/// Prints an IPv4 endpoint as the kernel does.
fn hex(endpoint: &str) -> String {
    let SocketAddr::V4(endpoint) = endpoint.parse().unwrap() else { panic!("IPv4 only") };
    format!("{:08X}:{:04X}", u32::from_ne_bytes(endpoint.ip().octets()), endpoint.port())
}

const LISTEN: &str = "0A";
const CONNECTED: &str = "01";
const NONE: &str = "0.0.0.0:0";

#[test]
fn master_workers_and_their_children_but_not_init() {
    let tree = Tree::new();
    tree.sockets("proc/net", &[("0.0.0.0:80", NONE, LISTEN, 50)]);
    tree.process(1, 0, "systemd", &[50]);
    tree.process(10, 1, "nginx", &[50]);
    tree.process(11, 10, "nginx", &[50]);
    tree.process(12, 11, "cgi", &[]);
    tree.process(20, 1, "cron", &[]);
    assert_eq!(tree.find("127.0.0.1:80").unwrap().servers, [10, 11, 12]);
}

#[test]
fn init_is_the_server_if_no_other_process_is() {
    let tree = Tree::new();
    tree.sockets("proc/net", &[("0.0.0.0:80", NONE, LISTEN, 50)]);
    tree.process(1, 0, "server", &[50]);
    tree.process(10, 1, "orphan", &[]);
    assert_eq!(tree.find("127.0.0.1:80").unwrap().servers, [1]);
}

#[test]
fn several_sockets_on_one_port() {
    let tree = Tree::new();
    tree.sockets("proc/net", &[("0.0.0.0:80", NONE, LISTEN, 50), ("0.0.0.0:80", NONE, LISTEN, 51)]);
    tree.process(10, 1, "one", &[50]);
    tree.process(11, 1, "two", &[51]);
    assert_eq!(tree.find("127.0.0.1:80").unwrap().servers, [10, 11]);
}

#[test]
fn only_calls_by_the_servers_lead_to_tiers() {
    let tree = Tree::new();
    let rows = [
        ("127.0.0.1:80", NONE, LISTEN, 50),
        ("127.0.0.1:5432", NONE, LISTEN, 51),
        ("127.0.0.1:6379", NONE, LISTEN, 52),
        ("127.0.0.1:40000", "127.0.0.1:5432", CONNECTED, 60),
        ("127.0.0.1:40001", "127.0.0.1:6379", CONNECTED, 61),
        ("127.0.0.1:40002", "127.0.0.1:80", CONNECTED, 62),
    ];
    tree.sockets("proc/net", &rows);
    tree.process(10, 1, "server", &[50, 60]);
    tree.process(20, 1, "database", &[51]);
    tree.process(21, 20, "backend", &[]);
    tree.process(30, 1, "cache", &[52]);
    tree.process(40, 1, "client", &[61, 62]);
    let topology = tree.find("127.0.0.1:80").unwrap();
    assert_eq!((topology.servers, topology.downstream), (vec![10], vec![20, 21]));
}

#[test]
fn a_server_in_another_namespace_and_its_database_in_a_third() {
    let local = |address: &str| format!("Local:\n |-- {address}\n /32 host LOCAL\n");
    let tree = Tree::new();
    tree.link("proc/self/ns/net", "net:[1]");
    tree.sockets("proc/net", &[("0.0.0.0:80", NONE, LISTEN, 49)]);
    tree.process(9, 1, "another", &[49]);
    for (pid, id, address) in [(10, 2, "10.0.0.2"), (20, 3, "10.0.0.3")] {
        tree.link(&format!("proc/{pid}/ns/net"), &format!("net:[{id}]"));
        tree.file(&format!("proc/{pid}/net/fib_trie"), &local(address));
    }
    let call = ("10.0.0.2:40000", "10.0.0.3:5432", CONNECTED, 60);
    tree.sockets("proc/10/net", &[("0.0.0.0:80", NONE, LISTEN, 50), call]);
    tree.sockets("proc/20/net", &[("0.0.0.0:5432", NONE, LISTEN, 51)]);
    tree.process(10, 1, "server", &[50, 60]);
    tree.process(20, 1, "database", &[51]);
    let topology = tree.find("10.0.0.2:80").unwrap();
    assert_eq!((topology.servers, topology.downstream), (vec![10], vec![20]));
    assert_eq!(tree.find("127.0.0.1:80").unwrap().servers, [9]);
    assert!(matches!(tree.find("10.0.0.4:80"), Err(ObserveError::NotLocal(_))));
    assert!(matches!(tree.find("10.0.0.3:80"), Err(ObserveError::NotListening(_))));
}

#[test]
fn no_process_to_be_found() {
    let tree = Tree::new();
    assert!(matches!(tree.find("127.0.0.1:80"), Err(ObserveError::NotListening(_))));
    tree.sockets("proc/net", &[("0.0.0.0:80", NONE, LISTEN, 50)]);
    tree.process(10, 1, "other", &[]);
    assert!(matches!(tree.find("127.0.0.1:80"), Err(ObserveError::NoOwner(_))));
    let nowhere = KernelPaths { proc: "/nonexistent".into(), ..tree.paths() };
    let error = find_in(&nowhere, "127.0.0.1:80".parse().unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("cannot list /nonexistent"), "{error}");
}

fn sample(tree: &Tree) -> Counters {
    let topology = tree.find("127.0.0.1:80").unwrap();
    Watcher::start(tree.paths(), topology, Duration::from_secs(60)).unwrap().stop().remove(0)
}

#[test]
fn hops_lead_from_the_users_to_the_server_and_on_to_the_tier_behind() {
    let tree = Tree::new();
    // Every socket of these files has two bytes to read.
    let rows = [
        ("0.0.0.0:80", NONE, LISTEN, 50),
        ("127.0.0.1:80", "127.0.0.1:5000", CONNECTED, 51),
        ("127.0.0.1:80", "127.0.0.1:5001", CONNECTED, 0),
        ("127.0.0.1:6000", "127.0.0.1:81", CONNECTED, 52),
        ("127.0.0.1:81", NONE, LISTEN, 60),
        ("127.0.0.1:81", "127.0.0.1:6000", CONNECTED, 61),
        ("127.0.0.1:6001", "198.51.100.7:5432", CONNECTED, 62),
        ("127.0.0.1:7000", "198.51.100.7:443", CONNECTED, 70),
    ];
    tree.sockets("proc/net", &rows);
    tree.process(10, 1, "front", &[50, 51, 52]);
    tree.process(20, 1, "app", &[60, 61, 62]);
    tree.process(30, 1, "stranger", &[70]);
    let hops = sample(&tree).hops.expect("a look at the connections");
    let seen: Vec<_> =
        hops.iter().map(|hop| (hop.server, hop.callers.clone(), hop.unread, hop.unclear)).collect();
    let expected = [(Some(10), vec![], 2, 0), (Some(20), vec![10], 1, 0), (None, vec![20], 0, 0)];
    assert_eq!(seen, expected, "{hops:?}");
    let ServerAddress::Tcp { address } = hops[2].address else { panic!("{hops:?}") };
    assert_eq!(address, "198.51.100.7:5432".parse().unwrap());
}

fn small_server() -> Tree {
    let tree = Tree::new();
    tree.sockets("proc/net", &[("0.0.0.0:80", NONE, LISTEN, 50)]);
    tree.process(10, 1, "server", &[50]);
    tree
}

#[test]
fn every_figure_is_in_its_place() {
    let tree = small_server();
    tree.file("proc/10/io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n");
    tree.file("proc/10/limits", "Max open files            1024       4096       files\n");
    tree.file("proc/10/status", "Name:\tserver\nCpus_allowed_list:\t1-63\n");
    tree.file("proc/10/cgroup", "0::/web\n");
    tree.file("cgroup/web/cpu.max", "50000 100000\n");
    tree.file("cgroup/web/cpu.stat", "usage_usec 5\nnr_periods 2\nnr_throttled 1\nthrottled_usec 9\n");
    tree.file("proc/10/task/10/stat", &format!("10 (loop) D 1{}", " 0".repeat(30)));
    tree.file("proc/10/task/10/schedstat", "2000000 3000000 4\n");
    let sample = sample(&tree);
    let process = sample.processes.iter().find(|process| process.pid == 10).unwrap();
    assert_eq!((process.name.as_str(), process.role, process.started_ticks), ("server", Role::Server, 1000));
    assert_eq!((process.user_us, process.system_us, process.reaped_children_us), (700_000, 300_000, 100_000));
    assert_eq!((process.disk_read_bytes, process.disk_written_bytes), (Some(4096), Some(8192)));
    assert_eq!((process.open_files, process.open_files_limit), (Some(2), Some(1024)));
    assert_eq!((process.allowed_cpus, process.allowed_cpu_numbers.clone()), (1, vec![1]));
    assert_eq!((process.major_faults, process.thread_count, process.run_queue_wait_us), (6, 2, 3000));
    assert_eq!(process.cpu_quota.as_ref().map(|quota| quota.throttled_us), Some(9));
    assert_eq!((process.threads[0].cpu_us, process.threads[0].state), (2000, ThreadState::Disk));
    assert_eq!((sample.cpus.len(), sample.cpus[1].steal_us), (2, 20_000));
    assert_eq!((sample.listeners[0].port, sample.listeners[0].pid, sample.listeners[0].waiting), (80, 10, 2));
}

#[test]
fn what_the_kernel_does_not_tell_is_absent() {
    let tree = small_server();
    let sample = sample(&tree);
    let process = sample.processes.iter().find(|process| process.pid == 10).unwrap();
    assert_eq!(
        (process.disk_read_bytes, process.open_files_limit, process.cpu_quota.as_ref()),
        (None, None, None)
    );
    assert!(process.threads.is_empty() && process.allowed_cpu_numbers.is_empty());
    assert!(sample.disks.is_empty() && sample.interfaces.is_empty());
}

#[test]
fn broken_files_are_survived() {
    let tree = small_server();
    let names = ["io", "limits", "status", "cgroup", "task/10/stat", "task/10/schedstat", "task/x/stat"];
    for (index, name) in names.into_iter().enumerate() {
        let broken: Vec<u8> = (0..=255u8).cycle().skip(index * 37).take(5000).collect();
        let path = tree.paths().proc.join("10").join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).unwrap();
        std::fs::write(path, broken).unwrap();
    }
    for name in ["diskstats", "meminfo", "vmstat", "net/dev", "net/snmp", "net/netstat", "pressure/cpu"] {
        tree.file(&format!("proc/{name}"), "18446744073709551616 : -1 \u{fffd} total=x\n\n:\n");
    }
    assert_eq!(sample(&tree).processes.iter().filter(|process| process.pid == 10).count(), 1);
}
