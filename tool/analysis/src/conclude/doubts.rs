//! Why the answer of a sweep is not to be relied on, beyond what the finding itself doubts.

use super::warnings::{IDLE, checked_by_little};
use super::{Context, Experiment, Observed};
use crate::estimate::Estimate;
use crate::laws::little;
use crate::run::Doubt;
use crate::search::consistency::jump;
use crate::verdict::Finding;

/// A gap of Little's law that no rounding explains: some of the users got no answer, or the figures are wrong.
const BROKEN: f64 = 0.10;

/// The doubts of the finding, and those about the steps that it rests on. A server that could not be watched is no
/// reason for doubt: N* and the throughput stand without their cause, and the bottleneck is `unknown`.
pub(super) fn doubts(
    steps: &[&Observed],
    at_star: Option<&Observed>,
    finding: &Finding,
    context: &Context,
) -> Vec<Doubt> {
    let mut doubts = finding.doubts.clone();
    if context.experiment == Experiment::Load {
        // One load draws no verdict: warnings say what there is to say about the measurement.
        return doubts;
    }
    if let Some(step) = at_star {
        let users = step.users;
        let unsteady = !step.estimate.steady && step.estimate.completed > 0;
        doubts.extend(step.estimate.stall.map(|_| Doubt::Stalled { users }));
        doubts.extend(unsteady.then_some(Doubt::NotSteady { users }));
    }
    let estimates: Vec<(u32, &Estimate)> = steps.iter().map(|step| (step.users, &step.estimate)).collect();
    doubts.extend(jump(&estimates).filter(|_| context.closed()).map(|found| Doubt::Jump {
        from_users: found.from_users,
        to_users: found.to_users,
        factor: found.factor,
    }));
    doubts.extend(at_star.and_then(|step| broken_law(step, context)));
    doubts.extend(at_star.and_then(|step| idle_users(step, context)));
    doubts
}

fn broken_law(step: &Observed, context: &Context) -> Option<Doubt> {
    let little = little(step.users, &step.estimate, context.load.think_time_us);
    let broken = checked_by_little(step, context) && !little.holds() && little.gap.abs() > BROKEN;
    broken.then_some(Doubt::Little { users: step.users, gap: little.gap.abs() })
}

fn idle_users(step: &Observed, context: &Context) -> Option<Doubt> {
    let share = step.idle_share(context.load.think_time_us);
    (context.closed() && share > IDLE).then_some(Doubt::IdleUsers { users: step.users, share })
}
