//! What the events of a sweep come to.

use analysis::run::{Resource, Step};
use report::live::{Doing, Known};
use sweep::progress::Event;

/// Notes what happened. Returns whether that is to be said in words, because nothing else shows it.
pub(crate) fn note(known: &mut Known, event: &Event) -> bool {
    match event {
        Event::Advice { .. }
        | Event::UnexpectedStatus { .. }
        | Event::Redirected { .. }
        | Event::NothingToKeep { .. }
        | Event::DatabaseUnwatched { .. }
        | Event::SocketsUnread { .. }
        | Event::NotPutBack(_) => {
            return true;
        }
        Event::StepBegun { users, purpose, time } => {
            known.doing = Doing::Measuring { users: *users, purpose: *purpose, settling: None };
            known.time = time.unwrap_or(known.time);
        }
        Event::UnderWay(under_way) => {
            known.time = under_way.time;
            if let Doing::Measuring { settling, .. } = &mut known.doing {
                *settling = Some(under_way.settling);
            }
        }
        Event::StepDone(_) => {}
        Event::SoFar(so_far) => {
            let before = std::mem::replace(&mut known.so_far, (**so_far).clone());
            keep_resources(&mut known.so_far.steps, before.steps);
        }
        Event::Resources { complete, resources } => {
            known.resources.clone_from(resources);
            if let Some(users) = complete {
                set_resources(&mut known.so_far.steps, *users, resources);
            }
        }
        Event::Searched => known.doing = Doing::Concluding,
        Event::TellingApart { users } => known.doing = Doing::TellingApart { users: *users },
        Event::Profiling { users } => known.doing = Doing::Profiling { users: *users },
        Event::Slowing { tier } => known.doing = Doing::Slowing(tier.clone()),
    }
    false
}

/// Keeps the resources of steps that were complete before.
fn keep_resources(steps: &mut [Step], before: Vec<Step>) {
    for old in before {
        set_resources(steps, old.users, &old.resources);
    }
}

fn set_resources(steps: &mut [Step], users: u32, resources: &[Resource]) {
    if let Some(step) = steps.iter_mut().find(|step| step.users == users) {
        step.resources = resources.to_vec();
    }
}
