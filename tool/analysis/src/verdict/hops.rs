//! The tier at which requests queue, by the requests outstanding on the connections between tiers.
//!
//! The number of users grows from one step to the next, and beyond N* what grows with it is a queue. Requests that a tier
//! has handed on are outstanding at the tier behind it, so the queue is followed from the server backwards: to the tier
//! whose requests grow and which hands on no more of them. A tier behind that gets a constant number, one on each of its
//! connections, has room for more or not: that is told by how many requests are served at a time.

use super::curve::{Curve, group};
use super::finding::{EITHER, Finding, INDIRECT};
use super::processor::is_interpreter;
use super::waiting::{WAITING_PER_REQUEST, at_a_time, at_a_time_there, held_back, nothing_busy};
use crate::counters::{Role, ServerAddress};
use crate::resources::{Group, GroupKey, HopUse};
use crate::run::{HopEvidence as Seen, Identity, Probability, Processes, ResourceKind, Step, TierTime};
use crate::statistics::proportion_ci;

/// Fewer looks at the connections than this say nothing of a step.
const LOOKS_MIN: usize = 3;

/// The lighter of the two steps that are compared has at most this share of the users of the heaviest.
const LIGHTER: f64 = 0.67;

/// A tier at which at least this share of the additional requests waits is, or leads to, the one that queues.
const GROWS: f64 = 0.5;

/// A tier at which less than this share of the additional requests waits has no queue.
const STAYS: f64 = 0.25;

/// Connections of which this share has a request are all in use: one is free between a response and the next request.
const IN_USE: f64 = 0.85;

/// Connections of which less than this share has a request are not what requests wait for.
// Above a half, as dozens of looks may be off by 0.05, and workers that call the tier behind for half of their time are common.
const HARDLY_IN_USE: f64 = 0.55;

/// More requests at a time for each connection than this: it carries several at once, or some that are not the users'. Fewer
/// connections are a single one, which several requests may share, and which is all that a lock in front of it ever needs.
const ONE_EACH: f64 = 1.5;

/// Connections of which this share is opened anew between two looks are no pool, which keeps them.
const REPLACED: f64 = 0.2;

/// How the names of proxies begin, which are told how many connections they may have, whether they keep them or not.
const PROXIES: [&str; 6] = ["haproxy", "nginx", "envoy", "traefik", "caddy", "varnish"];

/// How the names of databases, and of their proxies, begin: a session of one may be held for the whole of a request.
const DATABASES: [&str; 8] =
    ["postgres", "mariadbd", "mysqld", "mongod", "oracle", "sqlservr", "pgbouncer", "proxysql"];

/// The ports of databases that are not observed.
const DATABASE_PORTS: [u16; 6] = [5432, 6432, 3306, 27017, 1521, 1433];

/// Sessions that carry a statement for a smaller share of the time are not what requests wait for.
const ANY_IN_USE: f64 = 0.1;

/// Where so many of the users' connections are seen at the servers, all are.
const ALL_SEEN: f64 = 0.9;

/// Threads of one name that do less of a tier's work than this are beside it.
const MOST_OF_THE_WORK: f64 = 0.5;

/// A limit in front of connections that are opened as needed looks like their pool. It is rarer with proxies and with clients of
/// databases, which limit connections themselves.
const LIMITED_IN_FRONT: f64 = 0.08;

/// Where it was not seen at which tier requests queue, a pool is about as often one of connections as one of workers, and
/// what lets them pass is about as often behind an address that is not observed as in front of it.
const UNSEEN: f64 = 0.45;

/// A number of connections is constant within this share.
const CONSTANT: f64 = 0.1;

/// Where fewer requests are served at a time than this share of the connections to the tier behind, that tier queues.
const HAS_ROOM: f64 = 0.6;

/// Users whose requests take at most this many times as long as that of one alone do not wait for each other.
const UNQUEUED: f64 = 1.05;

/// Threads that use a processor for a smaller share of the time in which they serve requests mostly wait.
const COMPUTING: f64 = 0.5;

/// With fewer requests than this read and not answered, on average, the server hardly works on any: one that serves one
/// request at a time always has one.
const HARDLY_ANY: f64 = 0.5;

/// Tiers behind one another that are followed.
const DEPTH_MAX: usize = 8;

/// Where requests queue.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Queue {
    pub(super) at: Place,
    /// How many requests are served there at a time, where full connections keep the others from it.
    served: Option<f64>,
    pub(super) evidence: Vec<Seen>,
}

