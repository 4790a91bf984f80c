//! Requests outstanding on the connections to the server and between the tiers behind it.

mod owners;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use analysis::counters::{CLIENTS_MAX, Hop, ServerAddress};

use crate::clock::{monotonic_us, own_thread_cpu_us};
use crate::exchange::{End, Known, Lead, Request, request};
use crate::kernel_files::{KernelPaths, Pid};
use crate::netlink::NetlinkSockets;
use crate::netlink::conntrack::Tuple;
use crate::netlink::diag::{self, UnixSocket};
use crate::proc::network::{TcpSocket, TcpState};
use crate::topology::namespaces::Namespace;
use crate::topology::translation::Translation;
use crate::topology::{Call, Callee, Topology, unix_address};
use owners::Owners;

/// Looking may take at most one part in this many of a processor: with thousands of connections it happens less often.
const SHARE: u64 = 250;

/// Most addresses told of: first those that users call, then those with most connections.
const HOPS_MAX: usize = 64;

/// Most accepted connections of which it is asked in one look how their clients see them.
const ASKED_MAX: usize = HOPS_MAX * CLIENTS_MAX;

/// Looks at the connections of all namespaces in which tiers live.
#[derive(Debug)]
pub(super) struct HopSampler {
    paths: KernelPaths,
    own: Namespace,
    translation: Translation,
    /// By the id of their namespace; `None` where it may not be entered, so its files have to do.
    netlink: BTreeMap<String, Option<NetlinkSockets>>,
    before: Before,
    leads: Leads,
    owners: Owners,
    next_at_us: u64,
}

/// What one look at the connections saw.
#[derive(Debug)]
pub(super) struct Look {
    /// In the order of their addresses, and after them the addresses that clients know servers here by.
    pub(super) hops: Vec<Hop>,
    /// How many further addresses had connections.
    pub(super) left_out: u64,
}

/// The connections of the last look, by the address that they lead to.
type Before = BTreeMap<ServerAddress, Connections>;

/// Connections, and what is known of each.
type Connections = BTreeMap<Connection, Option<Known>>;

/// What is known of the clients of each address.
type Leads = BTreeMap<ServerAddress, Lead>;

/// A connection. It has the same value at the next look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Connection {
    Tcp(Ends),
    /// The inode of the server's socket.
    Unix(u64),
}

/// The two ends of a TCP connection. Loopback addresses are told apart by namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    server: SocketAddr,
    client: SocketAddr,
    scope: usize,
}

impl Ends {
    fn new(client: SocketAddr, server: SocketAddr, namespace: usize) -> Self {
        let scope = if server.ip().is_loopback() { namespace + 1 } else { 0 };
        Self { server, client, scope }
    }
}

/// What is known of a TCP connection.
#[derive(Debug, Default)]
struct Seen<'a> {
    client: Option<End>,
    server: Option<End>,
    /// The number of the namespace in which the server's end is seen.
    accepted_in: Option<usize>,
    listener: Option<u64>,
    unaccepted: bool,
    call: Option<&'a Call>,
    /// The socket at the client's end of a call; `None` where it is not seen.
    client_inode: Option<u64>,
}

impl Seen<'_> {
    /// The process that listens, as far as it is known.
    fn served_by(&self, topology: &Topology) -> Option<Pid> {
        let called = || self.call.and_then(|call| call.listeners.first().copied());
        owner(topology, self.listener.or_else(called))
    }
}

/// A hop, and the connections that it counts; those of processes that are no tier are among them, which it does not count.
#[derive(Debug)]
struct Counted {
    hop: Hop,
    connections: Connections,
    /// Those of the clients that are told whose connection a server here has accepted, with the number of its namespace.
    accepted: Vec<(usize, Tuple)>,
}

impl Counted {
    /// Whether it has connections, and all of them are of processes that are no tier.
    fn is_of_others(&self) -> bool {
        self.hop.connections == 0 && !self.connections.is_empty()
    }
}

impl HopSampler {
    pub(super) fn new(paths: &KernelPaths) -> Self {
        Self {
            paths: paths.clone(),
            own: Namespace::own(paths),
            translation: Translation::new(paths),
            netlink: BTreeMap::new(),
            before: BTreeMap::new(),
            leads: BTreeMap::new(),
            owners: Owners::default(),
            next_at_us: 0,
        }
    }

