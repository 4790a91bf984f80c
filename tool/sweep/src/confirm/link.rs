//! Slows a link: the interface that sends is shaped to a tenth less than it can carry, by a token bucket (tc-tbf(8)).
//!
//! An interface with a token bucket keeps it, with a lower rate for a time. One that nobody has configured gets one, and the
//! kernel's own discipline comes back when that is deleted. Any other is left alone, as it could not be put back. What somebody
//! else has configured meanwhile is neither replaced nor deleted.

use std::path::Path;

use analysis::{resources::LinkUse, run::LeftAloneReason};
use observe::{Interface, RootQdisc, TokenBucket};
use rustix::process::geteuid;

use super::{
    lock::Lock,
    slowing::{BY, Slowing},
    stand_by::{Script, StandBy},
};
use crate::progress::NotPutBack;

/// A new bucket holds what passes in this time, and two of the largest segments that the kernel hands down at least.
const BURST_S: f64 = 0.001;
const BURST_BYTES_MIN: u64 = 128 << 10;
/// How long packets may wait in a new bucket before they are dropped.
const PATIENCE: &str = "200ms";
/// The handle of a new bucket, by which none but this one is deleted. The kernel gives those from 8001: on.
const HANDLE: &str = "6e73:";
/// The network namespace of this process.
const OWN_NAMESPACE: &str = "/proc/self/ns/net";

/// A link whose rate is to be lowered, now and then.
#[derive(Debug)]
pub(super) struct LowerRate {
    interface: Interface,
    now: RootQdisc,
    shape: Shape,
}

/// What slows a link and what undoes that, as commands.
#[derive(Debug, PartialEq)]
struct Shape {
    lower: String,
    undo: String,
    /// The rate meanwhile.
    bits_per_s: u64,
    /// By which the rate is lower, 0 to 1.
    share: f64,
}

impl LowerRate {
    /// Prepares to lower the rate at which an interface sends, which was used like this.
    ///
    /// # Errors
    /// The reason to leave it alone.
    pub(super) fn of(interface: Interface, used: &LinkUse) -> Result<Self, LeftAloneReason> {
        if !geteuid().is_root() {
            return Err(LeftAloneReason::RateNeedsRoot);
        }
        let now = interface.root_qdisc().map_err(|_| LeftAloneReason::NotAllowed)?;
        let carries = used.link_bits_per_s;
        let shape = shape(&interface.name, now, carries).ok_or(LeftAloneReason::ShapedOtherwise)?;
        // What a link carries is less than its driver says, as with many small packets. A bucket counts all that it lets through.
        let is_full = carries.is_none_or(|carries| is_nearly_full(used.sent_bits_per_s, carries));
        if now == RootQdisc::Default && !is_full {
            return Err(LeftAloneReason::NotFull);
        }
        Ok(Self { interface, now, shape })
    }

    /// Keeps other runs of nstar from lowering the rate of any link in the same network namespace.
    ///
    /// # Errors
    /// The reason to leave it alone.
    pub(super) fn lock(&self) -> Result<Lock, LeftAloneReason> {
        Lock::on(self.interface.namespace.as_deref().unwrap_or(Path::new(OWN_NAMESPACE)))
    }

    /// Lowers it, with its lock held.
    ///
    /// # Errors
    /// The reason to leave it alone: somebody else has changed it meanwhile, or `tc` fails.
    pub(super) fn start(&self, lock: &Lock) -> Result<Slowing, LeftAloneReason> {
        let Shape { lower, undo, share, .. } = &self.shape;
        if !self.interface.root_qdisc().is_ok_and(|now| is_same(now, self.now)) {
            return Err(LeftAloneReason::ChangedByOthers);
        }
        let stand_by = StandBy::start(Script {
            begin: "$1",
            undo: "$2",
            arguments: vec![lower.into(), undo.into()],
            namespace: self.interface.namespace.clone(),
            lock: Some(lock.shared()?),
        })?;
        Ok(Slowing::Lowered { stand_by, share: *share })
    }

    /// Itself, where its rate is still lower; `None` also where the interface has gone.
    pub(super) fn not_put_back(&self) -> Option<NotPutBack> {
        let Interface { name, namespace } = &self.interface;
        let entrance = namespace.as_ref().map(|namespace| format!("nsenter --net={} ", namespace.display()));
        let is_lower = self.interface.root_qdisc().is_ok_and(|now| is_bucket(now, self.shape.bits_per_s));
        is_lower.then(|| NotPutBack::Rate {
            interface: name.clone(),
            command: format!("{}{}", entrance.unwrap_or_default(), self.shape.undo),
        })
    }
}

/// Whether so much of a link is used that lowering its rate costs at least half of that share in throughput. With less used, the
/// test speaks against the link whatever the bottleneck is.
fn is_nearly_full(used: f64, limit: f64) -> bool {
    limit > 0.0 && used >= (1.0 - BY / 2.0) * limit
}