impl Queue {
    /// The processes at which requests queue, where those are observed.
    pub(super) fn tier(&self) -> Option<Processes> {
        match &self.at {
            Place::Tier(of) | Place::Connections { of, .. } => Some(of.clone()),
            Place::Upstream(_) => None,
        }
    }
}

/// A place where requests queue.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    /// In front of, or inside, these processes.
    Tier(Processes),
    /// At these processes, for one of their connections to the tier behind or for one of as many workers that use one each. The
    /// shares say how probable each of the two is.
    Connections { of: Processes, shares: [f64; 2] },
    /// Behind an address that is not observed.
    Upstream(Identity),
}

/// The finding, if requests queue at a tier that is not observed, or for connections to a tier that has room.
pub(super) fn behind(curve: &Curve) -> Option<Finding> {
    if !nothing_busy(curve) {
        return None;
    }
    let Queue { at, evidence, .. } = queue(curve)?;
    let finding = match at {
        Place::Tier(_) => return None,
        Place::Connections { of, shares } => connection_pool(of, shares),
        Place::Upstream(upstream) => Finding::new(ResourceKind::Upstream, INDIRECT).held_by(upstream),
    };
    Some(evidence.into_iter().fold(finding, Finding::seeing))
}

/// Connections that are all in use while the tier behind has room, or as many workers that use one each.
fn connection_pool(of: Processes, [of_connections, of_workers]: [f64; 2]) -> Finding {
    let holder = Identity::Processes(of);
    let workers = Finding::new(ResourceKind::WorkerPool, INDIRECT).held_by(holder.clone());
    let pool = Finding::new(ResourceKind::ConnectionPool, Probability::new(of_connections)).held_by(holder);
    pool.or(workers.explanation(of_workers))
}

/// How probable it is that connections which are all in use are too few, and that workers are too few, each of which uses one for
/// nearly all of its time. Both look alike, but programs of some kinds are known to limit their connections.
fn connections_or_workers(curve: &Curve, of: &Processes, hop: &HopUse) -> [f64; 2] {
    let are_limited = is_proxy(&of.name) || keeps_sessions(hop);
    let are_too_few = are_limited && !has_a_thread_each(curve, of, hop.connections);
    if are_too_few { [INDIRECT.share(), LIMITED_IN_FRONT] } else { EITHER }
}

/// Whether processes have about as many threads of one name as that, whatever the load: each may have a connection of its own.
fn has_a_thread_each(curve: &Curve, of: &Processes, connections: f64) -> bool {
    let steps = Compared::new(curve).map(|steps| [steps.few, steps.many]);
    let each = |step: &Step| group(step, of).is_some_and(|group| has_as_many_threads(group, connections));
    steps.is_some_and(|steps| steps.into_iter().all(each))
}

fn has_as_many_threads(group: &Group, connections: f64) -> bool {
    let all_cores: f64 = group.threads_by_name.iter().map(|named| named.cores).sum();
    let as_many = |more: f64| more.abs() <= (CONSTANT * connections).max(0.5);
    let workers = group.threads_by_name.iter().filter(|named| named.cores >= MOST_OF_THE_WORK * all_cores);
    workers.into_iter().any(|named| {
        let more = named.threads as f64 - connections;
        match group.is_own_name(&named.name) {
            false => as_many(more),
            // The threads of an interpreter have no names of their own, and its main thread is one of them.
            true => is_interpreter(group) && (as_many(more) || as_many(more - 1.0)),
        }
    })
}

/// Adds where requests queue to a finding about how many are served at a time. That shows who holds what they wait for,
/// and not what it is, so the finding is as sure as before.
pub(super) fn with_queue(curve: &Curve, finding: Finding) -> Finding {
    match follow(curve) {
        None => finding,
        Some(Err(not_told)) => finding.seeing(not_told),
        Some(Ok(queue)) => queue.evidence.into_iter().fold(finding, Finding::seeing),
    }
}

/// Whether requests queue where the threads that serve them hardly ever wait for a processor, and use one for less than
/// half of the time: then they wait for something else, whoever keeps the processors of the host busy.
pub(super) fn waits_for_no_processor(curve: &Curve) -> bool {
    let Some((queue, served)) = queue(curve).zip(at_a_time_there(curve)) else { return false };
    let Some(of) = queue.tier() else { return true };
    let mean = |read: fn(&Group) -> f64| curve.group_mean(&of, read) / served;
    let counted = mean(|group| group.run_queue) > 0.0;
    counted
        && mean(|group| group.run_queue) < WAITING_PER_REQUEST
        && mean(|group| group.cores + group.run_queue) < COMPUTING
        && mean(|group| group.found_disk_waiting) < COMPUTING
}

