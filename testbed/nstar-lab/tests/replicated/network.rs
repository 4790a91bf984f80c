//! Hosts on this machine whose packets to each other can be lost: network namespaces. Needs root.

use std::{
    array, env, fs,
    net::Ipv4Addr,
    process::{Child, Command, Stdio},
};

use database_server::Host;
use test_support::replicated::wait_until;

/// Set where a test runs in a network namespace of its own.
const APART: &str = "NSTAR_TEST_APART";

/// Whether this process is in a network namespace of its own, where the test may go on. If not, it runs the test in one: the
/// namespace of this machine stays untouched. Skips it loudly without root, and in CI panics.
pub(crate) fn is_apart(test: &str) -> bool {
    if env::var_os(APART).is_some() {
        return true;
    }
    let root = rustix::process::geteuid().is_root();
    assert!(root || env::var_os("CI").is_none(), "{test} needs root, and CI must run it as root");
    if !root {
        eprintln!("SKIPPED {test}: it needs root");
        return false;
    }
    let mut command = separated();
    command.args(["sh", "-ec", "ip link set lo up; exec \"$@\"", "sh"]).arg(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(APART, "1").stdin(Stdio::null());
    let said = command.output().unwrap();
    let out = String::from_utf8_lossy(&said.stdout);
    eprintln!("{out}{}", String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success() && out.contains("1 passed"), "{test}: {}", said.status);
    false
}

/// Prepares to run what is added in a new network namespace, where it ends with this thread.
fn separated() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "unshare", "--net"]);
    command
}

/// Runs commands, which must succeed.
fn run(commands: &str) {
    let output = Command::new("sh").args(["-ec", commands]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{commands}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Hosts with two networks: one for servers, whose packets can be lost, and one for clients, with this process on it.
pub(crate) struct Network<const N: usize> {
    pub(crate) hosts: [Host; N],
    _namespaces: [Namespace; N],
}

impl<const N: usize> Network<N> {
    /// Makes the hosts in the namespace of this process, which must be [apart](is_apart).
    pub(crate) fn new() -> Self {
        run("ip link add servers type bridge; ip link add clients type bridge; \
             ip addr add 198.18.1.254/24 dev clients; ip link set servers up; ip link set clients up");
        let namespaces: [Namespace; N] = array::from_fn(|_| Namespace::new());
        let hosts = array::from_fn(|number| connect(number, namespaces[number].0.id()));
        Self { hosts, _namespaces: namespaces }
    }

    /// Loses all packets between a host and the others from now on. Neither side is told: its interface stays up.
    pub(crate) fn cut(&self, number: usize) {
        run(&format!("ip link set servers{number} nomaster"));
    }

    /// Lets the packets of a host arrive again.
    pub(crate) fn join(&self, number: usize) {
        run(&format!("ip link set servers{number} master servers"));
    }
}

/// Connects a namespace to both networks. 198.18.0.0/15 is for benchmarks (RFC 2544).
fn connect(number: usize, process: u32) -> Host {
    let last = u8::try_from(number + 1).unwrap();
    let (among_servers, for_clients) = (Ipv4Addr::new(198, 18, 0, last), Ipv4Addr::new(198, 18, 1, last));
    run(&format!(
        "ip link add servers{number} type veth peer name eth0 netns {process}; \
         ip link add clients{number} type veth peer name eth1 netns {process}; \
         ip link set servers{number} master servers up; ip link set clients{number} master clients up; \
         nsenter --net --target {process} sh -ec 'for link in lo eth0 eth1; do ip link set $link up; done; \
         ip addr add {among_servers}/24 dev eth0; ip addr add {for_clients}/24 dev eth1'"
    ));
    Host { process, among_servers, for_clients }
}

/// A process that keeps a network namespace.
struct Namespace(Child);

impl Namespace {
    fn new() -> Self {
        let mut command = separated();
        command.args(["sleep", "infinity"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let namespace = Self(command.spawn().unwrap());
        let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let (own, its) = (of("self"), namespace.0.id().to_string());
        wait_until("a host has a namespace", || of(&its).is_some_and(|its| Some(its) != own));
        namespace
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
