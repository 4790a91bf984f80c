//! `--gate`: a bound on an answer, or on how it changed, that a pipeline can fail on.

use std::str::FromStr;

use analysis::{
    contrast::{self, Figure, GateVerdict, Limit},
    run::Run,
};
use report::{
    gates::HeldGate,
    metrics::{Metric, MetricUnit, gates},
};

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
    /// What to say if the run breaches the gate; `None` if it keeps it.
    pub fn breach(&self, run: &Run) -> Option<String> {
        let held = self.held(run);
        let breached = held.verdict == GateVerdict::Breached;
        breached.then(|| format!("gate {} breached: {}", held.text, held.found))
    }

    /// What the gate comes to. A figure that the run lacks breaches it.
    pub fn held(&self, run: &Run) -> HeldGate {
        let of = run.into();
        let number = self.metric.read(&of).map(|found| found.number());
        let kept = number.is_some_and(|found| match self.bound {
            Bound::AtLeast => found >= self.limit,
            Bound::AtMost => found <= self.limit,
        });
        let lacking = || self.metric.too_few(&of).unwrap_or_else(|| "the run has no such figure".to_owned());
        HeldGate {
            file: String::new(),
            text: self.text.clone(),
            verdict: if kept { GateVerdict::Met } else { GateVerdict::Breached },
            found: number.map_or_else(lacking, |found| format!("found {}", self.metric.unit().ascii(found))),
        }
    }

    /// The gate on a run that decides nothing, for this reason.
    pub fn undecided(&self, why: &str) -> HeldGate {
        HeldGate {
            file: String::new(),
            text: self.text.clone(),
            verdict: GateVerdict::NotDecided,
            found: report::printable(why).into(),
        }
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

/// One bound on a change, such as `throughput>-3%`, `p99<+10%`, `users>-5%`, `cpu<+5%`.
#[derive(Debug, Clone)]
pub struct ChangeGate(pub contrast::Gate);

impl FromStr for ChangeGate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || {
            let names = Figure::named().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            format!(
                "'{text}' is not a gate on a change; write METRIC>CHANGE% or METRIC<CHANGE%, such as throughput>-3%, METRIC one \
                 of {names}"
            )
        };
        let at = text.find(['<', '>']).ok_or_else(shape)?;
        let limit = if text[at..].starts_with('>') { Limit::Above } else { Limit::Below };
        // Of a measured change, nobody can tell `>` from `>=`.
        let change = text[at + 1..].trim_start_matches('=').trim();
        let name = text[..at].trim();
        let (_, figure) = Figure::named().into_iter().find(|(known, _)| *known == name).ok_or_else(shape)?;
        let percent = change.strip_suffix('%').and_then(|change| change.trim().parse::<f64>().ok());
        let percent =
            percent.filter(|percent| percent.is_finite() && *percent > -100.0).ok_or_else(|| {
                format!(
                    "'{change}' is not a change; write it in per cent and above -100%, such as -3% or +10%"
                )
            })?;
        Ok(Self(contrast::Gate { text: text.into(), figure, limit, ratio: 1.0 + percent / 100.0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_with_their_units() {
        for text in ["p95<=20ms", "p99<=20ms"] {
            let gate: Gate = text.parse().expect("a gate");
            let read = (gate.metric.unit(), gate.bound, gate.limit);
            assert_eq!(read, (MetricUnit::Time, Bound::AtMost, 20_000.0), "{text}");
        }
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

    #[test]
    fn gates_on_changes_are_read() {
        let ChangeGate(gate) = "throughput>-3%".parse().expect("a gate");
        assert_eq!((gate.figure, gate.limit), (Figure::Throughput, Limit::Above));
        assert!((gate.ratio - 0.97).abs() < 1e-12);
        let ChangeGate(gate) = "p95<+10%".parse().expect("a gate");
        assert_eq!(gate.figure, Figure::ResponseTimeQuantile { percentile: "p95".into() });
        let ChangeGate(gate) = "cpu <= +5 %".parse().expect("a gate");
        assert_eq!((gate.figure, gate.limit), (Figure::CpuPerRequest, Limit::Below));
        assert!((gate.ratio - 1.05).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_a_gate_on_a_change_is_told_the_shape() {
        for text in ["p99", "speed>-3%", "throughput>-3", "throughput>-100%", "p99<x%", "errors<1%", "=>3%"] {
            let error = ChangeGate::from_str(text).expect_err(text);
            assert!(error.contains("%"), "{error}");
        }
    }
}