/// Whether requests queue at these processes, most of them unread: nothing there is free to take them.
pub(super) fn waits_unread_at(curve: &Curve, of: &Processes) -> bool {
    let Some(queue) = queue(curve).filter(|queue| queue.tier().as_ref() == Some(of)) else { return false };
    queue.evidence.iter().any(|seen| matches!(seen, Seen::NotRead { .. }))
}

/// Requests at other tiers than the one at which they queue, on average beyond N*: they are among those served at a time
/// by the system, but not among those served there. 0 where they are part of the queue.
pub(super) fn elsewhere(curve: &Curve) -> f64 {
    let (Some(steps), Some(queue)) = (Compared::new(curve), queue(curve)) else { return 0.0 };
    let Place::Tier(of) = queue.at else { return 0.0 };
    if let (Some(there), Some(in_all)) = (queue.served, at_a_time(curve)) {
        return (in_all - there).max(0.0);
    }
    let at = key(of);
    let others = |step: &Step| {
        let there = into(step, &at).filter(|_| front(step).as_ref() != Some(&at));
        there.map_or(0.0, |hop| (under_way(step) - hop.outstanding_at_most()).max(0.0))
    };
    if others(steps.many) - others(steps.few) - steps.served >= STAYS * steps.queued() {
        return 0.0;
    }
    curve.mean(|step| is_looked_at(&step).then(|| others(step))).unwrap_or(0.0)
}

/// How often the connections were looked at beyond N*.
pub(super) fn looks_beyond(curve: &Curve) -> f64 {
    curve.plateau().map(|step| step.usage.hops.looks as f64).sum()
}

/// The share of the requests that more users add which wait to be accepted.
pub(super) fn unaccepted(curve: &Curve) -> f64 {
    let (Some(steps), Some(Place::Tier(of))) = (Compared::new(curve), queue(curve).map(|queue| queue.at))
    else {
        return 0.0;
    };
    steps.unaccepted(&key(of))
}

/// How far it looks as if the requests that are served at a time, so many of them, were limited by as many connections to a
/// tier behind, 0 to 1: by how much of the time these are in use, and at most as far as if all were. Where all are, [`behind`]
/// says so.
pub(super) fn by_connections(curve: &Curve, at_a_time: u32) -> f64 {
    let Some((steps, queue)) = Compared::new(curve).zip(queue(curve)) else {
        return if has_tiers_behind(curve) { UNSEEN } else { 0.0 };
    };
    let Place::Tier(of) = queue.at else { return 0.0 };
    let at = key(of.clone());
    if steps.mostly_unread(&at) {
        return 0.0;
    }
    let as_many = |hop: &HopUse| (hop.connections / f64::from(at_a_time) - 1.0).abs() <= CONSTANT;
    let called = handed_on(steps.many, &at).filter(|hop| as_many(hop) && !is_opened_anew(hop, &at));
    let called = called.filter(|hop| same(steps.few, hop).is_some_and(as_many));
    let share = called.map(|hop| {
        let in_use = steps.in_use(hop, curve.star_users().min(steps.few.users));
        let [of_connections, of_workers] = connections_or_workers(curve, &of, hop);
        let where_all_are = of_connections / (of_connections + of_workers);
        let share = where_all_are * ((in_use - HARDLY_IN_USE) / (IN_USE - HARDLY_IN_USE)).clamp(0.0, 1.0);
        let may_be_held = in_use >= ANY_IN_USE
            && keeps_sessions(hop)
            && !has_a_thread_each(curve, &of, f64::from(at_a_time));
        if may_be_held { share.max(UNSEEN) } else { share }
    });
    share.fold(0.0, f64::max)
}

/// How far it looks as if requests that pass one at a time were those on a single connection to a tier behind, 0 to 1: about as
/// often it is all that a lock in front of it ever needs.
pub(super) fn by_single_connection(curve: &Curve) -> f64 {
    let Some(steps) = Compared::new(curve).filter(|_| queue(curve).is_none()) else { return 0.0 };
    let tiers = steps.many.usage.hops.tiers.iter();
    let single = tiers
        .filter(|hop| !hop.callers.is_empty())
        .any(|hop| hop.connections < ONE_EACH && steps.are_in_use(hop));
    if single { UNSEEN } else { 0.0 }
}

