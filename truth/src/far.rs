//! Another host for the servers of a case: a network namespace at the end of a link, and an sshd in it.
//!
//! All of it is one machine, where root sees the processes of every namespace and may enter it. What measures is
//! therefore started where it sees no process but its own, and sshd where the host has another name and was started at
//! another time: nstar takes it for another machine, of which it knows only what the agent there tells. Of several such
//! hosts (`hosts`), each sees no process but its own.

mod hosts;
mod namespace;
mod network;
mod ssh;

use std::{
    env,
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::Command,
};

use clap::ValueEnum;
use rustix::thread::LinkNameSpaceType;
use tempfile::TempDir;

pub use self::hosts::Generators;
pub(crate) use self::hosts::Hosts;
use self::network::Network;
use crate::{
    Trouble,
    case::Case,
    place::is_root,
    process::{Process, find},
};

/// The name of the other host, in verdicts too.
const NAME: &str = "far";

/// What a command begins with that sees no process but its own. Killing it kills what it started.
const APART: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// The PID namespace of the thread that opens it.
const OWN_PID_NAMESPACE: &str = "/proc/thread-self/ns/pid";

/// How servers that stand on another host are observed there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Behind {
    /// By an agent that nstar reaches by ssh.
    Ssh,
}

impl Behind {
    /// Why a case cannot be run so; `None` where it can.
    pub(crate) fn obstacle(self, case: &Case) -> Option<&'static str> {
        let is_anywhere = case.tiers.iter().any(|tier| tier.is_busy() && tier.surroundings.cpu.is_none());
        let fills_all = case.kind.holds("cpu") && is_anywhere;
        fills_all.then_some("it fills all processors, and both hosts have the same ones")
    }
}

/// Another host. Dropping it ends what runs there, and removes it.
#[derive(Debug)]
pub(crate) struct Host {
    // Each ends before what it needs.
    sshd: Process,
    network: Network,
    folder: TempDir,
    /// The file of its PID namespace, where it has one of its own.
    pid_namespace: Option<String>,
}

impl Host {
    /// Makes one, on which this nstar is installed.
    pub(crate) fn make(nstar: &Path) -> Result<Self, Trouble> {
        let host = Self::start(NAME, &[], nstar)?;
        ssh::lay_out_client(host.folder.path(), &[host.known()])?;
        Ok(host)
    }

    /// One of several, each of which sees no process but its own.
    fn make_apart(name: &str, nstar: &Path) -> Result<Self, Trouble> {
        let [_, options @ ..] = APART;
        let mut host = Self::start(name, &options, nstar)?;
        host.pid_namespace = Some(format!("/proc/{}/ns/pid_for_children", host.sshd.id()));
        Ok(host)
    }

    /// Makes a host of this name, whose sshd is started with these options of unshare.
    fn start(name: &str, apart: &[&str], nstar: &Path) -> Result<Self, Trouble> {
        is_root("another host")?;
        find("ip", "iproute2")?;
        find("unshare", "util-linux")?;
        let sshd = find("sshd", "openssh-server")?;
        let folder = TempDir::new().map_err(Trouble::io("make a folder"))?;
        let network = Network::make()?;
        let address = network.address();
        ssh::lay_out(folder.path(), name, address, nstar)?;
        let words = ssh::daemon(folder.path(), &sshd, name, apart);
        let mut sshd = network.within(|| Process::start(&words, folder.path(), &[]))?;
        sshd.wait_until(|| TcpStream::connect((address, ssh::PORT)).is_ok())?;
        Ok(Self { sshd, network, folder, pid_namespace: None })
    }

    /// By what it is reached.
    fn known(&self) -> ssh::Known<'_> {
        (self.address(), self.folder.path())
    }

    /// Its address on the link.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.network.address()
    }

    /// Does something there. What it starts runs there.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let Some(pid_namespace) = &self.pid_namespace else { return self.network.within(work) };
        let files = [OWN_PID_NAMESPACE, pid_namespace.as_str()];
        self.network.within(|| namespace::within(LinkNameSpaceType::ProcessID, files, work))
    }

    /// Adds a route from here to an address with a port, which may be that of a namespace behind this host.
    pub(crate) fn lead_to(&self, address: &str) -> Result<(), Trouble> {
        self.network.lead_to(address)
    }

    /// A command that learns of this host only over the link, and whose ssh can log in there.
    pub(crate) fn apart(&self, program: &Path) -> Command {
        apart(&[], self.folder.path(), program)
    }

    /// The arguments by which nstar observes there.
    pub(crate) fn observe(&self) -> [String; 2] {
        observe(self.address())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // While unshare waits for a PID namespace to end, SIGKILL alone ends it.
        if self.pid_namespace.is_some() {
            self.network.clear();
        }
    }
}

/// A command that begins with these words and sees no process but its own, with the ssh that a folder holds.
fn apart(before: &[String], folder: &Path, program: &Path) -> Command {
    let mut path = folder.join(ssh::PROGRAMS).into_os_string();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new("env");
    command.args(before).args(APART).arg(program);
    command.env("PATH", path).env("TMPDIR", folder.join(ssh::TEMPORARY));
    command
}

fn observe(address: Ipv4Addr) -> [String; 2] {
    ["--observe".to_owned(), format!("ssh://root@{address}:{}", ssh::PORT)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case;

    #[test]
    fn nstar_is_told_the_user_the_address_and_the_port() {
        assert_eq!(observe(Ipv4Addr::new(198, 19, 0, 2)), ["--observe", "ssh://root@198.19.0.2:22"]);
    }

    #[test]
    fn only_what_fills_the_processors_of_both_hosts_is_left_out() {
        let cases = case::all().expect("the list");
        let is_left_out = |name: &str| {
            let case = cases.iter().find(|case| case.name == name).expect(name);
            Behind::Ssh.obstacle(case).is_some()
        };
        assert!(is_left_out("go-busy"));
        for name in ["pool", "pinned", "quota", "node-busy", "link", "pool-in-namespace", "row-lock"] {
            assert!(!is_left_out(name), "{name}");
        }
        let left_out = cases.iter().filter(|case| Behind::Ssh.obstacle(case).is_some()).count();
        assert!(left_out * 10 <= cases.len(), "{left_out} of {}", cases.len());
    }
}
