//! Failed requests: where many fail, the throughput of the others is not the server's capacity.

use super::finding::Finding;
use super::sweep::{Point, Sweep};
use crate::run::{Confidence, Doubt, GeneratorEvidence, Identity, OutcomeEvidence as Seen, ResourceKind};
use crate::ticks::{ErrorKind, MANY_FAILED, failed_share, failures};

/// Doubts a finding where many requests failed at N*. Errors only beyond N* are how an overloaded server behaves; they do
/// not touch the verdict, unless nothing else shows that throughput stopped growing.
pub(super) fn doubt(sweep: &Sweep, finding: Finding) -> Finding {
    let Some(star) = sweep.star() else { return finding };
    let finding = stopped_answering(sweep, finding);
    let share = failed_share(star.completed, &star.errors);
    if share < MANY_FAILED || sweep.completed() == 0 {
        return finding;
    }
    let finding = if of_our_own(star) { out_of_local_resources(star) } else { finding };
    let (users, errors) = (star.users, star.errors.clone());
    finding
        .at_most(Confidence::Medium)
        .seeing(Seen::RequestsFailed { share, users, errors: errors.clone() })
        .doubting(Doubt::RequestsFailed { share, users, errors })
}

/// A server that answers nothing at all beyond N* has died, or turns everybody away. Then throughput that no longer grew
/// says nothing about its resources.
fn stopped_answering(sweep: &Sweep, finding: Finding) -> Finding {
    let next = sweep.points().iter().find(|point| point.users > sweep.star_users());
    let Some(next) = next.filter(|next| next.completed == 0) else { return finding };
    if sweep.completed() == 0 || sweep.plateau().count() > 1 {
        return finding;
    }
    finding.doubting(Doubt::StoppedAnsweringBeyond { users: next.users, errors: next.errors.clone() })
}

/// Whether most failures came from this host's own lack of descriptors or ports.
fn of_our_own(point: &Point) -> bool {
    let local = point.errors.get(&ErrorKind::LocalLimit).copied().unwrap_or(0);
    local > failures(&point.errors) / 2
}

fn out_of_local_resources(point: &Point) -> Finding {
    Finding::new(ResourceKind::Generator, Confidence::High)
        .held_by(Identity::Generator)
        .seeing(GeneratorEvidence::GeneratorOutOfPorts { users: point.users })
}
