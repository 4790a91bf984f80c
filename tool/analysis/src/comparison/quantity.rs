//! Quantities of a variant on a workload, with their intervals, and when they can be relied on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blocks::ROUNDS_MIN;
use super::seen::{self, Open};
use super::{Entry, Workload};
use crate::run::Doubt;
use crate::statistics::mean::{half_width, mean};

/// A quantity of a variant on a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Completed requests per second.
    Throughput,
    /// Mean response time.
    ResponseTime,
    /// CPU time of the system per request.
    CpuTime,
    /// Body bytes received per second.
    Received,
}

/// A figure with its interval, and the name of what was measured.
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) ci: [f64; 2],
}

/// The figure of an entry, or why it has none that can be relied on.
pub(super) fn figure(name: &str, work: &Workload, entry: &Entry, of: Quantity) -> Result<Figure, Open> {
    if let Some(why) = obstacle(work, entry, of) {
        return Err(why);
    }
    let (value, ci) = match of {
        Quantity::Throughput => (entry.throughput_per_s, entry.throughput_ci_per_s),
        Quantity::ResponseTime => over_rounds(&entry.response_time_us_by_round)?,
        Quantity::CpuTime => over_rounds(&entry.cpu_us_per_request_by_round)?,
        Quantity::Received => {
            let bytes = entry.received_bytes_per_s / entry.throughput_per_s;
            (entry.received_bytes_per_s, entry.throughput_ci_per_s.map(|end| end * bytes))
        }
    };
    let is_known = value > 0.0 && value.is_finite();
    is_known.then(|| Figure { name: name.to_owned(), value, ci }).ok_or(Open::NotMeasured)
}

/// A reason not to rely on a figure of an entry. What a request costs in CPU time does not depend on whether throughput
/// could grow.
fn obstacle(work: &Workload, entry: &Entry, of: Quantity) -> Option<Open> {
    let of_bound = |doubt: &Doubt| {
        let is_bound =
            matches!(doubt, Doubt::GeneratorLimit | Doubt::NeverBounded { .. } | Doubt::OnlyStep { .. });
        is_bound || doubt.is_about_the_cause()
    };
    let is_cost = of == Quantity::CpuTime;
    match () {
        () if entry.completed == 0 => Some(Open::NotMeasured),
        () if is_cost && entry.doubts.iter().all(of_bound) => None,
        () if !is_cost && entry.lower_bound && entry.generator_was_limit() => Some(Open::GeneratorLimit),
        () if seen::is_in_doubt(work, entry) => Some(Open::InDoubt),
        () if !is_cost && entry.lower_bound => Some(Open::NotSaturated),
        () => None,
    }
}

/// The mean of the rounds, with the interval that their scatter gives.
fn over_rounds(rounds: &[Option<f64>]) -> Result<(f64, [f64; 2]), Open> {
    let rounds: Vec<f64> = rounds.iter().copied().flatten().collect();
    if rounds.len() < ROUNDS_MIN {
        return Err(Open::NoInterval);
    }
    let (mean, half_width) = (mean(&rounds), half_width(&rounds, 0.95));
    Ok((mean, [(mean - half_width).max(0.0), mean + half_width]))
}
