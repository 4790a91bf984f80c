//! Queueing disciplines: the rate to which an interface is shaped, and what the shaper did
//! (include/uapi/linux/pkt_sched.h, gen_stats.h).

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::{Attributes, NetlinkSocket, u16_at, u32_at, u64_at};
use crate::interface::{RootQdisc, TokenBucket};

const RTM_GETQDISC: u16 = 38;
const RTM_GETTCLASS: u16 = 42;
/// Size of struct tcmsg, with which every reply begins.
const TCMSG_BYTES: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TC_H_ROOT: u32 = 0xffff_ffff;

/// The effect of an interface's queueing disciplines on outgoing packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shaping {
    /// The lowest rate of a shaper, bits per second.
    pub(crate) bits_per_s: Option<u64>,
    /// Packets that a shaper had to delay.
    pub(crate) overlimits: u64,
    /// Packets dropped.
    pub(crate) dropped: u64,
    /// Bytes waiting.
    pub(crate) backlog_bytes: u64,
}

/// The shaping of each interface, by index.
pub(crate) fn shaping(socket: &mut NetlinkSocket) -> io::Result<BTreeMap<u32, Shaping>> {
    let mut qdiscs = Vec::new();
    socket.dump(RTM_GETQDISC, &tcmsg(0), |reply| qdiscs.extend(qdisc(reply)))?;
    let mut shaping: BTreeMap<u32, Shaping> = BTreeMap::new();
    for mut qdisc in qdiscs {
        if qdisc.kind == Kind::Htb {
            qdisc.bits_per_s = htb_rate(socket, qdisc.interface)?;
        }
        shaping.entry(qdisc.interface).or_default().add(&qdisc);
    }
    Ok(shaping)
}

/// The discipline at the root of an interface, and the names of those that nobody has configured: of its root, and of each of its
/// queues. One that is down tells none.
pub(crate) fn root(socket: &mut NetlinkSocket, interface: u32) -> io::Result<(RootQdisc, BTreeSet<String>)> {
    let (mut root, mut defaults) = (None, BTreeSet::new());
    socket.dump(RTM_GETQDISC, &tcmsg(0), |reply| {
        root = root.or_else(|| root_of(interface, reply));
        defaults.extend(default_of(interface, reply));
    })?;
    Ok((root.unwrap_or(RootQdisc::Other), defaults))
}

/// The name of the discipline, if it is of the interface and nobody has configured it.
pub(super) fn default_of(interface: u32, reply: &[u8]) -> Option<String> {
    let name = Attributes::after(reply, TCMSG_BYTES).find(TCA_KIND)?;
    let is_its_own = (u32_at(reply, 4)?, u32_at(reply, 8)?) == (interface, 0);
    is_its_own.then(|| String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned())
}

/// The discipline, if it is the one at the root of the interface.
pub(super) fn root_of(interface: u32, reply: &[u8]) -> Option<RootQdisc> {
    let attributes = Attributes::after(reply, TCMSG_BYTES);
    let name = attributes.find(TCA_KIND)?;
    if (u32_at(reply, 4)?, u32_at(reply, 12)?) != (interface, TC_H_ROOT) {
        return None;
    }
    // Whoever configures one gives it a handle, or has the kernel give it one.
    if u32_at(reply, 8)? == 0 {
        return Some(RootQdisc::Default);
    }
    let options = attributes.find(TCA_OPTIONS).filter(|_| kind(name) == Kind::Tbf);
    Some(options.and_then(token_bucket).map_or(RootQdisc::Other, RootQdisc::TokenBucket))
}

/// The settings of a token bucket; `None` where it has others than these.
fn token_bucket(options: &[u8]) -> Option<TokenBucket> {
    const TCA_TBF_PARMS: u16 = 1;
    const TC_LINKLAYER_MASK: u8 = 0xf;
    const TC_LINKLAYER_ATM: u8 = 2;
    /// The kernel counts the bucket in units of 64 ns at its rate.
    const TICK_NS: u128 = 64;
    // struct tc_tbf_qopt: rate and peak rate, each a struct tc_ratespec, limit, bucket.
    let told = Attributes::after(options, 0).find(TCA_TBF_PARMS)?;
    let layer = told.get(1)? & TC_LINKLAYER_MASK;
    let (overhead, smallest, peak) = (u16_at(told, 2)?, u16_at(told, 6)?, u32_at(told, 20)?);
    if layer == TC_LINKLAYER_ATM || (overhead, smallest, peak) != (0, 0, 0) {
        return None;
    }
    let bits_per_s = rate(Kind::Tbf, options)?;
    let bucket_ns = u128::from(u32_at(told, 28)?) * TICK_NS;
    // The kernel rounded it down.
    let burst_bytes = (bucket_ns * u128::from(bits_per_s / 8)).div_ceil(1_000_000_000);
    Some(TokenBucket {
        bits_per_s,
        burst_bytes: u64::try_from(burst_bytes).ok()?,
        limit_bytes: u32_at(told, 24)?,
    })
}

