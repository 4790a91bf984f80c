//! Where connections really lead: service addresses are translated on the way, and connection tracking tells to what.
//!
//! It is asked about a connection where that begins or ends, and in this process's own namespace, through which those of
//! containers go. What it says of a call is what the server sees: its own address, and the client's as it comes to it. What it
//! says of a connection that was accepted is what the client sees, also where that is on another host. Without root it says
//! nothing, and connections are taken as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;

use super::namespaces::Namespace;
use crate::clock::monotonic_us;
use crate::kernel_files::KernelPaths;
use crate::netlink::NetlinkSocket;
use crate::netlink::conntrack::{self, Called, Side, Timeouts, Tuple};

/// More connections than this are forgotten and asked for again.
const KNOWN_MAX: usize = 1 << 14;

/// After so long a translated connection is asked for again, microseconds: another may have its ports by then.
const KNOWN_US: u64 = 1_000_000;

/// The same for what is not translated, or not tracked: a service may get its address later.
const PLAIN_US: u64 = 5_000_000;

/// Asks where connections really lead, and remembers answers.
#[derive(Debug)]
pub(crate) struct Translation {
    own: Namespace,
    /// Whether this kernel tracks connections at all.
    is_tracking: bool,
    /// By the id of their namespace.
    namespaces: BTreeMap<String, Tracked>,
}

/// What is known of the connections of one namespace.
#[derive(Debug)]
struct Tracked {
    /// `None` where it may not be asked, or failed to answer.
    netlink: Option<NetlinkSocket>,
    /// Whether this process may not ask, which stays so.
    is_refused: bool,
    /// What is not translated, with when that was asked.
    plain: BTreeMap<(Side, Tuple), u64>,
    /// Connections that are, with when that was asked.
    translated: BTreeMap<(Side, Tuple), (Tuple, u64)>,
}

/// Where connections to an address lead.
#[derive(Debug, Default)]
pub(crate) struct Leads {
    /// The addresses to which they are translated, as far as there are any and they are in use.
    pub(crate) to: BTreeSet<SocketAddr>,
    /// Whether connections are tracked, and this process may not ask about them.
    pub(crate) is_refused: bool,
}

/// Where the connections to an address lead that a namespace translates.
pub(crate) fn leads_to(paths: &KernelPaths, namespace: &Namespace, called: Called<'_>) -> Leads {
    if !is_tracking(paths) {
        return Leads::default();
    }
    let asked = conntrack::open(namespace)
        .and_then(|netlink| conntrack::leads_to(netlink, called, timeouts(paths, namespace)));
    let is_refused = asked.as_ref().is_err_and(is_refusal);
    Leads { to: asked.unwrap_or_default(), is_refused }
}

/// The kernel's settings of how long it keeps connections, with its defaults, seconds: established ones, those with something
/// to acknowledge, and those that end.
const TIMEOUTS: [(&str, u32); 7] = [
    ("netfilter/nf_conntrack_tcp_timeout_established", 432_000),
    ("netfilter/nf_conntrack_tcp_timeout_unacknowledged", 300),
    ("netfilter/nf_conntrack_tcp_timeout_fin_wait", 120),
    ("netfilter/nf_conntrack_tcp_timeout_close_wait", 60),
    ("netfilter/nf_conntrack_tcp_timeout_last_ack", 30),
    ("netfilter/nf_conntrack_tcp_timeout_time_wait", 120),
    ("netfilter/nf_conntrack_tcp_timeout_close", 10),
];

/// Those of a namespace, or else the kernel's defaults.
fn timeouts(paths: &KernelPaths, namespace: &Namespace) -> Timeouts {
    let mut seconds = TIMEOUTS.map(|(_, default)| default);
    if let Ok(texts) = namespace.settings(paths, TIMEOUTS.map(|(name, _)| name)) {
        for (seconds, text) in seconds.iter_mut().zip(texts) {
            *seconds = text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(*seconds);
        }
    }
    let [established_s, unacknowledged_s, ending_s @ ..] = seconds;
    Timeouts { established_s, unacknowledged_s, ending_s }
}

fn is_tracking(paths: &KernelPaths) -> bool {
    // Asking a kernel that has it as a module would load that.
    let counter = paths.proc.join("sys/net/netfilter/nf_conntrack_count");
    paths.proc == KernelPaths::default().proc && counter.exists()
}