    /// Looks at the connections; `None` if no server is watched, or the last look was too recent for what it cost.
    pub(super) fn sample(&mut self, topology: &Topology) -> Option<Look> {
        let (now_us, cpu_us) = (monotonic_us(), own_thread_cpu_us());
        if topology.is_unseen() || now_us < self.next_at_us {
            return None;
        }
        let look = self.look(topology, now_us);
        // Asking whose the sockets are has a share of its own, so that looks are not put off by it.
        let cost_us = own_thread_cpu_us().saturating_sub(cpu_us).saturating_sub(self.owners.cost_us());
        self.next_at_us = now_us + cost_us.saturating_mul(SHARE);
        Some(look)
    }

    fn look(&mut self, topology: &Topology, now_us: u64) -> Look {
        let others = topology.namespaces.iter().filter(|other| other.id != self.own.id);
        let namespaces: Vec<Namespace> = [self.own.clone()].into_iter().chain(others.cloned()).collect();
        let is_there = |id: &str| namespaces.iter().any(|namespace| namespace.id == id);
        self.netlink.retain(|id, _| is_there(id));
        self.translation.retain(is_there);
        let mut tcp = BTreeMap::new();
        let mut unix = Vec::new();
        let calls_unix = topology.calls.keys().any(|callee| matches!(callee, Callee::Unix(_)));
        for (number, namespace) in namespaces.iter().enumerate() {
            let sockets = self.tcp_ends(namespace);
            let translation = &mut self.translation;
            let real = |tuple| seen_by_server(translation, (namespace, tuple), topology);
            add_tcp(&mut tcp, &sockets, (number, namespace, real), topology);
            if calls_unix {
                unix.push(self.unix_sockets(namespace));
            }
        }
        let kept = kept(&tcp, &unix, topology, &self.before);
        self.owners.learn(&self.paths, topology, &kept, now_us);
        let mut found = BTreeMap::new();
        unix.iter().for_each(|sockets| count_unix(&mut found, sockets, topology, &self.owners));
        count_tcp(&mut found, tcp, topology, (&self.before, &mut self.leads, &self.owners));
        self.leads.retain(|address, _| found.contains_key(address));
        let called_as = self.called_as(&found, &namespaces);
        let mut look = self.remember(found, topology);
        look.hops.iter_mut().for_each(|hop| hop.translation_unread = self.may_lead_elsewhere(hop));
        look.hops.extend(called_as);
        look
    }

    /// Hops of addresses that clients know servers here by, where address translation on this host leads from these to them:
    /// with their clients as they see themselves, and without connections, which are counted where they lead.
    fn called_as(&mut self, found: &BTreeMap<ServerAddress, Counted>, namespaces: &[Namespace]) -> Vec<Hop> {
        let accepted = found.values().flat_map(|counted| {
            let server = counted.hop.server;
            counted.accepted.iter().filter_map(move |(number, seen)| Some((server?, *number, *seen)))
        });
        let mut clients: BTreeMap<(SocketAddr, Pid), BTreeSet<SocketAddr>> = BTreeMap::new();
        for (server, number, seen) in accepted.take(ASKED_MAX) {
            let Some(namespace) = namespaces.get(number) else { continue };
            let begun = self.translation.seen_by_client(namespace, seen);
            if begun != seen {
                clients.entry((begun.server, server)).or_default().insert(begun.client);
            }
        }
        let hop = |((address, server), clients): ((SocketAddr, Pid), BTreeSet<SocketAddr>)| Hop {
            server: Some(server),
            clients: clients.into_iter().take(CLIENTS_MAX).collect(),
            ..Hop::without_connections(ServerAddress::Tcp { address })
        };
        clients.into_iter().map(hop).collect()
    }

    /// Whether a tier calls an address from which translation may lead elsewhere, which may not be read.
    fn may_lead_elsewhere(&self, hop: &Hop) -> bool {
        let is_call = hop.server.is_none() && !hop.callers.is_empty();
        is_call && !hop.address.is_within_a_host() && self.translation.is_refused()
    }

    fn tcp_ends(&mut self, namespace: &Namespace) -> Vec<(TcpSocket, End)> {
        let by_netlink = self.netlink(namespace).and_then(|netlink| diag::tcp_ends(&mut netlink.diag).ok());
        let by_file = || namespace.sockets_by_file().into_iter().map(|socket| (socket.clone(), end(&socket)));
        by_netlink.unwrap_or_else(|| by_file().collect())
    }

