//! What only root can set up: a server in a network namespace behind a shaped link, a server in a cgroup with a quota, a
//! server of another user.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use analysis::counters::{Counters, Interface};
use observe::{KernelPaths, RootQdisc, TokenBucket, Watcher, find};
use support::{Server, is_root, skip};

#[test]
#[ignore = "the other tests run it in processes of their own"]
fn child() {
    support::run_role();
}

/// A network namespace behind a veth pair, shaped on both ends.
struct Namespace {
    name: String,
    network: u8,
}

impl Namespace {
    fn make() -> Self {
        let pid = std::process::id();
        let it = Self { name: format!("nst{pid}"), network: (pid % 250) as u8 };
        let (name, ours, theirs) = (&it.name, it.address(1), it.address(2));
        for command in [
            format!("ip netns add {name}"),
            format!("ip link add {name}a type veth peer name {name}b netns {name}"),
            format!("ip addr add {ours}/24 dev {name}a"),
            format!("ip link set {name}a up"),
            format!("ip -n {name} addr add {theirs}/24 dev {name}b"),
            format!("ip -n {name} link set {name}b up"),
            format!("tc -n {name} qdisc add dev {name}b root tbf rate 20mbit burst 16kb latency 50ms"),
            format!("tc qdisc add dev {name}a root handle 1: htb default 10"),
            format!("tc class add dev {name}a parent 1: classid 1:1 htb rate 30mbit"),
            format!("tc class add dev {name}a parent 1:1 classid 1:10 htb rate 1mbit ceil 40mbit"),
        ] {
            run(&command);
        }
        it
    }

    fn address(&self, host: u8) -> Ipv4Addr {
        // 198.18.0.0/15 is for benchmarks (RFC 2544).
        Ipv4Addr::new(198, 18, self.network, host)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run(&format!("ip netns del {}", self.name));
    }
}

fn run(command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success(), "{command}");
}

fn sample_until(watcher: &Watcher, enough: impl Fn(&Counters) -> bool) -> Counters {
    let give_up = Instant::now() + Duration::from_secs(60);
    while Instant::now() < give_up {
        let last = watcher.between(u64::MAX, u64::MAX).pop().unwrap();
        if enough(&last) {
            return last;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("not seen within a minute");
}

fn watch(target: SocketAddr) -> Watcher {
    Watcher::start(KernelPaths::default(), find(target).unwrap(), Duration::from_millis(50)).unwrap()
}

#[test]
fn a_server_behind_a_shaped_link() {
    if !is_root("a_server_behind_a_shaped_link") {
        return;
    }
    let namespace = Namespace::make();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &namespace.name]).arg(std::env::current_exe().unwrap());
    let server = Server::start_with(command, "send 0.0.0.0:0");
    let target = SocketAddr::new(namespace.address(2).into(), server.addr.port());
    assert_eq!(find(target).unwrap().servers, [server.pid()]);

    let watcher = watch(target);
    let mut stream = TcpStream::connect(target).unwrap();
    stream.read_exact(&mut vec![0; 400_000]).unwrap();
    let carrier = |sample: &Counters, name: &str| -> Interface {
        let mut carriers = sample.interfaces.iter().filter(|interface| interface.carries_load);
        carriers.find(|interface| interface.name.contains(name)).unwrap().clone()
    };
    let sample = sample_until(&watcher, |sample| carrier(sample, "server's namespace").shaper_overlimits > 0);
    let (ours, theirs) =
        (carrier(&sample, &format!("{}a", namespace.name)), carrier(&sample, "server's namespace"));
    assert_eq!((ours.shaped_bits_per_s, theirs.shaped_bits_per_s), (Some(30_000_000), Some(20_000_000)));
    assert!(theirs.sent_bytes > 400_000 && ours.received_bytes > 400_000);
    assert_eq!((ours.link_bits_per_s, theirs.link_bits_per_s), (None, None));
    let topology = find(target).unwrap();
    let root = |of: &Interface| topology.interface(&of.name).unwrap().root_qdisc().unwrap();
    // 50 ms at its rate, and the burst.
    let bucket = TokenBucket { bits_per_s: 20_000_000, burst_bytes: 16_384, limit_bytes: 125_000 + 16_384 };
    assert_eq!((root(&ours), root(&theirs)), (RootQdisc::Other, RootQdisc::TokenBucket(bucket)));
    assert_eq!(sample.interfaces.iter().filter(|interface| interface.carries_load).count(), 2);
    assert!(sample.tcp.segments_sent > 0);
    assert_eq!(sample.listeners[0].port, target.port());
    assert!(sample.listeners[0].backlog > 0);
}