impl Translation {
    pub(crate) fn new(paths: &KernelPaths) -> Self {
        Self { own: Namespace::own(paths), is_tracking: is_tracking(paths), namespaces: BTreeMap::new() }
    }

    /// A connection that a client in this namespace made, as its server sees it.
    pub(crate) fn seen_by_server(&mut self, namespace: &Namespace, tuple: Tuple) -> Tuple {
        self.other_side(namespace, tuple, Side::Client)
    }

    /// A connection that a server in this namespace accepted, as its client sees it before translation on this host.
    pub(crate) fn seen_by_client(&mut self, namespace: &Namespace, tuple: Tuple) -> Tuple {
        self.other_side(namespace, tuple, Side::Server)
    }

    /// Whether connections are tracked that may be translated, and this process may not ask about any of them.
    pub(crate) fn is_refused(&self) -> bool {
        self.namespaces.values().any(|tracked| tracked.is_refused)
    }

    /// Whether any namespace failed to answer in this look.
    pub(crate) fn has_failed(&self) -> bool {
        self.namespaces.values().any(Tracked::has_failed)
    }

    fn other_side(&mut self, namespace: &Namespace, tuple: Tuple, side: Side) -> Tuple {
        if !self.is_tracking {
            return tuple;
        }
        let first = self.within(namespace, tuple, side);
        if namespace.id == self.own.id || first.server.ip().is_loopback() {
            return first;
        }
        let own = self.own.clone();
        self.within(&own, first, side)
    }

    fn within(&mut self, namespace: &Namespace, tuple: Tuple, side: Side) -> Tuple {
        if !self.namespaces.contains_key(&namespace.id) {
            self.namespaces.insert(namespace.id.clone(), Tracked::new(conntrack::open(namespace)));
        }
        self.namespaces.get_mut(&namespace.id).map_or(tuple, |tracked| tracked.other_side(tuple, side))
    }

    /// Begins a look. It forgets the namespaces of which this does not hold, and those that failed to answer in the last look:
    /// each of them is asked by a new socket then, once in a look, for it may take a second to fail.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        let own = &self.own.id;
        self.namespaces.retain(|id, tracked| (id == own || is_there(id)) && !tracked.has_failed());
    }
}

impl Tracked {
    fn new(opened: io::Result<NetlinkSocket>) -> Self {
        let is_refused = opened.as_ref().is_err_and(is_refusal);
        Self { netlink: opened.ok(), is_refused, plain: BTreeMap::new(), translated: BTreeMap::new() }
    }

    /// Whether it failed to answer for another reason than that this process may not ask.
    fn has_failed(&self) -> bool {
        self.netlink.is_none() && !self.is_refused
    }

    /// Asks no more after an error: for good if that is a refusal, otherwise until the next look.
    fn give_up(&mut self, error: &io::Error) {
        (self.netlink, self.is_refused) = (None, is_refusal(error));
    }

    fn other_side(&mut self, tuple: Tuple, side: Side) -> Tuple {
        let Some(netlink) = &mut self.netlink else { return tuple };
        let (now_us, plain) = (monotonic_us(), (side, like(tuple, side)));
        if self.plain.get(&plain).is_some_and(|asked_us| now_us < asked_us + PLAIN_US) {
            return tuple;
        }
        let known = self.translated.get(&(side, tuple)).filter(|(_, asked_us)| now_us < asked_us + KNOWN_US);
        if let Some((other, _)) = known {
            return *other;
        }
        match conntrack::other_side(netlink, tuple, side) {
            Ok(Some(other)) if other != tuple => {
                remember(&mut self.translated, (side, tuple), (other, now_us));
                other
            }
            Ok(_) => {
                remember(&mut self.plain, plain, now_us);
                tuple
            }
            Err(error) => {
                self.give_up(&error);
                tuple
            }
        }
    }
}

/// Whether this process lacks the right. Other errors pass, as when an answer is late or a namespace's process has ended.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// What is as plain as this connection: what a client calls leads to the same for all of its connections, or none of them is
/// translated. What a server accepts came by several addresses.
fn like(tuple: Tuple, side: Side) -> Tuple {
    match side {
        Side::Client => Tuple { client: SocketAddr::new(tuple.client.ip(), 0), server: tuple.server },
        Side::Server => tuple,
    }
}

