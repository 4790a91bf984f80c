//! `--gate`: a bound on the answer that a pipeline can fail on.

use std::str::FromStr;

use analysis::run::Run;
use report::metrics::{Metric, MetricUnit, gates};

/// One bound, such as `throughput>=1000`, `users>=50`, `p99<=20ms`, `errors<=0.1%`.
#[derive(Debug, Clone)]
pub struct Gate {
    text: String,
    metric: &'static Metric,
    bound: Bound,
    /// In the metric's unit: response times in microseconds, shares of one.
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    AtLeast,
    AtMost,
}

impl Gate {
    /// What to say if the run breaches the gate; `None` if it keeps it. A figure that the run lacks breaches.
    pub fn breach(&self, run: &Run) -> Option<String> {
        let of = run.into();
        let Some(found) = self.metric.read(&of).map(|found| found.number()) else {
            let why = self.metric.too_few(&of).unwrap_or_else(|| "the run has no such figure".to_owned());
            return Some(format!("gate {} breached: {why}", self.text));
        };
        let kept = match self.bound {
            Bound::AtLeast => found >= self.limit,
            Bound::AtMost => found <= self.limit,
        };
        (!kept).then(|| format!("gate {} breached: found {}", self.text, self.metric.unit().ascii(found)))
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || {
            let names = gates().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
            format!("'{text}' is not a gate; write METRIC>=VALUE or METRIC<=VALUE, METRIC one of {names}")
        };
        let (name, bound, value) = if let Some((name, value)) = text.split_once(">=") {
            (name, Bound::AtLeast, value)
        } else if let Some((name, value)) = text.split_once("<=") {
            (name, Bound::AtMost, value)
        } else {
            return Err(shape());
        };
        let (_, metric) = gates().find(|(known, _)| *known == name.trim()).ok_or_else(shape)?;
        Ok(Gate { text: text.into(), metric, bound, limit: parse(metric.unit(), value.trim())? })
    }
}

/// A limit in the unit of a metric.
fn parse(unit: MetricUnit, value: &str) -> Result<f64, String> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    match unit {
        MetricUnit::Time | MetricUnit::LongestTime | MetricUnit::Cost => {
            crate::values::duration_or_zero(value).map(|time| time.as_secs_f64() * 1e6)
        }
        MetricUnit::Share | MetricUnit::OfBest => value
            .strip_suffix('%')
            .and_then(|text| number(text.trim()))
            .map(|percent| percent / 100.0)
            .ok_or_else(|| format!("'{value}' is not a share; write it in per cent, such as 0.1%")),
        _ => number(value).ok_or_else(|| format!("'{value}' is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_with_their_units() {
        let gate: Gate = "p99<=20ms".parse().expect("a gate");
        assert_eq!((gate.metric.unit(), gate.bound, gate.limit), (MetricUnit::Time, Bound::AtMost, 20_000.0));
        let gate: Gate = "errors<=0.1%".parse().expect("a gate");
        assert!((gate.limit - 0.001).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_a_gate_is_told_the_shape() {
        for text in ["p99", "speed>=3", "throughput>3", "p99<=20", "errors<=1", "users>=-1"] {
            let error = Gate::from_str(text).expect_err(text);
            assert!(!error.is_empty());
        }
    }
}
