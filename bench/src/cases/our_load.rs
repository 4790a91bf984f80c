//! `nstar load` as the client of a server.

use serde_json::Value;

use crate::{Outcome, cpu, place::Place};

/// What `nstar load` with these flags, on these processors, says of its one step. A short turn need not be steady.
pub(super) fn step(place: &Place, processors: &str, flags: &str) -> Outcome<Value> {
    let words = ["load", "--json", "--no-progress"].into_iter().chain(flags.split(' ')).map(String::from);
    let words: Vec<String> = [place.ours("nstar")].into_iter().chain(words).collect();
    let finished = cpu::run_on(processors, &words, &[0, 4])?;
    let mut run: Value = serde_json::from_str(&finished.stdout)?;
    Ok(run["steps"][0].take())
}

/// A number of a step.
pub(super) fn number(step: &Value, name: &str) -> Outcome<f64> {
    step[name].as_f64().ok_or_else(|| format!("the run file has no {name}").into())
}

/// What came per second, where nothing failed but for the one request before the load: it takes what the first user asks
/// for first.
pub(super) fn per_s(step: &Value) -> Outcome<f64> {
    let count = |errors: &serde_json::Map<String, Value>| errors.values().filter_map(Value::as_u64).sum();
    let failed: u64 = step["errors"].as_object().map(count).ok_or("the run file has no errors")?;
    if failed > 1 {
        return Err(format!("requests failed: {}", step["errors"]).into());
    }
    number(step, "throughput_per_s")
}