    fn unix_sockets(&mut self, namespace: &Namespace) -> Vec<UnixSocket> {
        let netlink = self.netlink(namespace);
        netlink.and_then(|netlink| diag::unix_sockets(&mut netlink.diag).ok()).unwrap_or_default()
    }

    fn netlink(&mut self, namespace: &Namespace) -> Option<&mut NetlinkSockets> {
        self.netlink.entry(namespace.id.clone()).or_insert_with(|| namespace.netlink()).as_mut()
    }

    /// Counts the connections that are new, and returns the users' hop and those with most connections, by address.
    fn remember(&mut self, found: BTreeMap<ServerAddress, Counted>, topology: &Topology) -> Look {
        let mut counted: Vec<Counted> = found.into_values().collect();
        // Of one user the server may have fewer connections than any tier behind it.
        let is_users = |hop: &Hop| hop.connections > 0 && serves_users(topology, hop.server);
        let rank = |hop: &Hop| (is_users(hop), hop.connections);
        counted.sort_by_key(|counted| std::cmp::Reverse(rank(&counted.hop)));
        let beyond = counted.iter().skip(HOPS_MAX);
        let left_out = beyond.filter(|counted| counted.hop.connections > 0).count() as u64;
        counted.truncate(HOPS_MAX);
        let before = std::mem::take(&mut self.before);
        let mut hops = Vec::with_capacity(counted.len());
        for counted in counted {
            let is_of_others = counted.is_of_others();
            let Counted { mut hop, connections, .. } = counted;
            if let Some(before) = before.get(&hop.address) {
                hop.opened = connections.keys().filter(|now| !before.contains_key(now)).count() as u64;
            }
            self.before.insert(hop.address.clone(), connections);
            if !is_of_others {
                hops.push(hop);
            }
        }
        hops.sort_by(|a, b| a.address.cmp(&b.address));
        Look { hops, left_out }
    }
}

/// What the files of a namespace tell of one end.
fn end(socket: &TcpSocket) -> End {
    End { unread: socket.receive_queue > 0, ..End::default() }
}

/// Adds the ends in one namespace that belong to a hop.
fn add_tcp<'a>(
    found: &mut BTreeMap<Ends, Seen<'a>>,
    sockets: &[(TcpSocket, End)],
    (number, namespace, mut real): (usize, &Namespace, impl FnMut(Tuple) -> Tuple),
    topology: &'a Topology,
) {
    let listeners = listeners(sockets, topology);
    let calls = calls_from(namespace, topology);
    let is_listening = |(socket, _): &&(TcpSocket, End)| socket.state == TcpState::Listen;
    let listened_at: BTreeSet<u16> =
        sockets.iter().filter(is_listening).map(|(socket, _)| socket.local.port()).collect();
    let connected = sockets.iter().filter(|(socket, _)| socket.state == TcpState::Established);
    for (TcpSocket { local, remote, inode, .. }, end) in connected {
        if let Some(listener) = accepted_by(&listeners, *local) {
            let seen = found.entry(Ends::new(*remote, *local, number)).or_default();
            (seen.server, seen.listener, seen.unaccepted) = (Some(*end), Some(listener), *inode == 0);
            seen.accepted_in = Some(number);
            continue;
        }
        let made = Tuple { client: *local, server: *remote };
        // What other servers accepted is no call, and each of their clients would have to be asked for.
        let is_accepted = listened_at.contains(&local.port());
        let Tuple { client, server } = if is_accepted { made } else { real(made) };
        let is_of_users = topology.is_called_at(*remote);
        // To where it is led on is not known: it counts where it is accepted.
        if is_of_users && topology.service == Some(server) {
            continue;
        }
        if is_of_users || calls.contains_key(&server) {
            let seen = found.entry(Ends::new(client, server, number)).or_default();
            (seen.client, seen.call) = (Some(*end), calls.get(&server).copied());
            // What leads to the server itself is the users'.
            seen.client_inode = Some(*inode).filter(|inode| *inode != 0 && !is_of_users);
        }
    }
}

