//! Network namespaces, with their addresses and sockets.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use super::process_tree::ProcessTree;
use crate::kernel_files::{KernelPaths, Pid, read, read_or_empty};
use crate::netlink::diag::{self, States, UnixSocket};
use crate::netlink::{self, NetlinkSockets};
use crate::proc::network::{self, TcpSocket, TcpState};

/// A network namespace, seen through one of its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// The target of `/proc/PID/ns/net`; empty for our own if that cannot be read.
    pub(crate) id: String,
    /// The process through which it is seen; `None` for our own.
    pub(crate) through: Option<Pid>,
    /// Its files, such as `tcp` and `dev`.
    pub(crate) net: PathBuf,
}

impl Namespace {
    /// The namespace of this process.
    pub(crate) fn own(paths: &KernelPaths) -> Self {
        let id = read_id(&paths.proc.join("self")).unwrap_or_default();
        Self { id, through: None, net: paths.proc.join("net") }
    }

    fn of(paths: &KernelPaths, pid: Pid, id: String) -> Self {
        Self { id, through: Some(pid), net: paths.process(pid).join("net") }
    }

    /// Opens netlink sockets in it. `None` if these are not this host's files, or we lack the right.
    pub(crate) fn netlink(&self) -> Option<NetlinkSockets> {
        self.net.starts_with("/proc").then(|| NetlinkSockets::open(self.entrance().as_deref()).ok())?
    }

    /// The file by which it is entered; `None` for our own.
    pub(crate) fn entrance(&self) -> Option<PathBuf> {
        self.through.and_then(|_| Some(self.net.parent()?.join("ns/net")))
    }

    /// Why the kernel does not tell all about its sockets, if it does not. Files of another host's tell nothing of this one's,
    /// and a namespace whose process has ended is not refused.
    pub(crate) fn refusal(&self) -> Option<io::Error> {
        if !self.net.starts_with("/proc") {
            return None;
        }
        let asked = NetlinkSockets::open(self.entrance().as_deref())
            .and_then(|mut netlink| diag::tcp_sockets(&mut netlink.diag, States::LISTENING));
        asked.err().filter(|error| error.kind() != io::ErrorKind::NotFound)
    }

    /// Whether its tables of sockets can be read as files.
    pub(crate) fn has_tables(&self) -> bool {
        // Without any socket they have a heading.
        !read_or_empty(&self.net.join("tcp")).is_empty()
    }

    /// The first and the last local port that its connections may have; `None` where that may not be read.
    pub(crate) fn local_ports(&self, paths: &KernelPaths) -> Option<(u16, u16)> {
        let [text] = self.settings(paths, ["ipv4/ip_local_port_range"]).ok()?;
        network::local_ports(&text.ok()?)
    }