/// Whether it is a token bucket of this rate, which the kernel keeps in whole bytes.
fn is_bucket(one: RootQdisc, bits_per_s: u64) -> bool {
    matches!(one, RootQdisc::TokenBucket(bucket) if bucket.bits_per_s / 8 == bits_per_s / 8)
}

/// Whether two are the same. The size of a bucket is not told to the byte.
fn is_same(one: RootQdisc, other: RootQdisc) -> bool {
    match (one, other) {
        (RootQdisc::TokenBucket(one), RootQdisc::TokenBucket(other)) => {
            (one.bits_per_s, one.limit_bytes) == (other.bits_per_s, other.limit_bytes)
        }
        _ => one == other,
    }
}

/// `None` where the discipline could not be put back, or nobody knows what the link carries.
fn shape(interface: &str, now: RootQdisc, link_bits_per_s: Option<f64>) -> Option<Shape> {
    let root = format!("dev {interface} root");
    let tbf = |bits_per_s: u64, burst_bytes: u64| format!("tbf rate {bits_per_s}bit burst {burst_bytes}");
    let carries = link_bits_per_s.filter(|bits| *bits >= 1.0);
    match now {
        RootQdisc::TokenBucket(TokenBucket { bits_per_s, burst_bytes, limit_bytes }) => {
            // A bucket that lets through more than the link carries limits nothing.
            let most = carries.map_or(bits_per_s, |carries| bits_per_s.min(carries as u64));
            let lower = lower(most);
            let change = |to| format!("tc qdisc change {root} {} limit {limit_bytes}", tbf(to, burst_bytes));
            Some(Shape {
                lower: change(lower),
                undo: change(bits_per_s),
                bits_per_s: lower,
                share: 1.0 - lower as f64 / most as f64,
            })
        }
        RootQdisc::Default => {
            let carries = carries?;
            let bits_per_s = lower(carries as u64);
            let burst_bytes = BURST_BYTES_MIN.max((bits_per_s as f64 / 8.0 * BURST_S) as u64);
            let new = tbf(bits_per_s, burst_bytes);
            Some(Shape {
                lower: format!("tc qdisc add {root} handle {HANDLE} {new} latency {PATIENCE}"),
                undo: format!("tc qdisc del {root} handle {HANDLE}"),
                bits_per_s,
                share: 1.0 - bits_per_s as f64 / carries,
            })
        }
        RootQdisc::Other => None,
    }
}

fn lower(bits_per_s: u64) -> u64 {
    (bits_per_s as f64 * (1.0 - BY)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_bucket_keeps_all_but_its_rate() {
        let bucket = TokenBucket { bits_per_s: 20_000_000, burst_bytes: 16_384, limit_bytes: 141_384 };
        let Shape { lower, undo, share, bits_per_s } =
            shape("eth0", RootQdisc::TokenBucket(bucket), None).unwrap();
        assert_eq!(lower, "tc qdisc change dev eth0 root tbf rate 18000000bit burst 16384 limit 141384");
        assert_eq!(undo, "tc qdisc change dev eth0 root tbf rate 20000000bit burst 16384 limit 141384");
        assert!((share - 0.1).abs() < 1e-9);
        let now = |bits_per_s| RootQdisc::TokenBucket(TokenBucket { bits_per_s, ..bucket });
        assert!(is_bucket(now(18_000_000), bits_per_s) && !is_bucket(now(20_000_000), bits_per_s));
        assert!(is_bucket(now(18_000_000), 18_000_001), "the kernel tells of whole bytes");
        assert!(!is_bucket(RootQdisc::Default, bits_per_s));
    }

    #[test]
    fn a_token_bucket_wider_than_the_link_is_lowered_from_what_the_link_carries() {
        let bucket = TokenBucket { bits_per_s: 2_000_000_000, burst_bytes: 250_000, limit_bytes: 1_000_000 };
        let Shape { lower, undo, share, .. } =
            shape("eth0", RootQdisc::TokenBucket(bucket), Some(1e9)).unwrap();
        assert!(lower.contains(" rate 900000000bit ") && undo.contains(" rate 2000000000bit "), "{lower}");
        assert!((share - 0.1).abs() < 1e-9);
    }

    #[test]
    fn where_nobody_has_configured_anything_a_token_bucket_comes_and_goes() {
        let Shape { lower, undo, share, .. } = shape("eth0", RootQdisc::Default, Some(1e9)).unwrap();
        let new = "tc qdisc add dev eth0 root handle 6e73: tbf rate 900000000bit burst 131072 latency 200ms";
        assert_eq!(lower, new);
        assert_eq!(undo, "tc qdisc del dev eth0 root handle 6e73:", "nobody else's");
        assert!((share - 0.1).abs() < 1e-9);
        let fast = shape("eth0", RootQdisc::Default, Some(1e10)).unwrap();
        assert!(fast.lower.contains("burst 1125000 "), "{fast:?}");
        assert_eq!(shape("eth0", RootQdisc::Default, None), None, "nobody knows what it carries");
    }

    #[test]
    fn what_could_not_be_put_back_is_left_alone() {
        assert_eq!(shape("eth0", RootQdisc::Other, Some(1e9)), None);
    }
}