/// A connection that was made in a namespace, as its server sees it. Where the load is led on only in the server's namespace,
/// that is asked too.
fn seen_by_server(
    translation: &mut Translation,
    (namespace, tuple): (&Namespace, Tuple),
    topology: &Topology,
) -> Tuple {
    let seen = translation.seen_by_server(namespace, tuple);
    match &topology.namespace {
        Some(within) if topology.service == Some(seen.server) && within.id != namespace.id => {
            translation.seen_by_server(within, seen)
        }
        _ => seen,
    }
}

/// The tiers' listening sockets by port: address and inode.
fn listeners(sockets: &[(TcpSocket, End)], topology: &Topology) -> BTreeMap<u16, Vec<(IpAddr, u64)>> {
    let mut found: BTreeMap<u16, Vec<(IpAddr, u64)>> = BTreeMap::new();
    for (socket, _) in sockets {
        if socket.state == TcpState::Listen && topology.listeners.contains_key(&socket.inode) {
            found.entry(socket.local.port()).or_default().push((socket.local.ip(), socket.inode));
        }
    }
    found
}

fn accepted_by(listeners: &BTreeMap<u16, Vec<(IpAddr, u64)>>, local: SocketAddr) -> Option<u64> {
    let at = listeners.get(&local.port())?;
    let bound = |of: &&(IpAddr, u64)| of.0 == local.ip();
    let found = at.iter().find(bound).or_else(|| at.iter().find(|of| of.0.is_unspecified()));
    found.map(|of| of.1)
}

fn calls_from<'a>(namespace: &Namespace, topology: &'a Topology) -> BTreeMap<SocketAddr, &'a Call> {
    let here = |(callee, call): (&Callee, &'a Call)| match callee {
        Callee::Tcp(id, remote) if *id == namespace.id => Some((*remote, call)),
        _ => None,
    };
    topology.calls.iter().filter_map(here).collect()
}

/// The clients' sockets of connections between tiers that the last look saw as well. One that lasts for a request is not
/// worth being asked for, and may be closed by then. All connections to what users call count.
fn kept(
    tcp: &BTreeMap<Ends, Seen<'_>>,
    unix: &[Vec<UnixSocket>],
    topology: &Topology,
    before: &Before,
) -> BTreeSet<u64> {
    let was_there = |address: &ServerAddress, connection: &Connection| {
        before.get(address).is_some_and(|all| all.contains_key(connection))
    };
    let by_tcp = tcp.iter().filter_map(|(ends, seen)| {
        let inode = seen.client_inode?;
        let is_call = seen.call.is_some() && !serves_users(topology, seen.served_by(topology));
        let address = ServerAddress::Tcp { address: ends.server };
        (is_call && was_there(&address, &Connection::Tcp(*ends))).then_some(inode)
    });
    let by_unix = unix.iter().flat_map(|sockets| {
        accepted_from_tiers(sockets, topology)
            .filter(move |socket| was_there(&unix_address(&socket.name), &Connection::Unix(socket.inode)))
            .filter_map(|socket| socket.peer)
    });
    by_tcp.chain(by_unix).collect()
}

/// The unix sockets on which listeners that tiers call accepted connections, without those of what users call.
fn accepted_from_tiers<'a>(
    sockets: &'a [UnixSocket],
    topology: &'a Topology,
) -> impl Iterator<Item = &'a UnixSocket> {
    let listeners = unix_listeners(sockets, topology);
    let is_called = |listener: &UnixSocket| {
        topology.calls.contains_key(&Callee::Unix(listener.inode))
            && !serves_users(topology, owner(topology, Some(listener.inode)))
    };
    let called: BTreeSet<&[u8]> =
        listeners.into_iter().filter(|(_, listener)| is_called(listener)).map(|(name, _)| name).collect();
    sockets.iter().filter(move |socket| !socket.listening && called.contains(&*socket.name))
}

/// Whether users call what a process serves.
fn serves_users(topology: &Topology, server: Option<Pid>) -> bool {
    server.is_some_and(|pid| topology.servers.binary_search(&pid).is_ok())
}

