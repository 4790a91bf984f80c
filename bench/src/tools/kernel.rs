//! What the kernel knows of a server and of this machine, from /proc and cgroups.

use std::{fs, net::Ipv4Addr, path::Path};

use rustix::process::{Resource, getrlimit};

use crate::tools::{cpu, effort::Result};

/// A TCP connection over IPv4 that a process on this machine holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    /// The port at this end.
    pub port: u16,
    /// The address at the other end.
    pub peer: Ipv4Addr,
}

/// Returns the connections that processes hold now. Those that wait to be accepted are not among them, nor those that a
/// process has closed and the kernel has not.
pub(crate) fn held_connections() -> Result<Vec<Held>> {
    Ok(fs::read_to_string("/proc/net/tcp")?.lines().filter_map(held).collect())
}

/// Reads a line of /proc/net/tcp. The inode, its tenth field, is 0 unless a process holds the socket.
fn held(line: &str) -> Option<Held> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, remote, _, _, _, _, _, _, inode, ..] = fields[..] else { return None };
    let (_, port) = local.split_once(':')?;
    let (peer, peer_port) = remote.split_once(':')?;
    // A socket that listens has no peer.
    let is_held = inode.parse::<u64>().ok()? != 0 && u16::from_str_radix(peer_port, 16).ok()? != 0;
    // The kernel prints the four bytes of an address as one number.
    let peer = Ipv4Addr::from(u32::from_str_radix(peer, 16).ok()?.to_ne_bytes());
    is_held.then_some(Held { port: u16::from_str_radix(port, 16).ok()?, peer })
}

/// Returns the resident memory of a process and its descendants that no file backs, in bytes. What several of them share
/// counts once.
pub(crate) fn resident_bytes(root: u32) -> f64 {
    cpu::tree(root).into_iter().filter_map(own_resident_bytes).sum()
}

/// Pss_Anon of smaps_rollup: proc_pid_smaps(5). `None` for a process that has ended.
fn own_resident_bytes(pid: u32) -> Option<f64> {
    kib_in(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss_Anon:")
}

/// Returns a value in KiB under its name, in bytes.
fn kib_in(text: &str, name: &str) -> Option<f64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.split_whitespace().next()?.parse::<f64>().ok()? * 1_024.0)
}

/// Returns the memory that can still be had on this machine, in bytes.
pub(crate) fn memory_available_bytes() -> Option<f64> {
    kib_in(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Returns how many open files a process that this one starts may have.
pub(crate) fn descriptors_allowed() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Returns how many more threads and processes there may be on this machine and in this process's cgroups.
pub(crate) fn tasks_left() -> u64 {
    let on_machine = tasks_left_on_machine();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let folder = Path::new("/sys/fs/cgroup").join(group);
    let within = folder.ancestors().take_while(|folder| folder.starts_with("/sys/fs/cgroup"));
    within.filter_map(tasks_left_in).chain(on_machine).min().unwrap_or(u64::MAX)
}

fn tasks_left_on_machine() -> Option<u64> {
    let most = number_in("/proc/sys/kernel/pid_max")?.min(number_in("/proc/sys/kernel/threads-max")?);
    // The fourth field holds those that run and all.
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let (_, all) = load.split_whitespace().nth(3)?.split_once('/')?;
    Some(most.saturating_sub(all.parse().ok()?))
}

fn tasks_left_in(folder: &Path) -> Option<u64> {
    // It is "max" where there is no limit.
    Some(number_in(folder.join("pids.max"))?.saturating_sub(number_in(folder.join("pids.current"))?))
}

fn number_in(path: impl AsRef<Path>) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_those_with_a_peer_and_a_process() {
        let line = |remote: &str, inode: &str| {
            format!("   3: 0100007F:1F90 {remote} 01 00000000:00000000 00:00000000 00000000  0  0 {inode} 1")
        };
        let peer = u32::from_ne_bytes([127, 16, 0, 1]);
        let remote = format!("{peer:08X}:C000");
        let expected = Held { port: 8_080, peer: Ipv4Addr::new(127, 16, 0, 1) };
        assert_eq!(held(&line(&remote, "4711")), Some(expected));
        assert_eq!(held(&line(&remote, "0")), None, "it waits to be accepted");
        assert_eq!(held(&line("00000000:0000", "4711")), None, "it listens");
        assert_eq!(held("  sl  local_address rem_address   st tx_queue"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        let text = "Pss:      9 kB\nPss_Anon:             412 kB\n";
        assert_eq!(kib_in(text, "Pss_Anon:"), Some(421_888.0));
        assert_eq!(kib_in(text, "MemAvailable:"), None);
    }
}