/// Whether the server has answered most of the requests that more users add: they are on their way, over something that nobody
/// watches. A server that sends the head of an answer early looks the same.
pub(super) fn has_answered_already(curve: &Curve) -> bool {
    let Some(steps) = Compared::new(curve) else { return false };
    let at_servers = |step: &'_ Step, of: fn(&HopUse) -> f64| {
        let hops = step.usage.hops.tiers.iter();
        hops.filter(|hop| hop.server.as_ref().is_some_and(|server| server.role == Role::Server))
            .map(of)
            .sum::<f64>()
    };
    let is_seen = |step| at_servers(step, |hop| hop.connections) >= ALL_SEEN * f64::from(step.users);
    if !is_seen(steps.few) || !is_seen(steps.many) {
        return false;
    }
    let [few, many] = [steps.few, steps.many].map(|step| at_servers(step, HopUse::outstanding_at_most));
    let listening = &steps.many.usage.listening;
    let let_in = listening.overflows_per_s <= 0.0 && listening.retried_per_s <= 0.0;
    let_in && many - few < STAYS * steps.queued()
}

/// Requests that the server has read and not answered at these steps, on average; `None` where its connections were not seen.
pub(super) fn held_at_front<'a>(steps: impl Iterator<Item = &'a Step>) -> Option<f64> {
    let looked = steps.filter(|step| step.usage.hops.looks >= LOOKS_MIN);
    let held: Vec<f64> = looked.filter_map(|step| Some(into(step, &front(step)?)?.held)).collect();
    (!held.is_empty()).then(|| held.iter().sum::<f64>() / held.len() as f64)
}

/// Whether connections are opened for a request or a few, and not kept. Proxies limit how many of those there are as well.
fn is_opened_anew(hop: &HopUse, caller: &GroupKey) -> bool {
    hop.replaced >= REPLACED && !is_proxy(&caller.name)
}

fn is_proxy(name: &str) -> bool {
    PROXIES.iter().any(|proxy| name.starts_with(proxy))
}

/// Whether these are sessions of a database, which one request may hold while it does something else.
fn keeps_sessions(hop: &HopUse) -> bool {
    match (&hop.server, &hop.address) {
        (Some(server), _) => DATABASES.iter().any(|name| server.name.starts_with(name)),
        (None, ServerAddress::Tcp { address }) => DATABASE_PORTS.contains(&address.port()),
        (None, ServerAddress::Unix { .. }) => false,
    }
}

/// How far it looks as if requests that users wait for were held up behind an address that is not observed, 0 to 1, where
/// it was not seen at which tier they queue. Where it was, [`behind`] says so.
pub(super) fn by_upstream(curve: &Curve) -> f64 {
    let is_unseen = queue(curve).is_none() && calls(curve, |hop| hop.server.is_none());
    if is_unseen { UNSEEN } else { 0.0 }
}

/// Whether the server calls others: tiers that are observed, or addresses that were seen to be called at any step.
fn has_tiers_behind(curve: &Curve) -> bool {
    curve.tiers().iter().any(|of| of.role == Role::Downstream) || calls(curve, |_| true)
}

/// Whether any tier was seen to call such an address at any step.
fn calls(curve: &Curve, is_such: fn(&HopUse) -> bool) -> bool {
    let called =
        |step: &Step| step.usage.hops.tiers.iter().any(|hop| !hop.callers.is_empty() && is_such(hop));
    curve.steps().iter().any(called)
}

/// Where requests queue; `None` where that was not seen or cannot be told.
pub(super) fn queue(curve: &Curve) -> Option<Queue> {
    follow(curve)?.ok()
}

/// Follows the queue backwards from the server; an error where the connections to a tier tell nothing.
fn follow(curve: &Curve) -> Option<Result<Queue, Seen>> {
    let steps = Compared::new(curve)?;
    let (mut at, mut served) = (front(steps.many)?, None);
    for _ in 0..DEPTH_MAX {
        let hop = match steps.behind(&at)? {
            Behind::Nothing => return Some(Ok(Queue { served, ..steps.queue_at(&at) })),
            Behind::Connections(hop) => return Some(Ok(steps.pool(&at, hop))),
            Behind::NotTold(not_told) => return Some(Err(not_told)),
            Behind::Queue { hop, served: there } => {
                served = there;
                hop
            }
        };
        match &hop.server {
            Some(server) => at = server.clone(),
            None if is_seen_served(curve, hop) => return None,
            None => return Some(Ok(steps.upstream(&at, hop))),
        }
    }
    None
}

/// Whether somebody was seen to serve these connections at some step, though not at the one in question.
fn is_seen_served(curve: &Curve, hop: &HopUse) -> bool {
    let mut all = curve.steps().iter().flat_map(|step| &step.usage.hops.tiers);
    all.any(|other| other.server.is_some() && other.addresses.contains(&hop.address))
}