    /// The texts of files below `/proc/sys/net`, as they are in it.
    ///
    /// # Errors
    /// If it may not be entered, or these are not this host's files.
    pub(crate) fn settings<const N: usize>(
        &self,
        paths: &KernelPaths,
        names: [&'static str; N],
    ) -> io::Result<[io::Result<String>; N]> {
        let folder = paths.proc.join("sys/net");
        // The files tell the namespace of the thread that reads them.
        let texts = move || names.map(|name| read(&folder.join(name)));
        match self.entrance() {
            None => Ok(texts()),
            Some(_) if !self.net.starts_with("/proc") => Err(io::ErrorKind::Unsupported.into()),
            Some(entrance) => netlink::inside(&entrance, texts),
        }
    }

    /// Its TCP sockets that listen or are connected. They come from netlink, which is quick even with thousands of
    /// connections, otherwise from its files.
    pub(crate) fn sockets(&self) -> Vec<TcpSocket> {
        let sockets =
            self.netlink().and_then(|mut netlink| diag::tcp_sockets(&mut netlink.diag, States::OPEN).ok());
        sockets.unwrap_or_else(|| self.sockets_by_file())
    }

    /// Its unix sockets; none if the kernel does not tell.
    pub(crate) fn unix_sockets(&self) -> Vec<UnixSocket> {
        self.netlink().and_then(|mut netlink| diag::unix_sockets(&mut netlink.diag).ok()).unwrap_or_default()
    }

    /// Its TCP sockets according to its files, which do not tell backlogs.
    pub(crate) fn sockets_by_file(&self) -> Vec<TcpSocket> {
        let read = |name| network::tcp_sockets(&read_or_empty(&self.net.join(name)));
        let mut sockets = read("tcp");
        sockets.extend(read("tcp6"));
        sockets
    }

    /// The addresses that it has now.
    pub(crate) fn addresses(&self) -> BTreeSet<IpAddr> {
        let ipv4 = self.own_ipv4().into_iter().map(IpAddr::from);
        ipv4.chain(self.own_ipv6().into_iter().map(IpAddr::from)).collect()
    }

    /// Those that it has now of the family of this one.
    fn addresses_like(&self, ip: IpAddr) -> Vec<IpAddr> {
        match ip {
            IpAddr::V4(_) => self.own_ipv4().into_iter().map(IpAddr::from).collect(),
            IpAddr::V6(_) => self.own_ipv6().into_iter().map(IpAddr::from).collect(),
        }
    }

    fn own_ipv4(&self) -> Vec<Ipv4Addr> {
        network::own_ipv4(&read_or_empty(&self.net.join("fib_trie")))
    }

    fn own_ipv6(&self) -> Vec<Ipv6Addr> {
        network::own_ipv6(&read_or_empty(&self.net.join("if_inet6")))
    }

    /// The inodes of the sockets that accept connections to `target`.
    pub(crate) fn listeners_on(&self, target: SocketAddr) -> BTreeSet<u64> {
        accepting(&self.sockets(), target)
    }
}

/// The inodes of the sockets that accept connections to `target`: those bound to the address, otherwise to any.
pub(crate) fn accepting(sockets: &[TcpSocket], target: SocketAddr) -> BTreeSet<u64> {
    let listening = |matches: &dyn Fn(IpAddr) -> bool| -> BTreeSet<u64> {
        let listeners = sockets.iter().filter(|socket| socket.state == TcpState::Listen && socket.inode != 0);
        listeners
            .filter(|socket| socket.local.port() == target.port() && matches(socket.local.ip()))
            .map(|socket| socket.inode)
            .collect()
    };
    let exact = listening(&|ip| ip == target.ip());
    if !exact.is_empty() {
        return exact;
    }
    let same_family = listening(&|ip| ip.is_unspecified() && ip.is_ipv4() == target.is_ipv4());
    // A listener on [::] accepts IPv4 too, unless configured otherwise.
    if same_family.is_empty() && target.is_ipv4() {
        return listening(&|ip| ip.is_unspecified());
    }
    same_family
}

/// Addresses, each with the places of the namespaces that have it, ascending.
type Having = BTreeMap<IpAddr, Vec<usize>>;

/// All visible namespaces, our own first.
#[derive(Debug)]
pub(crate) struct Namespaces {
    all: Vec<Namespace>,
    of: BTreeMap<Pid, usize>,
    /// Which of them have an address of IPv4 and of IPv6, read when it is first asked for after a refresh: a search asks for as
    /// many addresses as are called.
    having: [OnceCell<Having>; 2],
}

impl Namespaces {
    pub(crate) fn read(paths: &KernelPaths, tree: &ProcessTree) -> Self {
        let mut namespaces = Self::with_own(paths);
        namespaces.refresh(paths, tree);
        namespaces
    }

    fn with_own(paths: &KernelPaths) -> Self {
        let having = [OnceCell::new(), OnceCell::new()];
        Self { all: vec![Namespace::own(paths)], of: BTreeMap::new(), having }
    }