/// A cgroup, of either version, with a CPU quota of a fifth of a core.
struct Quota(Vec<PathBuf>);

impl Quota {
    fn make() -> std::io::Result<Self> {
        let name = format!("nstar-test-{}", std::process::id());
        let version_1 = PathBuf::from("/sys/fs/cgroup/cpu");
        if version_1.exists() {
            let groups = [version_1.join(&name), PathBuf::from("/sys/fs/cgroup/cpuacct").join(&name)];
            for group in &groups {
                // The second call fails if both controllers are mounted together.
                let _ = std::fs::create_dir(group);
            }
            std::fs::write(groups[0].join("cpu.cfs_quota_us"), "20000")?;
            return Ok(Self(groups.to_vec()));
        }
        let group = PathBuf::from("/sys/fs/cgroup").join(&name);
        std::fs::create_dir(&group)?;
        std::fs::write(group.join("cpu.max"), "20000 100000")?;
        Ok(Self(vec![group]))
    }

    fn take(&self, pid: u32) {
        for group in &self.0 {
            std::fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
        }
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        for group in &self.0 {
            let _ = std::fs::remove_dir(group);
        }
    }
}

#[test]
fn a_server_under_a_cpu_quota() {
    let name = "a_server_under_a_cpu_quota";
    if !is_root(name) {
        return;
    }
    let Ok(quota) = Quota::make() else { return skip(name, "needs a cgroup hierarchy it may write to") };
    let server = Server::start("burn 127.0.0.1:0");
    quota.take(server.pid());
    let watcher = watch(server.addr);
    let of = |sample: &Counters| {
        let process = sample.processes.iter().find(|process| process.pid == server.pid());
        process.and_then(|process| process.cpu_quota.clone())
    };
    let sample = sample_until(&watcher, |sample| of(sample).is_some_and(|quota| quota.throttled_periods > 2));
    let seen = of(&sample).unwrap();
    assert!((seen.cores - 0.2).abs() < 1e-9);
    assert!(seen.cgroup.ends_with(&format!("nstar-test-{}", std::process::id())));
    assert!(seen.throttled_us > 0 && seen.usage_us > 0 && seen.periods >= seen.throttled_periods);
}

#[test]
fn a_server_of_another_user_needs_root() {
    let name = "a_server_of_another_user_needs_root";
    if !is_root(name) {
        return;
    }
    let server = Server::start("listen 127.0.0.1:0");
    let directory = tempfile::tempdir().unwrap();
    let finder = directory.path().join("finder");
    // Copied by another program: a descriptor that writes to it could be inherited by a child of another test.
    run(&format!("cp {} {}", std::env::current_exe().unwrap().display(), finder.display()));
    run(&format!("chmod 755 {} {}", directory.path().display(), finder.display()));
    let output = Command::new(&finder)
        .args(["--exact", "find_as_nobody", "--ignored", "--nocapture"])
        .env("OBSERVE_TEST_TARGET", server.addr.to_string())
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("belongs to another user"), "{said}");
}

#[test]
#[ignore = "run as another user by a_server_of_another_user_needs_root"]
fn find_as_nobody() {
    let target = std::env::var("OBSERVE_TEST_TARGET").unwrap().parse().unwrap();
    println!("{}", find(target).unwrap_err());
}