fn count_tcp(
    found: &mut BTreeMap<ServerAddress, Counted>,
    tcp: BTreeMap<Ends, Seen<'_>>,
    topology: &Topology,
    (before, leads, owners): (&Before, &mut Leads, &Owners),
) {
    for (ends, seen) in tcp {
        let address = ServerAddress::Tcp { address: ends.server };
        let connection = Connection::Tcp(ends);
        let known = before.get(&address).and_then(|all| all.get(&connection)).copied().flatten();
        let lead = leads.entry(address.clone()).or_default();
        let counted = entry(found, address);
        if owners.is_of_others(seen.client_inode) {
            counted.connections.insert(connection, known);
            continue;
        }
        let hop = &mut counted.hop;
        hop.server = hop.server.or_else(|| seen.served_by(topology));
        if let Some(call) = seen.call {
            add_callers(hop, call);
        }
        hop.unaccepted += u64::from(seen.unaccepted);
        // They come in ascending order.
        if hop.clients.len() < CLIENTS_MAX {
            hop.clients.push(ends.client);
            let tuple = Tuple { client: ends.client, server: ends.server };
            counted.accepted.extend(seen.accepted_in.map(|number| (number, tuple)));
        }
        let (request, known) = request(seen.client.as_ref(), seen.server.as_ref(), known, lead);
        count(hop, request);
        counted.connections.insert(connection, known);
    }
}

/// Counts the connections to the unix sockets of one namespace that tiers listen on.
fn count_unix(
    found: &mut BTreeMap<ServerAddress, Counted>,
    sockets: &[UnixSocket],
    topology: &Topology,
    owners: &Owners,
) {
    let listeners = unix_listeners(sockets, topology);
    for listener in listeners.values() {
        let hop = &mut entry(found, unix_address(&listener.name)).hop;
        hop.server = owner(topology, Some(listener.inode));
        if let Some(call) = topology.calls.get(&Callee::Unix(listener.inode)) {
            add_callers(hop, call);
        }
        // They are not listed, and what was sent on them nobody can have read.
        hop.connections += listener.receive_queue;
        hop.unaccepted += listener.receive_queue;
        hop.unread += listener.receive_queue;
    }
    let unread: BTreeMap<u64, bool> =
        sockets.iter().map(|socket| (socket.inode, socket.receive_queue > 0)).collect();
    for socket in sockets.iter().filter(|socket| !socket.listening && listeners.contains_key(&*socket.name)) {
        let counted = entry(found, unix_address(&socket.name));
        counted.connections.insert(Connection::Unix(socket.inode), None);
        if owners.is_of_others(socket.peer) {
            continue;
        }
        let answered = socket.peer.and_then(|peer| unread.get(&peer)).copied().unwrap_or(false);
        count(&mut counted.hop, unix_request(socket.receive_queue > 0, answered));
    }
}

/// The tiers' listening unix sockets, by name.
fn unix_listeners<'a>(sockets: &'a [UnixSocket], topology: &Topology) -> BTreeMap<&'a [u8], &'a UnixSocket> {
    let of_tiers = |socket: &&UnixSocket| socket.listening && topology.listeners.contains_key(&socket.inode);
    sockets.iter().filter(of_tiers).map(|socket| (socket.name.as_slice(), socket)).collect()
}

fn unix_request(unread: bool, answered: bool) -> Request {
    match (unread, answered) {
        (true, _) => Request::Unread,
        (_, true) => Request::None,
        _ => Request::Unclear,
    }
}

fn entry(found: &mut BTreeMap<ServerAddress, Counted>, address: ServerAddress) -> &mut Counted {
    found.entry(address.clone()).or_insert_with(|| Counted {
        hop: Hop::without_connections(address),
        connections: Connections::new(),
        accepted: Vec::new(),
    })
}

fn owner(topology: &Topology, listener: Option<u64>) -> Option<Pid> {
    topology.listeners.get(&listener?).copied().flatten()
}

fn add_callers(hop: &mut Hop, call: &Call) {
    if !call.callers.iter().all(|pid| hop.callers.binary_search(pid).is_ok()) {
        let all: BTreeSet<Pid> = hop.callers.iter().chain(&call.callers).copied().collect();
        hop.callers = all.into_iter().collect();
    }
}

