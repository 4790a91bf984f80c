//! Failed requests: where many fail, the throughput of the others is not the server's capacity.

use super::finding::Finding;
use super::sweep::{Point, Sweep};
use crate::run::{Confidence, ResourceKind};
use crate::sample::{ErrorCounts, ErrorKind};
use crate::words::{count, percent, users};

/// When more than this share of requests fails at N*, what was measured is not the service asked for.
pub(super) const MANY: f64 = 0.05;

/// Qualifies what was found by the errors at N*. Errors only beyond N* are how an overloaded server
/// behaves; they do not touch the verdict, unless nothing else shows that throughput stopped growing.
pub(super) fn qualify(sweep: &Sweep, finding: Finding) -> Finding {
    let Some(star) = sweep.star() else { return finding };
    let finding = stopped_answering(sweep, finding);
    let share = star.error_share();
    if share < MANY || sweep.completed() == 0 {
        return finding;
    }
    let sentence = format!(
        "{} of the requests failed at {} ({}), so the throughput of the others is not what the server carries.",
        percent(share),
        users(star.users),
        described(&star.errors)
    );
    let mut finding = if of_our_own(star) { out_of_local_resources(star) } else { finding };
    if finding.confidence == Confidence::High {
        finding.confidence = Confidence::Medium;
    }
    finding.evidence.push(sentence.clone());
    finding.doubting(sentence)
}

/// A server that answers nothing at all beyond N* has died, or turns everybody away: that its throughput
/// no longer grew says nothing about its resources.
fn stopped_answering(sweep: &Sweep, finding: Finding) -> Finding {
    let next = sweep.points().iter().find(|point| point.users > sweep.star_users());
    let Some(next) = next.filter(|next| next.completed == 0) else { return finding };
    if sweep.completed() == 0 || sweep.plateau().count() > 1 {
        return finding;
    }
    let errors =
        if next.errors.is_empty() { String::new() } else { format!(" ({})", described(&next.errors)) };
    finding.doubting(format!(
        "At {} no request completed{errors}: the server stopped answering, so what it carries is not known.",
        users(next.users)
    ))
}

/// Errors by kind, most frequent first: `120 timed out, 4 reset`.
pub(crate) fn described(errors: &ErrorCounts) -> String {
    let mut kinds: Vec<(&ErrorKind, &u64)> = errors.iter().filter(|(_, count)| **count > 0).collect();
    kinds.sort_by(|a, b| b.1.cmp(a.1));
    let part = |(kind, number): (&ErrorKind, &u64)| format!("{} {}", count(*number as f64), noun(*kind));
    kinds.into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Whether most failures were this host's own want of descriptors or ports.
fn of_our_own(point: &Point) -> bool {
    let local = point.errors.get(&ErrorKind::LocalLimit).copied().unwrap_or(0);
    let all = point.errors.values().fold(0u64, |sum, count| sum.saturating_add(*count));
    local > all / 2
}

fn out_of_local_resources(point: &Point) -> Finding {
    Finding::new(ResourceKind::Generator, Confidence::High).held_by("generator").saying(format!(
        "The load generator ran out of descriptors or local ports at {}: raise `ulimit -n` or widen \
         net.ipv4.ip_local_port_range.",
        users(point.users)
    ))
}

fn noun(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Refused => "refused",
        ErrorKind::Reset => "reset",
        ErrorKind::TimedOut => "timed out",
        ErrorKind::Status => "with an unexpected status",
        ErrorKind::Unavailable => "turned away by a busy server",
        ErrorKind::Malformed => "malformed",
        ErrorKind::ClosedEarly => "closed early",
        ErrorKind::WrongBody => "with a wrong body",
        ErrorKind::NothingToKeep => "without the value to keep",
        ErrorKind::Tls => "failed in TLS",
        ErrorKind::Unreachable => "unreachable",
        ErrorKind::LocalLimit => "stopped by a limit of this host",
    }
}
