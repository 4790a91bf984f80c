//! Queueing disciplines: the rate at which an interface is shaped, and what the shaper did
//! (include/uapi/linux/pkt_sched.h, gen_stats.h).

use std::collections::BTreeMap;
use std::io;

use super::{Attributes, Socket, u32_at, u64_at};

const RTM_GETQDISC: u16 = 38;
const RTM_GETTCLASS: u16 = 42;
/// Size of struct tcmsg, which begins every answer.
const TCMSG_BYTES: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TC_H_ROOT: u32 = 0xffff_ffff;

/// What the queueing disciplines of an interface do to what leaves by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shaping {
    /// The lowest rate of a shaper, bits per second.
    pub(crate) bits_per_s: Option<u64>,
    /// Packets a shaper had to delay.
    pub(crate) overlimits: u64,
    /// Packets dropped.
    pub(crate) dropped: u64,
    /// Bytes that wait.
    pub(crate) backlog_bytes: u64,
}

/// Shaping per interface index.
pub(crate) fn shaping(socket: &mut Socket) -> io::Result<BTreeMap<u32, Shaping>> {
    let mut qdiscs = Vec::new();
    socket.dump(RTM_GETQDISC, &tcmsg(0), |answer| qdiscs.extend(qdisc(answer)))?;
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
        // The root's counts hold those of the disciplines inside it.
        if qdisc.root {
            self.dropped += qdisc.dropped;
            self.backlog_bytes += qdisc.backlog_bytes;
        }
    }
}

/// Disciplines that shape.
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

pub(super) fn qdisc(answer: &[u8]) -> Option<Qdisc> {
    const TCA_STATS_QUEUE: u16 = 3;
    let attributes = Attributes::after(answer, TCMSG_BYTES);
    let kind = kind(attributes.find(TCA_KIND)?);
    // struct gnet_stats_queue: length, backlog, drops, requeues, overlimits.
    let queue = attributes.nested(TCA_STATS2).find(TCA_STATS_QUEUE).unwrap_or_default();
    let count = |at| u32_at(queue, at).map_or(0, u64::from);
    Some(Qdisc {
        interface: u32_at(answer, 4)?,
        root: u32_at(answer, 12)? == TC_H_ROOT,
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

/// The rate in a discipline's options. Of `htb` it is in its classes.
fn rate(kind: Kind, options: &[u8]) -> Option<u64> {
    let bytes_per_s = match kind {
        // TCA_TBF_RATE64, else the ratespec that begins TCA_TBF_PARMS.
        Kind::Tbf => rate_64_or_32(Attributes::after(options, 0), 4, 1, RATESPEC_RATE),
        // TCA_NETEM_RATE64, else the first word of TCA_NETEM_RATE; struct tc_netem_qopt comes before.
        Kind::Netem => rate_64_or_32(Attributes::after(options, 24), 8, 6, 0),
        // TCA_CAKE_BASE_RATE64.
        Kind::Cake => rate_64_or_32(Attributes::after(options, 0), 2, u16::MAX, 0),
        Kind::Htb | Kind::Other => None,
    };
    bytes_per_s.map(|rate| rate.saturating_mul(8))
}

/// Place of the rate in struct tc_ratespec, and the size of that.
const RATESPEC_RATE: usize = 8;
const RATESPEC_BYTES: usize = 12;

/// Bytes per second: rates beyond 32 bits have an attribute of their own. Zero is none.
fn rate_64_or_32(options: Attributes<'_>, wide: u16, narrow: u16, at: usize) -> Option<u64> {
    let wide = options.find(wide).and_then(|value| u64_at(value, 0));
    let narrow = || options.find(narrow).and_then(|value| u32_at(value, at)).map(u64::from);
    wide.or_else(narrow).filter(|rate| *rate > 0)
}

/// A class of `htb`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Class {
    root: bool,
    ceiling_bits_per_s: u64,
    sent_bytes: u64,
}

/// The ceiling of the root class that carried most: classes beside it shape other traffic.
fn htb_rate(socket: &mut Socket, interface: u32) -> io::Result<Option<u64>> {
    let mut classes = Vec::new();
    socket.dump(RTM_GETTCLASS, &tcmsg(interface), |answer| classes.extend(class(answer)))?;
    let roots = classes.into_iter().filter(|class: &Class| class.root);
    Ok(roots.max_by_key(|class| class.sent_bytes).map(|class| class.ceiling_bits_per_s))
}

pub(super) fn class(answer: &[u8]) -> Option<Class> {
    const TCA_STATS_BASIC: u16 = 1;
    const TCA_HTB_PARMS: u16 = 1;
    const TCA_HTB_CEIL64: u16 = 7;
    let attributes = Attributes::after(answer, TCMSG_BYTES);
    if kind(attributes.find(TCA_KIND)?) != Kind::Htb {
        return None;
    }
    let options = attributes.nested(TCA_OPTIONS);
    // struct tc_htb_opt: the ratespec of the rate, then that of the ceiling.
    let ceiling = rate_64_or_32(options, TCA_HTB_CEIL64, TCA_HTB_PARMS, RATESPEC_BYTES + RATESPEC_RATE)?;
    let basic = attributes.nested(TCA_STATS2).find(TCA_STATS_BASIC).unwrap_or_default();
    Some(Class {
        root: u32_at(answer, 12)? == TC_H_ROOT,
        ceiling_bits_per_s: ceiling.saturating_mul(8),
        sent_bytes: u64_at(basic, 0).unwrap_or(0),
    })
}

/// struct tcmsg of a request: family and padding, then the interface.
fn tcmsg(interface: u32) -> Vec<u8> {
    let mut request = vec![0; 4];
    request.extend(interface.to_ne_bytes());
    request.resize(TCMSG_BYTES, 0);
    request
}