    /// Reads those of new processes. The others stay where they are, but for the few whose turn it is to be read again.
    pub(crate) fn refresh(&mut self, paths: &KernelPaths, tree: &ProcessTree) {
        let gone = |namespace: &Namespace| namespace.through.is_some_and(|pid| !tree.contains(pid));
        if self.all.iter().any(gone) {
            *self = Self::with_own(paths);
        }
        self.having = [OnceCell::new(), OnceCell::new()];
        let mut known = std::mem::take(&mut self.of);
        known.retain(|pid, _| !tree.is_due(*pid));
        for pid in tree.pids() {
            if let Some(index) = known.get(&pid).copied().or_else(|| self.find(paths, pid)) {
                self.of.insert(pid, index);
            }
        }
    }

    fn find(&mut self, paths: &KernelPaths, pid: Pid) -> Option<usize> {
        let id = read_id(&paths.process(pid))?;
        let known = self.all.iter().position(|namespace| namespace.id == id);
        Some(known.unwrap_or_else(|| {
            self.all.push(Namespace::of(paths, pid, id));
            self.all.len() - 1
        }))
    }

    /// The ids of all but this process's own.
    pub(crate) fn ids(&self) -> BTreeSet<&str> {
        self.all.iter().map(|namespace| namespace.id.as_str()).collect()
    }

    /// All addresses that any of them has now.
    pub(crate) fn addresses(&self) -> BTreeSet<IpAddr> {
        self.all.iter().flat_map(Namespace::addresses).collect()
    }

    /// This process's own.
    pub(crate) fn own(&self) -> Option<&Namespace> {
        self.all.first()
    }

    /// The namespaces in which a connection from `from` to `ip` may end: `from` itself if it has the address, as always
    /// for a loopback address, otherwise any other that has it.
    pub(crate) fn reachable<'a>(
        &'a self,
        from: Option<&'a Namespace>,
        ip: IpAddr,
    ) -> impl Iterator<Item = &'a Namespace> {
        let having: &[usize] = if ip.is_loopback() { &[] } else { self.having(ip) };
        let having = having.iter().filter_map(move |place| self.all.get(*place));
        let others = having.clone().filter(move |other| from.is_none_or(|from| from.id != other.id));
        let is_own = move |from: &&Namespace| having.clone().any(|other| other.id == from.id);
        from.into_iter()
            .filter(move |from| ip.is_loopback() || ip.is_unspecified() || is_own(from))
            .chain(others)
    }

    /// The places of those that have the address.
    fn having(&self, ip: IpAddr) -> &[usize] {
        let [ipv4, ipv6] = &self.having;
        let known = if ip.is_ipv4() { ipv4 } else { ipv6 };
        let all = known.get_or_init(|| {
            let mut having = Having::new();
            for (place, namespace) in self.all.iter().enumerate() {
                for own in namespace.addresses_like(ip) {
                    having.entry(own).or_default().push(place);
                }
            }
            having
        });
        all.get(&ip).map(Vec::as_slice).unwrap_or_default()
    }

    /// The first namespace, our own before others, in which anything listens on the port, with the inodes of the sockets
    /// that listen on one address and that address.
    pub(crate) fn listening_on_port(&self, port: u16) -> Option<(Namespace, BTreeSet<u64>, SocketAddr)> {
        self.all.iter().find_map(|namespace| {
            let sockets = namespace.sockets();
            let listens =
                |socket: &&TcpSocket| socket.state == TcpState::Listen && socket.local.port() == port;
            // What listens on any address is called from elsewhere rather than what listens on loopback alone.
            let rank = |socket: &&TcpSocket| (socket.local.ip().is_loopback(), socket.local.is_ipv6());
            let address = sockets.iter().filter(listens).min_by_key(rank)?.local;
            Some((namespace.clone(), accepting(&sockets, address), address))
        })
    }

    /// The namespace of a process; our own if that may not be seen.
    pub(crate) fn of(&self, pid: Pid) -> Option<&Namespace> {
        self.all.get(self.of.get(&pid).copied().unwrap_or(0))
    }
}

