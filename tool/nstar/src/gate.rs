//! `--gate`: a bound on the answer that a pipeline can fail on.

use std::str::FromStr;

use analysis::run::Run;

/// One bound, such as `throughput>=1000`, `users>=50`, `p99<=20ms`, `errors<=0.1%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    text: String,
    metric: Metric,
    bound: Bound,
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Metric {
    Users,
    Throughput,
    Mean,
    P50,
    P90,
    P99,
    P999,
    Errors,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    AtLeast,
    AtMost,
}

const METRICS: [(&str, Metric); 8] = [
    ("users", Metric::Users),
    ("throughput", Metric::Throughput),
    ("mean", Metric::Mean),
    ("p50", Metric::P50),
    ("p90", Metric::P90),
    ("p99", Metric::P99),
    ("p999", Metric::P999),
    ("errors", Metric::Errors),
];

impl Gate {
    /// What to say if the run breaches the gate; `None` if it keeps it. A figure the run lacks breaches.
    pub fn breach(&self, run: &Run) -> Option<String> {
        let Some(found) = self.metric.of(run) else {
            return Some(format!("gate {}: the run has no such figure", self.text));
        };
        let kept = match self.bound {
            Bound::AtLeast => found >= self.limit,
            Bound::AtMost => found <= self.limit,
        };
        (!kept).then(|| format!("gate {} breached: found {}", self.text, self.metric.show(found)))
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || {
            let names = METRICS.map(|(name, _)| name).join(", ");
            format!("'{text}' is not a gate; write METRIC>=VALUE or METRIC<=VALUE, METRIC one of {names}")
        };
        let (name, bound, value) = if let Some((name, value)) = text.split_once(">=") {
            (name, Bound::AtLeast, value)
        } else if let Some((name, value)) = text.split_once("<=") {
            (name, Bound::AtMost, value)
        } else {
            return Err(shape());
        };
        let (_, metric) = METRICS.into_iter().find(|(known, _)| *known == name.trim()).ok_or_else(shape)?;
        Ok(Gate { text: text.into(), metric, bound, limit: metric.parse(value.trim())? })
    }
}

impl Metric {
    /// Response times in microseconds, errors as a share.
    fn of(self, run: &Run) -> Option<f64> {
        let verdict = &run.verdict;
        let time = &verdict.response_time_at_saturation_us;
        match self {
            Metric::Users => verdict.users_at_saturation.map(f64::from),
            Metric::Throughput => Some(verdict.throughput_max_per_s),
            Metric::Mean => Some(time.mean),
            Metric::P50 => Some(time.p50),
            Metric::P90 => Some(time.p90),
            Metric::P99 => Some(time.p99),
            Metric::P999 => Some(time.p999),
            Metric::Errors => Some(run.error_share()),
        }
    }

    fn parse(self, value: &str) -> Result<f64, String> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        match self {
            Metric::Users | Metric::Throughput => {
                number(value).ok_or_else(|| format!("'{value}' is not a number"))
            }
            Metric::Errors => value
                .strip_suffix('%')
                .and_then(|text| number(text.trim()))
                .map(|percent| percent / 100.0)
                .ok_or_else(|| format!("'{value}' is not a share; write it in per cent, such as 0.1%")),
            _ => crate::values::duration_or_zero(value).map(|time| time.as_secs_f64() * 1e6),
        }
    }

    fn show(self, found: f64) -> String {
        match self {
            Metric::Users => format!("{found}"),
            Metric::Throughput => format!("{found:.1} req/s"),
            Metric::Errors => format!("{:.3} %", found * 100.0),
            _ => format!("{found:.0} us"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_with_their_units() {
        let gate: Gate = "p99<=20ms".parse().expect("a gate");
        assert_eq!((gate.metric, gate.bound, gate.limit), (Metric::P99, Bound::AtMost, 20_000.0));
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