impl Shaping {
    fn add(&mut self, qdisc: &Qdisc) {
        self.bits_per_s = match (self.bits_per_s, qdisc.bits_per_s) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
        if qdisc.bits_per_s.is_some() {
            self.overlimits += qdisc.overlimits;
        }
        // The root's counts include those of the disciplines inside it.
        if qdisc.root {
            self.dropped += qdisc.dropped;
            self.backlog_bytes += qdisc.backlog_bytes;
        }
    }
}

/// The disciplines that shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tbf,
    Htb,
    Netem,
    Cake,
    Other,
}

/// One queueing discipline.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Qdisc {
    interface: u32,
    root: bool,
    kind: Kind,
    bits_per_s: Option<u64>,
    overlimits: u64,
    dropped: u64,
    backlog_bytes: u64,
}

pub(super) fn qdisc(reply: &[u8]) -> Option<Qdisc> {
    const TCA_STATS_QUEUE: u16 = 3;
    let attributes = Attributes::after(reply, TCMSG_BYTES);
    let kind = kind(attributes.find(TCA_KIND)?);
    // struct gnet_stats_queue: length, backlog, drops, requeues, overlimits.
    let queue = attributes.nested(TCA_STATS2).find(TCA_STATS_QUEUE).unwrap_or_default();
    let count = |at| u32_at(queue, at).map_or(0, u64::from);
    Some(Qdisc {
        interface: u32_at(reply, 4)?,
        root: u32_at(reply, 12)? == TC_H_ROOT,
        kind,
        bits_per_s: rate(kind, attributes.find(TCA_OPTIONS).unwrap_or_default()),
        backlog_bytes: count(4),
        dropped: count(8),
        overlimits: count(16),
    })
}

fn kind(name: &[u8]) -> Kind {
    match name.strip_suffix(&[0]).unwrap_or(name) {
        b"tbf" => Kind::Tbf,
        b"htb" => Kind::Htb,
        b"netem" => Kind::Netem,
        b"cake" => Kind::Cake,
        _ => Kind::Other,
    }
}

/// The rate in a discipline's options, bits per second. For `htb` it is in the classes.
fn rate(kind: Kind, options: &[u8]) -> Option<u64> {
    let bytes_per_s = match kind {
        // TCA_TBF_RATE64, otherwise the ratespec at the beginning of TCA_TBF_PARMS.
        Kind::Tbf => rate_64_or_32(Attributes::after(options, 0), 4, 1, RATESPEC_RATE),
        // TCA_NETEM_RATE64, otherwise the first word of TCA_NETEM_RATE; both follow struct tc_netem_qopt.
        Kind::Netem => rate_64_or_32(Attributes::after(options, 24), 8, 6, 0),
        // TCA_CAKE_BASE_RATE64.
        Kind::Cake => rate_64_or_32(Attributes::after(options, 0), 2, u16::MAX, 0),
        Kind::Htb | Kind::Other => None,
    };
    bytes_per_s.map(|rate| rate.saturating_mul(8))
}

/// The place of the rate in struct tc_ratespec, and the size of that structure.
const RATESPEC_RATE: usize = 8;
const RATESPEC_BYTES: usize = 12;

/// A rate in bytes per second. Rates beyond 32 bits have an attribute of their own. Zero means none.
fn rate_64_or_32(options: Attributes<'_>, wide: u16, narrow: u16, at: usize) -> Option<u64> {
    let wide = options.find(wide).and_then(|value| u64_at(value, 0));
    let narrow = || options.find(narrow).and_then(|value| u32_at(value, at)).map(u64::from);
    wide.or_else(narrow).filter(|rate| *rate > 0)
}

/// A class of `htb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    handle: u32,
    parent: u32,
    ceiling_bits_per_s: u64,
    sent_bytes: u64,
}

fn htb_rate(socket: &mut NetlinkSocket, interface: u32) -> io::Result<Option<u64>> {
    let mut classes = Vec::new();
    socket.dump(RTM_GETTCLASS, &tcmsg(interface), |reply| classes.extend(class(reply)))?;
    Ok(lowest_ceiling(&classes))
}

/// The limit of the leaf that carried most: the lowest ceiling on the way from it to the root. Other leaves shape other
/// traffic.
fn lowest_ceiling(classes: &[Class]) -> Option<u64> {
    let is_leaf = |class: &&Class| !classes.iter().any(|other| other.parent == class.handle);
    let mut class = classes.iter().filter(is_leaf).max_by_key(|class| class.sent_bytes)?;
    let mut lowest = class.ceiling_bits_per_s;
    // Bounded, in case broken data contains a cycle.
    for _ in classes {
        let Some(parent) = classes.iter().find(|other| other.handle == class.parent) else { break };
        class = parent;
        lowest = lowest.min(class.ceiling_bits_per_s);
    }
    Some(lowest)
}