fn count(hop: &mut Hop, request: Request) {
    hop.connections += 1;
    match request {
        Request::None => {}
        Request::Unread => hop.unread += 1,
        Request::Held => hop.held += 1,
        Request::Unclear => hop.unclear += 1,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, RawFd};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::{Duration, Instant};

    use super::*;

    fn inode(fd: RawFd) -> u64 {
        std::fs::metadata(format!("/proc/self/fd/{fd}")).unwrap().ino()
    }

    /// A topology of which this process is the server, listening at `listener`.
    fn topology(target: SocketAddr, listener: u64) -> Topology {
        let mut topology = Topology::unseen(target);
        topology.listeners.insert(listener, Some(7));
        topology
    }

    /// Looks until the hop to this process is as expected: what was sent need not be there at once.
    fn expect(topology: &Topology, unread: u64, held: u64, unclear: u64) {
        let give_up = Instant::now() + Duration::from_secs(20);
        let mut last = None;
        while Instant::now() < give_up {
            let look = HopSampler::new(&KernelPaths::default()).sample(topology).unwrap();
            last = look.hops.into_iter().find(|hop| hop.server == Some(7));
            let found = last.as_ref().map(|hop| (hop.unread, hop.held, hop.unclear));
            if found == Some((unread, held, unclear)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("expected {unread} unread, {held} held, {unclear} unclear: {last:?}");
    }

    #[test]
    fn a_request_is_unread_then_held_then_answered() {
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(bind).unwrap();
            let topology = topology(listener.local_addr().unwrap(), inode(listener.as_raw_fd()));
            let mut client = TcpStream::connect(topology.target).unwrap();
            client.write_all(b"request").unwrap();
            expect(&topology, 1, 0, 0);
            let (mut server, _) = listener.accept().unwrap();
            for _ in 0..3 {
                server.read_exact(&mut [0; 7]).unwrap();
                expect(&topology, 0, 1, 0);
                server.write_all(b"response").unwrap();
                expect(&topology, 0, 0, 0);
                client.read_exact(&mut [0; 8]).unwrap();
                client.write_all(b"request").unwrap();
                expect(&topology, 1, 0, 0);
            }
        }
    }

    #[test]
    fn what_is_not_led_on_from_the_address_that_the_load_calls_is_not_the_servers() {
        let [server, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let mut topology = topology(server.local_addr().unwrap(), inode(server.as_raw_fd()));
        let service = other.local_addr().unwrap();
        topology.service = Some(service);
        let _clients = [service, topology.target].map(|address| TcpStream::connect(address).unwrap());
        let look = HopSampler::new(&KernelPaths::default()).sample(&topology).unwrap();
        let told: Vec<_> = look.hops.iter().map(|hop| (&hop.address, hop.connections)).collect();
        assert_eq!(told, [(&ServerAddress::Tcp { address: topology.target }, 1)]);
    }

    #[test]
    fn addresses_beyond_the_limit_are_counted_and_the_users_is_never_left_out() {
        let mut topology = topology(([10, 0, 0, 7], 80).into(), 1);
        topology.servers = vec![7];
        let address = |port: u16| ServerAddress::Tcp { address: ([10, 0, 0, 7], port).into() };
        let mut found = BTreeMap::new();
        // One of them has no connections: a socket that a tier listens on, and nobody calls.
        for connections in 0..79_u16 {
            entry(&mut found, address(1_000 + connections)).hop.connections = connections.into();
        }
        let users = &mut entry(&mut found, address(80)).hop;
        (users.server, users.connections) = (Some(7), 1);
        let mut sampler = HopSampler::new(&KernelPaths::default());
        let look = sampler.remember(found, &topology);
        assert_eq!((look.hops.len(), look.left_out), (HOPS_MAX, 15));
        assert_eq!((&look.hops[0].address, &look.hops[1].address), (&address(80), &address(1_016)));
        let mut found = BTreeMap::new();
        (0..HOPS_MAX as u16).for_each(|port| entry(&mut found, address(port)).hop.connections = 1);
        entry(&mut found, address(80 + HOPS_MAX as u16));
        assert_eq!(sampler.remember(found, &topology).left_out, 0);
    }

    #[test]
    fn unix_sockets_tell_what_is_unread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let number = inode(listener.as_raw_fd());
        let mut topology = topology(([127, 0, 0, 1], 9).into(), number);
        topology.calls.insert(Callee::Unix(number), Call::default());
        let clients = [UnixStream::connect(&path).unwrap(), UnixStream::connect(&path).unwrap()];
        expect(&topology, 2, 0, 0);
        let (mut server, _) = listener.accept().unwrap();
        expect(&topology, 1, 0, 1);
        (&clients[0]).write_all(b"request").unwrap();
        expect(&topology, 2, 0, 0);
        server.read_exact(&mut [0; 7]).unwrap();
        server.write_all(b"response").unwrap();
        expect(&topology, 1, 0, 0);
    }
}