pub(super) fn read_id(process: &std::path::Path) -> Option<String> {
    let target = std::fs::read_link(process.join("ns/net")).ok()?;
    Some(target.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(local: &str, inode: u64) -> TcpSocket {
        TcpSocket {
            local: local.parse().unwrap(),
            remote: "0.0.0.0:0".parse().unwrap(),
            state: TcpState::Listen,
            receive_queue: 0,
            backlog: 0,
            inode,
        }
    }

    fn inodes(sockets: &[TcpSocket], target: &str) -> Vec<u64> {
        accepting(sockets, target.parse().unwrap()).into_iter().collect()
    }

    #[test]
    fn the_most_specific_listener_wins() {
        let sockets = [
            listener("0.0.0.0:80", 1),
            listener("127.0.0.1:80", 2),
            listener("[::]:80", 3),
            listener("127.0.0.1:81", 4),
        ];
        assert_eq!(inodes(&sockets, "127.0.0.1:80"), [2]);
        assert_eq!(inodes(&sockets, "10.0.0.1:80"), [1]);
        assert_eq!(inodes(&sockets, "[::1]:80"), [3]);
        assert!(inodes(&sockets, "127.0.0.1:82").is_empty());
    }

    #[test]
    fn a_listener_on_all_of_ipv6_accepts_ipv4_too() {
        assert_eq!(inodes(&[listener("[::]:80", 3)], "127.0.0.1:80"), [3]);
        assert!(inodes(&[listener("0.0.0.0:80", 1)], "[::1]:80").is_empty());
    }

    /// Processes 1, 2 and so on, each in a namespace of its own with this address.
    fn host(addresses: &[&str]) -> (tempfile::TempDir, KernelPaths) {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path().to_owned();
        for (pid, address) in (1u32..).zip(addresses) {
            let process = proc.join(pid.to_string());
            std::fs::create_dir_all(process.join("ns")).unwrap();
            std::fs::create_dir_all(process.join("net")).unwrap();
            std::os::unix::fs::symlink(format!("net:[{pid}]"), process.join("ns/net")).unwrap();
            std::fs::write(process.join("stat"), format!("{pid} (app) S 1{}", " 0".repeat(30))).unwrap();
            has(&proc, pid, address);
        }
        let paths = KernelPaths { proc, ..KernelPaths::default() };
        (folder, paths)
    }

    fn has(proc: &std::path::Path, pid: u32, address: &str) {
        let text = format!("Local:\n |-- {address}\n /32 host LOCAL\n");
        std::fs::write(proc.join(format!("{pid}/net/fib_trie")), text).unwrap();
    }

    fn that_have(namespaces: &Namespaces, ip: &str) -> Vec<Option<Pid>> {
        namespaces.reachable(None, ip.parse().unwrap()).map(|namespace| namespace.through).collect()
    }

    /// A search asks about every address that is called.
    #[test]
    fn the_addresses_of_all_namespaces_are_read_once_in_a_search() {
        let (_folder, paths) = host(&["10.0.0.1", "10.0.0.2", "10.0.0.2"]);
        let mut tree = ProcessTree::read(&paths).unwrap();
        let mut namespaces = Namespaces::read(&paths, &tree);
        assert_eq!(that_have(&namespaces, "10.0.0.2"), [Some(2), Some(3)]);
        has(&paths.proc, 1, "10.0.0.9");
        assert_eq!(that_have(&namespaces, "10.0.0.1"), [Some(1)], "it is not read again");
        assert!(that_have(&namespaces, "127.0.0.1").is_empty());
        tree.refresh(&paths).unwrap();
        namespaces.refresh(&paths, &tree);
        assert_eq!(that_have(&namespaces, "10.0.0.9"), [Some(1)], "the next search reads it");
        assert!(that_have(&namespaces, "10.0.0.1").is_empty());
        let from = namespaces.of(2).unwrap();
        let found = namespaces.reachable(Some(from), "10.0.0.2".parse().unwrap());
        assert_eq!(found.map(|other| other.through).collect::<Vec<_>>(), [Some(2), Some(3)], "its own first");
    }

    #[test]
    fn reuseport_gives_several() {
        assert_eq!(inodes(&[listener("0.0.0.0:80", 1), listener("0.0.0.0:80", 2)], "127.0.0.1:80"), [1, 2]);
    }
}
