//! Failed requests: where many fail, the throughput of the others is not the server's capacity.

use super::finding::Finding;
use super::sweep::Sweep;
use crate::run::{
    Confidence, Doubt, GeneratorEvidence, Identity, OutcomeEvidence as Seen, ResourceKind, Step,
};
use crate::ticks::{ErrorKind, failures, many_failed};

/// Doubts a finding where many requests failed at N*. Errors only beyond N* are how an overloaded server behaves; they do
/// not touch the verdict, unless nothing else shows that throughput stopped growing.
pub(super) fn doubt(sweep: &Sweep, finding: Finding) -> Finding {
    let Some(star) = sweep.star() else { return finding };
    let finding = stopped_answering(sweep, finding);
    let share = star.failed_share();
    if !many_failed(share) || sweep.completed() == 0 {
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
    let next = sweep.steps().iter().find(|step| step.users > sweep.star_users());
    let Some(next) = next.filter(|next| next.completed == 0) else { return finding };
    if sweep.completed() == 0 || sweep.plateau().count() > 1 {
        return finding;
    }
    finding.doubting(Doubt::StoppedAnsweringBeyond { users: next.users, errors: next.errors.clone() })
}

/// Whether most failures came from this host's own lack of descriptors or ports.
fn of_our_own(step: &Step) -> bool {
    let local = step.errors.get(&ErrorKind::LocalLimit).copied().unwrap_or(0);
    local > failures(&step.errors) / 2
}

fn out_of_local_resources(step: &Step) -> Finding {
    Finding::new(ResourceKind::Generator, Confidence::High)
        .held_by(Identity::Generator)
        .seeing(GeneratorEvidence::GeneratorOutOfPorts { users: step.users })
}