/// The port at which connections wait to be accepted, if the queue grows with the users while next to no request is
/// worked on, or requests pass something one at a time although several are worked on: then it is not full workers that
/// keep the server from accepting.
pub(super) fn accepted_slowly(curve: &Curve) -> Option<(u16, Seen)> {
    let steps = Compared::new(curve)?;
    let Place::Tier(of) = queue(curve)?.at else { return None };
    let at = key(of.clone());
    let now = into(steps.few, &at).and(into(steps.many, &at))?;
    let ServerAddress::Tcp { address } = now.address else { return None };
    // Requests that pass one at a time are let in so, unless more of them are worked on than are served: those wait inside.
    let inside = if curve.one_by_one() { at_a_time(curve)? } else { 0.0 };
    let no_workers = now.held + now.unclear < inside + HARDLY_ANY;
    let slowly = no_workers && steps.unaccepted(&at) >= GROWS;
    let (connections, held, users) = (now.unaccepted, now.held, steps.many.users);
    slowly.then_some((address.port(), Seen::NotAccepted { of, connections, held, users }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Grows,
    Stays,
    Unclear,
}

/// Where the requests are that a tier was seen to have more of.
enum Behind<'a> {
    /// No other tier has them.
    Nothing,
    /// At the tier that it hands them on to. Where full connections keep some from that, so many are served there at a time.
    Queue { hop: &'a HopUse, served: Option<f64> },
    /// They wait for one of these connections, to a tier that has room.
    Connections(&'a HopUse),
    /// What was seen of the connections tells nothing.
    NotTold(Seen),
}

/// Two steps beyond which requests were looked at, one with clearly more users than the other.
struct Compared<'a> {
    curve: &'a Curve,
    few: &'a Step,
    many: &'a Step,
    /// How many requests more were under way with many users.
    more: f64,
    /// How many of these may have found room to be served, so that they are no queue wherever they are.
    served: f64,
}

impl<'a> Compared<'a> {
    /// The heaviest step that shows a queue, and a lighter one. Users who got no answer for the whole of a step, because others
    /// were let past, are missing there: then one with fewer users tells, though no fewer than saturate the server.
    fn new(curve: &'a Curve) -> Option<Self> {
        let steps: Vec<&Step> = curve.steps().iter().filter(is_looked_at).collect();
        (0..steps.len()).rev().find_map(|at| {
            let (lighter, many) = (steps.get(..at)?, *steps.get(at)?);
            let is_full = many.users >= curve.star_users();
            Self::of(curve, lighter, many).filter(|_| is_full)
        })
    }

    /// These many users and, of the lighter steps, the heaviest that is clearly lighter.
    fn of(curve: &'a Curve, lighter: &[&'a Step], many: &'a Step) -> Option<Self> {
        let clearly = |step: &&&Step| f64::from(step.users) <= LIGHTER * f64::from(many.users);
        let few = *lighter.iter().rfind(clearly)?;
        let more = under_way(many) - under_way(few);
        let room = at_a_time(curve).map_or(f64::from(curve.star_users()), |k| k + held_back(curve));
        let served = (room - under_way(few)).max(0.0);
        let admitted = more >= GROWS * f64::from(many.users - few.users);
        let queue = curve.closed() && admitted && more - served > 1.0;
        queue.then_some(Self { curve, few, many, more, served })
    }

    /// How many of the additional requests wait.
    fn queued(&self) -> f64 {
        self.more - self.served
    }

    /// Where requests are that a tier has handed on; `None` where that cannot be told.
    fn behind(&self, at: &GroupKey) -> Option<Behind<'a>> {
        let called: Vec<&'a HopUse> = handed_on(self.many, at).collect();
        let most = called.iter().copied().max_by(|a, b| a.outstanding().total_cmp(&b.outstanding()));
        let Some(hop) = most else { return Some(Behind::Nothing) };
        match self.growth(hop) {
            Growth::Grows => Some(Behind::Queue { hop, served: None }),
            Growth::Unclear => self.not_told(at, hop),
            Growth::Stays if called.iter().any(|hop| self.growth(hop) != Growth::Stays) => None,
            Growth::Stays => self.behind_constant(at, &called),
        }
    }

    /// The same where each tier behind has as many requests with few users as with many.
    fn behind_constant(&self, at: &GroupKey, called: &[&'a HopUse]) -> Option<Behind<'a>> {
        if self.grow_together(called) {
            return None;
        }
        let mut full = called.iter().copied().filter(|hop| self.are_in_use(hop));
        match (full.next(), full.next()) {
            (Some(hop), None) => self.behind_full(at, hop),
            (Some(_), Some(_)) => None,
            (None, _) => match called.iter().find(|hop| may_be_in_use(hop) || self.is_shared(hop)) {
                Some(hop) if !self.mostly_unread(at) => self.not_told(at, hop),
                _ => Some(Behind::Nothing),
            },
        }
    }

    /// Whether several tiers behind have more requests together, though none has many more.
    fn grow_together(&self, called: &[&HopUse]) -> bool {
        let more = |hop: &&HopUse| hop.outstanding() - same(self.few, hop).map_or(0.0, HopUse::outstanding);
        called.len() > 1 && called.iter().map(more).sum::<f64>() - self.served >= STAYS * self.queued()
    }

    /// The same where all connections to the tier behind are in use: it has room, if about as many requests are served there at a
    /// time as there are connections.
    fn behind_full(&self, at: &GroupKey, hop: &'a HopUse) -> Option<Behind<'a>> {
        // Tiers of one name are counted together, so whose connections these are is not known.
        if hop.server.as_ref().is_some_and(|server| hop.callers.contains(server)) {
            return None;
        }
        let [least, served, most] = served_behind(self.curve, hop)?;
        let room = HAS_ROOM * hop.connections;
        let in_front = self.mostly_unread(at) || is_opened_anew(hop, at);
        // A number of connections that carry several requests each, or of which there is one for all, is not what is full.
        let shared = least > ONE_EACH * hop.connections || hop.connections < ONE_EACH;
        match () {
            () if most < room => Some(Behind::Queue { hop, served: Some(served) }),
            () if least < room => None,
            () if in_front => Some(Behind::Nothing),
            () if shared => None,
            () => Some(Behind::Connections(hop)),
        }
    }

    /// Whether a single connection carries several requests at a time, so that it tells nothing which end sent last: by the time
    /// that requests of few users spend behind it, more are there at a time than could pass one by one (Little's law).
    fn is_shared(&self, hop: &HopUse) -> bool {
        let there = |step: &Step| same(step, hop).map_or(0.0, HopUse::outstanding);
        let served = |step: &Step| self.curve.maximum().0 * there(step) / step.throughput_per_s;
        // The looks at one step may all meet a busy moment, and hardly those at two.
        let lightest: Vec<&Step> = self.curve.steps().iter().filter(is_looked_at).take(2).collect();
        let several = lightest.len() > 1 && lightest.into_iter().all(|step| served(step) > ONE_EACH);
        several && hop.connections < ONE_EACH
    }

    /// How the requests at a hop grew. If nobody saw it with few users, it may have had all that were under way.
    fn growth(&self, hop: &HopUse) -> Growth {
        let before = same(self.few, hop);
        let least = hop.outstanding() - before.map_or(under_way(self.few), HopUse::outstanding_at_most);
        let most = hop.outstanding_at_most() - before.map_or(0.0, HopUse::outstanding);
        let queued = self.queued();
        if least - self.served >= GROWS * queued {
            Growth::Grows
        } else if most < STAYS * queued {
            Growth::Stays
        } else {
            Growth::Unclear
        }
    }

    /// Whether the number of connections is constant, and all of them are in use.
    fn are_in_use(&self, hop: &HopUse) -> bool {
        let Some(before) = same(self.few, hop) else { return false };
        let in_use = |hop: &HopUse| hop.outstanding() >= IN_USE * hop.connections;
        let change = (hop.connections - before.connections).abs();
        let constant = change <= CONSTANT * hop.connections;
        let always = in_use(hop) && in_use(before) && self.in_use(hop, self.few.users) >= IN_USE;
        always && constant && hop.connections > 0.5
    }

    /// The share of connections to a tier behind that carry a request, by all looks with so many users up to the most: a few looks at
    /// one step may all meet a busy moment. From N* on it is the same at each step.
    fn in_use(&self, hop: &HopUse, from_users: u32) -> f64 {
        let between = |step: &&Step| (from_users..=self.many.users).contains(&step.users);
        let steps: Vec<&Step> = self.curve.steps().iter().filter(between).collect();
        let connections = seen_of(&steps, hop, |hop| hop.connections);
        if connections > 0.0 { seen_of(&steps, hop, HopUse::outstanding) / connections } else { 0.0 }
    }

    /// The share of the additional requests that waits to be accepted by a tier.
    fn unaccepted(&self, at: &GroupKey) -> f64 {
        let waiting = |step| into(step, at).map_or(0.0, |hop| hop.unaccepted);
        (waiting(self.many) - waiting(self.few)) / self.more
    }

    /// Whether most of what waits at a tier has not even been read by it.
    fn mostly_unread(&self, at: &GroupKey) -> bool {
        let unread = |step| into(step, at).map_or(0.0, |hop| hop.unread);
        unread(self.many) - unread(self.few) >= GROWS * self.more
    }

    /// That it cannot be told, with the reason if that is that connections do not tell.
    fn not_told(&self, at: &GroupKey, hop: &HopUse) -> Option<Behind<'a>> {
        let (at, users) = (self.server(at, hop), self.many.users);
        let not_told = Seen::NotTold { at, connections: hop.unclear, users };
        (hop.unclear > 0.0).then_some(Behind::NotTold(not_told))
    }

    fn queue_at(&self, at: &GroupKey) -> Queue {
        let of = self.processes(at);
        let mut evidence = vec![self.requests_queue(Identity::Processes(of.clone()), at)];
        if let Some(hop) = into(self.many, at).filter(|_| self.mostly_unread(at)) {
            evidence.push(Seen::NotRead { of: of.clone(), requests: hop.unread, users: self.many.users });
        }
        evidence.extend(self.time_per_tier());
        Queue { at: Place::Tier(of), served: None, evidence }
    }

    fn pool(&self, at: &GroupKey, hop: &HopUse) -> Queue {
        let of = self.processes(at);
        let in_use = Seen::ConnectionsInUse {
            of: of.clone(),
            to: self.server(at, hop),
            connections: hop.connections,
            outstanding: hop.outstanding(),
            from_users: self.few.users,
            to_users: self.many.users,
        };
        let queue = self.requests_queue(Identity::Processes(of.clone()), at);
        let evidence = [in_use, queue].into_iter().chain(self.time_per_tier()).collect();
        let shares = connections_or_workers(self.curve, &of, hop);
        Queue { at: Place::Connections { of, shares }, served: None, evidence }
    }

    fn upstream(&self, at: &GroupKey, hop: &HopUse) -> Queue {
        let upstream = self.server(at, hop);
        let requests = |step| same(step, hop).map_or(0.0, HopUse::outstanding);
        let queue = Seen::RequestsQueue {
            at: upstream.clone(),
            from_users: self.few.users,
            from_requests: requests(self.few),
            to_users: self.many.users,
            to_requests: requests(self.many),
        };
        let (to, translation_unread) = (upstream.clone(), hop.translation_unread);
        // Those of the same host are known, and may not be looked into.
        let is_far = !hop.address.is_within_a_host();
        let not_joined = is_far.then_some(Seen::NotJoined { to, translation_unread });
        Queue {
            at: Place::Upstream(upstream),
            served: None,
            evidence: [queue].into_iter().chain(self.time_per_tier()).chain(not_joined).collect(),
        }
    }

    fn requests_queue(&self, identity: Identity, at: &GroupKey) -> Seen {
        Seen::RequestsQueue {
            at: identity,
            from_users: self.few.users,
            from_requests: requests_at(self.few, at),
            to_users: self.many.users,
            to_requests: requests_at(self.many, at),
        }
    }

    /// The time at each tier; nothing where there is only one.
    fn time_per_tier(&self) -> Option<Seen> {
        let (many, front) = (self.many, front(self.many)?);
        let time = |at: Identity, requests: f64| TierTime {
            at,
            requests,
            time_us: requests / many.throughput_per_s * 1e6,
        };
        let first = time(Identity::Processes(self.processes(&front)), requests_at(many, &front));
        let behind = many.usage.hops.tiers.iter().filter(|hop| !hop.callers.is_empty());
        let behind = behind.filter(|hop| hop.server.as_ref() != Some(&front)).map(|hop| {
            let requests = hop.server.as_ref().map_or(hop.outstanding(), |at| requests_at(many, at));
            time(self.server(&front, hop), requests)
        });
        let tiers: Vec<TierTime> = [first].into_iter().chain(behind).collect();
        (tiers.len() > 1).then_some(Seen::TimePerTier { tiers, users: many.users })
    }

    fn server(&self, caller: &GroupKey, hop: &HopUse) -> Identity {
        match &hop.server {
            Some(server) => Identity::Processes(self.processes(server)),
            None => Identity::Upstream { address: hop.address.clone(), of: self.processes(caller) },
        }
    }

    fn processes(&self, key: &GroupKey) -> Processes {
        let group = self.many.usage.groups.iter().find(|group| group.key() == *key);
        let GroupKey { role, name, on } = key.clone();
        group.map_or_else(
            || Processes { role, name, on, ..Processes::default() },
            |group| self.curve.processes(group),
        )
    }
}

/// Whether all connections may be in use, as far as they tell.
fn may_be_in_use(hop: &HopUse) -> bool {
    hop.connections > 0.5 && hop.outstanding_at_most() >= IN_USE * hop.connections
}

/// How many requests are served at a time behind these connections: as many as one user alone has there, times how many times
/// the throughput of one user the maximum is (Little's law). With the ends of an interval: looks are a sample. `None` where too
/// few were taken with one user.
fn served_behind(curve: &Curve, hop: &HopUse) -> Option<[f64; 3]> {
    let alone = curve.alone().filter(is_looked_at)?;
    // A few users who do not wait for each other have as much there, each of them, and are more to look at.
    let longest_us = UNQUEUED * alone.response_time_us.mean;
    let unqueued = |step: &&Step| {
        let is_light = step.users < curve.star_users() && step.response_time_us.mean <= longest_us;
        step.users == alone.users || is_light
    };
    let light: Vec<&Step> = curve.steps().iter().filter(is_looked_at).filter(unqueued).collect();
    let users = over_looks(&light, |step| step.users.into());
    let there = |of: fn(&HopUse) -> f64| seen_of(&light, hop, of) / users;
    let (fewest, most) = (there(HopUse::outstanding), there(HopUse::outstanding_at_most));
    let [least, _] = interval(fewest, users);
    let [_, at_most] = interval(most, users);
    let times = curve.maximum().0 / alone.throughput_per_s;
    Some([least, fewest, at_most].map(|requests| times * requests))
}

/// Whether enough looks were taken at the connections while requests were answered.
fn is_looked_at(step: &&Step) -> bool {
    step.usage.hops.looks >= LOOKS_MIN && step.throughput_per_s > 0.0
}

/// What all looks at these steps saw of a hop, summed up.
fn seen_of(steps: &[&Step], hop: &HopUse, of: fn(&HopUse) -> f64) -> f64 {
    over_looks(steps, |step| same(step, hop).map_or(0.0, of))
}

/// The sum over all looks at these steps of what is known of each step.
fn over_looks(steps: &[&Step], of: impl Fn(&Step) -> f64) -> f64 {
    steps.iter().map(|step| step.usage.hops.looks as f64 * of(step)).sum()
}

/// How many requests a user has at a tier on average, one standard error less and more, by so many looks at one: half as far as
/// the ends of the 95 % interval.
fn interval(mean: f64, looks: f64) -> [f64; 2] {
    let at_once = mean.max(1.0);
    let hits = (mean / at_once * looks).round() as u64;
    proportion_ci(hits, looks as u64).map(|end| (end * at_once + mean) / 2.0)
}

/// Requests that users have sent and not got the response of, by Little's law.
fn under_way(step: &Step) -> f64 {
    step.throughput_per_s * step.response_time_us.mean / 1e6
}

fn key(of: Processes) -> GroupKey {
    GroupKey { role: of.role, name: of.name, on: of.on }
}

/// The group of processes that the users call.
fn front(step: &Step) -> Option<GroupKey> {
    let servers = step.usage.hops.tiers.iter().filter_map(|hop| Some((hop, hop.server.as_ref()?)));
    let servers = servers.filter(|(_, server)| server.role == Role::Server);
    servers.max_by(|a, b| a.0.connections.total_cmp(&b.0.connections)).map(|(_, server)| server.clone())
}

/// The same hop at another step, at which it need not have been known who listens.
fn same<'a>(step: &'a Step, hop: &HopUse) -> Option<&'a HopUse> {
    let same = |other: &&HopUse| {
        other.server == hop.server && (hop.server.is_some() || other.address == hop.address)
    };
    let unknown = |other: &&HopUse| {
        other.server.is_none() != hop.server.is_none() && !other.addresses.is_disjoint(&hop.addresses)
    };
    let tiers = &step.usage.hops.tiers;
    tiers.iter().find(same).or_else(|| tiers.iter().find(unknown))
}

fn into<'a>(step: &'a Step, at: &GroupKey) -> Option<&'a HopUse> {
    step.usage.hops.tiers.iter().find(|hop| hop.server.as_ref() == Some(at))
}

/// Requests at a tier, without those that it has handed on.
fn requests_at(step: &Step, at: &GroupKey) -> f64 {
    let received = if front(step).as_ref() == Some(at) {
        under_way(step)
    } else {
        into(step, at).map_or(0.0, HopUse::outstanding)
    };
    (received - handed_on(step, at).map(HopUse::outstanding).sum::<f64>()).max(0.0)
}

/// What a tier calls, but for others of its own name.
fn handed_on<'a>(step: &'a Step, at: &GroupKey) -> impl Iterator<Item = &'a HopUse> {
    let calls = |hop: &&HopUse| hop.callers.contains(at) && hop.server.as_ref() != Some(at);
    step.usage.hops.tiers.iter().filter(calls)
}