fn remember<T>(known: &mut BTreeMap<(Side, Tuple), T>, of: (Side, Tuple), answer: T) {
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert(of, answer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_taken_as_they_are_where_nothing_is_tracked() {
        let mut translation = Translation::new(&KernelPaths::default());
        let own = Namespace::own(&KernelPaths::default());
        let tuple = Tuple { client: ([127, 0, 0, 1], 40_000).into(), server: ([127, 0, 0, 1], 9).into() };
        assert_eq!(translation.seen_by_server(&own, tuple), tuple);
        translation.is_tracking = false;
        assert_eq!(translation.seen_by_server(&own, tuple), tuple);
        assert_eq!(translation.seen_by_client(&own, tuple), tuple);
    }

    #[test]
    fn nothing_leads_elsewhere_where_there_are_no_connections() {
        // 192.0.2.0/24 is for documentation (RFC 5737).
        let paths = KernelPaths::default();
        let called = Called { service: ([192, 0, 2, 7], 9).into(), from: None };
        assert_eq!(leads_to(&paths, &Namespace::own(&paths), called).to, BTreeSet::new());
    }

    #[test]
    fn nothing_is_refused_where_nothing_is_tracked() {
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        let called = Called { service: ([127, 0, 0, 1], 9).into(), from: None };
        let leads = leads_to(&paths, &Namespace::own(&paths), called);
        assert!(leads.to.is_empty() && !leads.is_refused);
    }

    #[test]
    fn a_namespace_that_is_closed_is_refused_and_one_that_has_gone_is_not() {
        let refused = |kind: io::ErrorKind| Tracked::new(Err(kind.into())).is_refused;
        assert!(refused(io::ErrorKind::PermissionDenied));
        assert!(!refused(io::ErrorKind::NotFound));
    }

    #[test]
    fn a_late_answer_is_asked_for_at_the_next_look_and_a_refusal_stays() {
        let own = Namespace::own(&KernelPaths::default());
        let after = |kind: io::ErrorKind| {
            let mut translation = Translation::new(&KernelPaths::default());
            let mut tracked = Tracked::new(conntrack::open(&own));
            tracked.give_up(&kind.into());
            translation.namespaces.insert(own.id.clone(), tracked);
            let at_once = (translation.is_refused(), translation.has_failed());
            translation.retain(|_| true);
            (at_once, translation.namespaces.contains_key(&own.id))
        };
        // A namespace that is not known is opened anew.
        assert_eq!(after(io::ErrorKind::WouldBlock), ((false, true), false));
        assert_eq!(after(io::ErrorKind::PermissionDenied), ((true, false), true));
    }

    #[test]
    fn time_outs_are_those_of_the_namespace_or_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        let ending_s = [120, 60, 30, 120, 10];
        let default = Timeouts { established_s: 432_000, unacknowledged_s: 300, ending_s };
        let timeouts = || timeouts(&paths, &Namespace::own(&paths));
        assert_eq!(timeouts(), default);
        let settings = folder.path().join("sys/net/netfilter");
        std::fs::create_dir_all(&settings).unwrap();
        std::fs::write(settings.join("nf_conntrack_tcp_timeout_established"), "86400\n").unwrap();
        std::fs::write(settings.join("nf_conntrack_tcp_timeout_time_wait"), "7\n").unwrap();
        let ending_s = [120, 60, 30, 7, 10];
        assert_eq!(timeouts(), Timeouts { established_s: 86_400, ending_s, ..default });
    }

    #[test]
    fn all_connections_of_a_client_to_an_address_are_alike_and_those_of_a_server_are_not() {
        let of = |client: u16| Tuple {
            client: ([10, 0, 0, 1], client).into(),
            server: ([10, 0, 0, 7], 80).into(),
        };
        let is_alike = |side| like(of(40_000), side) == like(of(40_001), side);
        assert_eq!([Side::Client, Side::Server].map(is_alike), [true, false]);
        let other = Tuple { client: ([10, 0, 0, 2], 40_000).into(), ..of(0) };
        assert_ne!(like(other, Side::Client), like(of(40_000), Side::Client), "another may be masqueraded");
    }
}
