//! Another host for the servers of a case: a network namespace at the end of a link, and an sshd in it.
//!
//! All of it is one machine, where root sees the processes of every namespace and may enter it. What measures is
//! therefore started where it sees no process but its own, and sshd where the host has another name and was started at
//! another time: nstar takes it for another machine, of which it knows only what the agent there tells.

mod network;
mod ssh;

use std::{
    env,
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::Command,
};

use clap::ValueEnum;
use tempfile::TempDir;

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
    _sshd: Process,
    network: Network,
    folder: TempDir,
}

impl Host {
    /// Makes one, on which this nstar is installed.
    pub(crate) fn make(nstar: &Path) -> Result<Self, Trouble> {
        is_root("another host")?;
        find("ip", "iproute2")?;
        find("unshare", "util-linux")?;
        let sshd = find("sshd", "openssh-server")?;
        let folder = TempDir::new().map_err(Trouble::io("make a folder"))?;
        let network = Network::make()?;
        let address = network.address();
        ssh::lay_out(folder.path(), address, nstar)?;
        let words = ssh::daemon(folder.path(), &sshd);
        let mut sshd = network.within(|| Process::start(&words, folder.path(), &[]))?;
        sshd.wait_until(|| TcpStream::connect((address, ssh::PORT)).is_ok())?;
        Ok(Self { _sshd: sshd, network, folder })
    }

    /// Its address on the link.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.network.address()
    }

    /// Does something there. What it starts runs there.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        self.network.within(work)
    }

    /// Makes a way from here to an address with a port, which may be that of a namespace behind this host.
    pub(crate) fn lead_to(&self, address: &str) -> Result<(), Trouble> {
        self.network.lead_to(address)
    }

    /// A command that learns of this host only over the link, and whose ssh can log in there.
    pub(crate) fn apart(&self, program: &Path) -> Command {
        let [unshare, options @ ..] = APART;
        let mut path = self.folder.path().join(ssh::PROGRAMS).into_os_string();
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(unshare);
        command.args(options).arg(program);
        command.env("PATH", path).env("TMPDIR", self.folder.path().join(ssh::TEMPORARY));
        command
    }

    /// The arguments by which nstar observes there.
    pub(crate) fn observe(&self) -> [String; 2] {
        observe(self.address())
    }
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