pub(super) fn class(reply: &[u8]) -> Option<Class> {
    const TCA_STATS_BASIC: u16 = 1;
    const TCA_HTB_PARMS: u16 = 1;
    const TCA_HTB_CEIL64: u16 = 7;
    let attributes = Attributes::after(reply, TCMSG_BYTES);
    if kind(attributes.find(TCA_KIND)?) != Kind::Htb {
        return None;
    }
    let options = attributes.nested(TCA_OPTIONS);
    // struct tc_htb_opt: the ratespec of the rate, then that of the ceiling.
    let ceiling = rate_64_or_32(options, TCA_HTB_CEIL64, TCA_HTB_PARMS, RATESPEC_BYTES + RATESPEC_RATE)?;
    let basic = attributes.nested(TCA_STATS2).find(TCA_STATS_BASIC).unwrap_or_default();
    Some(Class {
        handle: u32_at(reply, 8)?,
        parent: u32_at(reply, 12)?,
        ceiling_bits_per_s: ceiling.saturating_mul(8),
        sent_bytes: u64_at(basic, 0).unwrap_or(0),
    })
}

/// Encodes the struct tcmsg of a request: family and padding, then the interface.
fn tcmsg(interface: u32) -> Vec<u8> {
    let mut request = vec![0; 4];
    request.extend(interface.to_ne_bytes());
    request.resize(TCMSG_BYTES, 0);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(handle: u32, parent: u32, ceiling_bits_per_s: u64, sent_bytes: u64) -> Class {
        Class { handle, parent, ceiling_bits_per_s, sent_bytes }
    }

    #[test]
    fn the_busiest_leaf_is_limited_by_the_tightest_above_it() {
        let classes = [
            class_of(1, TC_H_ROOT, 50, 900),
            class_of(10, 1, 80, 800),
            class_of(11, 1, 5, 100),
            class_of(20, TC_H_ROOT, 7, 1),
        ];
        assert_eq!(lowest_ceiling(&classes), Some(50));
        assert_eq!(lowest_ceiling(&[]), None);
        assert_eq!(
            lowest_ceiling(&[class_of(1, 2, 9, 0), class_of(2, 1, 8, 0), class_of(3, 1, 7, 0)]),
            Some(7)
        );
    }

    /// The parts in use of the kernel's reply for `tbf rate 20mbit burst 16kb limit 141384`, with this handle and settings that
    /// are zero in it.
    fn reply_of_tbf(handle: u32, more: &[(usize, u8)]) -> Vec<u8> {
        use super::super::attribute;
        let mut options = [0; 36];
        options[RATESPEC_RATE..RATESPEC_BYTES].copy_from_slice(&2_500_000u32.to_ne_bytes());
        options[24..28].copy_from_slice(&141_384u32.to_ne_bytes());
        // 16 384 bytes take 6 553 600 ns.
        options[28..32].copy_from_slice(&102_400u32.to_ne_bytes());
        more.iter().for_each(|(at, value)| options[*at] = *value);
        let queue: Vec<u8> = [1u32, 1500, 2, 0, 3].iter().flat_map(|count| count.to_ne_bytes()).collect();
        let mut reply = tcmsg(4);
        reply.splice(8..12, handle.to_ne_bytes());
        reply.splice(12..16, TC_H_ROOT.to_ne_bytes());
        reply.extend(attribute(TCA_KIND, b"tbf\0"));
        reply.extend(attribute(TCA_OPTIONS, &attribute(1, &options)));
        reply.extend(attribute(TCA_STATS2, &attribute(3, &queue)));
        reply
    }

    #[test]
    fn a_token_bucket_is_known_whole_or_not_at_all() {
        let known = TokenBucket { bits_per_s: 20_000_000, burst_bytes: 16_384, limit_bytes: 141_384 };
        let of = |interface: u32, more: &[(usize, u8)]| root_of(interface, &reply_of_tbf(0x8001_0000, more));
        assert_eq!(of(4, &[]), Some(RootQdisc::TokenBucket(known)));
        assert_eq!(of(5, &[]), None, "another interface's");
        let [overhead, smallest, peak_rate, linklayer] = [(2, 4), (6, 64), (20, 1), (1, 2)];
        for more in [overhead, smallest, peak_rate, linklayer] {
            assert_eq!(of(4, &[more]), Some(RootQdisc::Other), "{more:?}");
        }
        // Rounded down by the kernel.
        assert_eq!(of(4, &[(28, 0xff), (29, 0x8f)]), Some(RootQdisc::TokenBucket(known)));
        assert_eq!(root_of(4, &reply_of_tbf(0, &[])), Some(RootQdisc::Default));
        assert_eq!(default_of(4, &reply_of_tbf(0, &[])).as_deref(), Some("tbf"));
        assert_eq!(default_of(4, &reply_of_tbf(0x8001_0000, &[])), None, "somebody has configured it");
    }

    #[test]
    fn a_rate_of_tbf_and_its_counts() {
        let mut shaping = Shaping::default();
        shaping.add(&qdisc(&reply_of_tbf(0x8001_0000, &[])).unwrap());
        let expected =
            Shaping { bits_per_s: Some(20_000_000), overlimits: 3, dropped: 2, backlog_bytes: 1500 };
        assert_eq!(shaping, expected);
    }
}
