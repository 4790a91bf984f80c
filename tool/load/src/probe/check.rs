//! Sends each request of a scenario once, as one user would, in the order of the file.

use std::time::Instant;

use analysis::check::{Answered, Checked, Fault, Kept, Outcome};

use super::{Answer, Attempt, Server};
use crate::error::{LoadError, ProbeError};
use crate::plan::Plan;
use crate::scenario::definition::{Request, Scenario};
use crate::values::stream::UserStream;

/// Separates the random stream of a check from those of the users and of the probe.
const SEED: u64 = 0x0063_6865_636B;

/// Longest body that is read to its end.
const BODY_BYTES: u64 = 64 << 20;

/// Sends each request of the plan's scenario once, in order, to its first server, and reports what came. Values that one
/// request keeps are there for those after it.
///
/// # Errors
/// If there is no server or it cannot be reached. What befalls a single request is its [`Outcome`].
pub fn check(plan: &Plan) -> Result<Vec<Checked>, LoadError> {
    let scenario = &plan.scenario;
    let base = scenario.base().ok_or_else(|| LoadError::NoBase { scenario: scenario.name().into() })?;
    let server = Server::find(plan, base)?;
    let program = server.program();
    let user = plan.member.first_user_of(0, scenario.bases().len());
    let mut values = program.stream(plan.seed ^ SEED, user);
    let mut checked = Vec::with_capacity(scenario.requests.len());
    for (index, request) in scenario.requests.iter().enumerate() {
        let attempt = Attempt { server: &server, program: &program, request: index, body_bytes: BODY_BYTES };
        let outcome = match missing(scenario, request, &values) {
            Some(list) => Outcome::NothingToTake { list },
            None => send(&attempt, request, scenario, &mut values)?,
        };
        checked.push(Checked { request: request.name.clone(), outcome });
    }
    Ok(checked)
}

/// The list that a request takes a value from and that is empty.
fn missing(scenario: &Scenario, request: &Request, values: &UserStream) -> Option<String> {
    let empty = request.takes().find(|list| !values.captured.has(*list))?;
    scenario.lists.get(empty).cloned()
}

fn send(
    attempt: &Attempt<'_>,
    request: &Request,
    scenario: &Scenario,
    values: &mut UserStream,
) -> Result<Outcome, ProbeError> {
    let began = Instant::now();
    let answer = match attempt.run(values) {
        Ok((answer, _)) => answer,
        Err(error) if concerns_the_server(&error) => return Err(error),
        Err(error) => return Ok(Outcome::Failed { reason: error.to_string() }),
    };
    let elapsed_us = began.elapsed().as_secs_f64() * 1e6;
    let kept = request.capture.as_ref().filter(|_| !answer.value.is_empty()).and_then(|capture| {
        let is_success = (200..300).contains(&answer.status);
        let added = is_success && values.captured.add(capture.list, &answer.value);
        let list = scenario.lists.get(capture.list).filter(|_| added)?;
        Some(Kept { list: list.clone(), value: String::from_utf8_lossy(&answer.value).into_owned() })
    });
    Ok(Outcome::Answered(Answered {
        status: answer.status,
        body_bytes: answer.body_bytes,
        is_cut: answer.is_cut,
        elapsed_us,
        kept,
        fault: fault(&answer),
    }))
}

fn fault(answer: &Answer) -> Option<Fault> {
    if !answer.status_expected {
        Some(Fault::Status)
    } else if !answer.as_expected {
        Some(Fault::Body)
    } else {
        answer.nothing_to_keep.then_some(Fault::NothingToKeep)
    }
}

/// Whether no other request would fare better.
fn concerns_the_server(error: &ProbeError) -> bool {
    match error {
        ProbeError::Refused { .. }
        | ProbeError::Unreachable { .. }
        | ProbeError::NotTls { .. }
        | ProbeError::NeedsTls { .. }
        | ProbeError::Tls { .. } => true,
        ProbeError::Closed { .. } | ProbeError::NoAnswer { .. } | ProbeError::NotHttp { .. } => false,
    }
}
