//! Queueing disciplines: the rate to which an interface is shaped, and what the shaper did
//! (include/uapi/linux/pkt_sched.h, gen_stats.h).

use std::collections::BTreeMap;
use std::io;

use super::{Attributes, NetlinkSocket, u32_at, u64_at};

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

    /// The parts in use of the kernel's reply for `tbf rate 20mbit`.
    #[test]
    fn a_rate_of_tbf_and_its_counts() {
        use super::super::attribute;
        let mut ratespec = [0; 36];
        ratespec[RATESPEC_RATE..RATESPEC_BYTES].copy_from_slice(&2_500_000u32.to_ne_bytes());
        let queue: Vec<u8> = [1u32, 1500, 2, 0, 3].iter().flat_map(|count| count.to_ne_bytes()).collect();
        let mut reply = tcmsg(4);
        reply.splice(12..16, TC_H_ROOT.to_ne_bytes());
        reply.extend(attribute(TCA_KIND, b"tbf\0"));
        reply.extend(attribute(TCA_OPTIONS, &attribute(1, &ratespec)));
        reply.extend(attribute(TCA_STATS2, &attribute(3, &queue)));
        let mut shaping = Shaping::default();
        shaping.add(&qdisc(&reply).unwrap());
        let expected =
            Shaping { bits_per_s: Some(20_000_000), overlimits: 3, dropped: 2, backlog_bytes: 1500 };
        assert_eq!(shaping, expected);
    }
}
