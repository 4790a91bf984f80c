//! What passes for another host: a network namespace with a server in it, and a name and a start of its own.
//!
//! nstar runs as root, and sees the processes of every namespace of this machine. So that it sees nothing of the server but
//! through an agent, it gets process numbers of its own.

use std::{
    net::SocketAddr,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::common::{
    support::{PATIENCE, Place, Server, free_port, tool_program},
    verdict::HTTP,
};

/// Runs what follows where it sees no process but its own.
pub(crate) const HIDDEN: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Runs an agent for each caller at a socket, as the daemon of containers does.
pub(crate) const DAEMON: &str = r#"
import socket, subprocess, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
while True:
    caller, _ = listener.accept()
    subprocess.Popen([sys.argv[2], "agent"], stdin=caller, stdout=caller)
    caller.close()
"#;

/// Joins its standard input and output to such a socket.
pub(crate) const CALLER: &str = r#"
import os, socket, sys, threading
stream = socket.socket(socket.AF_UNIX)
stream.connect(sys.argv[1])
def tell():
    while chunk := os.read(0, 65536): stream.sendall(chunk)
    stream.shutdown(socket.SHUT_WR)
threading.Thread(target=tell, daemon=True).start()
while chunk := stream.recv(65536): os.write(1, chunk)
"#;

/// Whether nstar can be kept from seeing the processes of this machine.
pub(crate) fn nstar_is_hidden_or_skip(test: &str) -> bool {
    let hidden = succeeds(&[&HIDDEN[..], &["true"]].concat());
    assert!(hidden || std::env::var_os("CI").is_none(), "{test} needs namespaces, and CI must have them");
    if !hidden {
        eprintln!("SKIPPED {test}: it needs namespaces of process numbers");
    }
    hidden
}

pub(crate) fn succeeds(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Another host.
pub(crate) struct Far {
    // It ends before the namespace that it is in.
    server: Server,
    pub(crate) network: Network,
}

/// A network namespace behind a virtual link.
pub(crate) struct Network {
    pub(crate) name: String,
    pub(crate) address: [u8; 4],
}

impl Network {
    /// `None` where the kernel cannot do this; then it says so.
    pub(crate) fn make() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        // 198.18.0.0/15 is for benchmarks (RFC 2544).
        let subnet = ((pid.wrapping_mul(16) + number) % 250) as u8;
        let it = Self { name: format!("nso{pid}x{number}"), address: [198, 18, subnet, 2] };
        let (name, [a, b, c, _]) = (&it.name, it.address);
        let made = [
            format!("ip netns add {name}"),
            format!("ip link add {name}a type veth peer name {name}b netns {name}"),
            format!("ip addr add {a}.{b}.{c}.1/24 dev {name}a"),
            format!("ip link set {name}a up"),
            format!("ip -n {name} addr add {a}.{b}.{c}.2/24 dev {name}b"),
            format!("ip -n {name} link set {name}b up"),
            format!("ip -n {name} link set lo up"),
        ];
        let made = made.iter().all(|command| succeeds(&command.split(' ').collect::<Vec<_>>()));
        if !made {
            eprintln!("SKIPPED: it needs network namespaces and virtual links");
        }
        made.then_some(it)
    }

    /// A program in this network, on a host that calls itself `far` and was started at a time of its own.
    pub(crate) fn on_far(&self, place: &Place, program: &[&str]) -> Command {
        self.on_host("far", place, program)
    }

    /// The same on a host of this name.
    pub(crate) fn on_host(&self, host: &str, place: &Place, program: &[&str]) -> Command {
        let inside = [&["ip", "netns", "exec", &self.name], program].concat();
        self.beside(host, place, &inside)
    }

    /// The same in the network of this machine, as what runs beside containers.
    pub(crate) fn beside(&self, host: &str, place: &Place, program: &[&str]) -> Command {
        let boot_id = place.write(&format!("{}-boot-id", self.name), format!("{host}\n"));
        let script =
            format!("hostname {host} && mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--uts", "sh", "-c", &script]).arg(boot_id);
        command.args(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        succeeds(&["ip", "netns", "del", &self.name]);
    }
}

/// A program that runs until dropped.
pub(crate) struct Daemon(std::process::Child);

impl Daemon {
    pub(crate) fn start(mut command: Command) -> Self {
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(started.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until something holds that says it has begun its work.
    pub(crate) fn once(mut self, begun: impl Fn() -> bool) -> Self {
        let deadline = Instant::now() + PATIENCE;
        while !begun() {
            let ended = self.0.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < deadline, "it did not begin: {ended:?}");
            thread::sleep(Duration::from_millis(10));
        }
        self
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Far {
    /// A host on which a Python server does this for each request; `None` where the kernel has no such hosts.
    pub(crate) fn serving(_: &Place, program: &str, through: &[&str]) -> Option<Self> {
        let network = Network::make()?;
        let port = free_port();
        let program = format!("{}{program}", HTTP.replace("127.0.0.1", "0.0.0.0"));
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &network.name]).args(through);
        command.args(["python3", "-c", &program, &port.to_string()]);
        Some(Self { server: Server::at((network.address, port).into(), command), network })
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// What observes in its network, as a process of this machine like any other.
    pub(crate) fn in_its_network(&self) -> String {
        format!("ip netns exec {} {} agent", self.network.name, tool_program().display())
    }

    /// What observes there, through a daemon that runs an agent for whoever asks it.
    pub(crate) fn through_a_daemon(&self, place: &Place) -> Observed {
        self.through(place, &[])
    }

    /// The same where the agent sees only its own processes.
    pub(crate) fn through_a_daemon_that_sees_nothing(&self, place: &Place) -> Observed {
        self.through(place, &HIDDEN)
    }

    fn through(&self, place: &Place, wrapper: &[&str]) -> Observed {
        let tool = tool_program().display().to_string();
        let started = |at: &str| {
            let program = [wrapper, &["python3", "-c", DAEMON, at, &tool]].concat();
            self.network.on_far(place, &program)
        };
        Observed::by(place, &self.network, started)
    }
}

/// A command that observes, for as long as what it needs.
pub(crate) struct Observed {
    command: String,
    _daemon: Daemon,
}

impl Observed {
    /// Through a daemon that this starts at a socket with this path.
    pub(crate) fn by(place: &Place, network: &Network, start: impl FnOnce(&str) -> Command) -> Self {
        let socket = place.path(&format!("{}.sock", network.name));
        let at = socket.display().to_string();
        let daemon = Daemon::start(start(&at)).once(|| socket.exists());
        let caller = place.write("caller.py", CALLER);
        Self { command: format!("python3 {} {at}", caller.display()), _daemon: daemon }
    }
}

impl std::ops::Deref for Observed {
    type Target = str;

    fn deref(&self) -> &str {
        &self.command
    }
}
