//! `nstar load` as the client of a server.

use serde_json::Value;

use crate::{
    Result,
    tools::{cpu, workspace::Workspace},
};

/// Runs `nstar load` with these flags on these processors and returns its one step. A short turn need not be steady.
pub(crate) fn step(workspace: &Workspace, processors: &str, flags: &str) -> Result<Value> {
    let words = ["load", "--json", "--no-progress"].into_iter().chain(flags.split(' ')).map(String::from);
    let words: Vec<String> = [workspace.ours("nstar")].into_iter().chain(words).collect();
    let finished = cpu::run_on(processors, &words, &[0, 4])?;
    let mut run: Value = serde_json::from_str(&finished.stdout)?;
    Ok(run["steps"][0].take())
}

/// Returns a number of a step by its name in the run file.
pub(crate) fn number(step: &Value, name: &str) -> Result<f64> {
    step[name].as_f64().ok_or_else(|| format!("the run file has no {name}").into())
}

/// Returns the requests completed per second.
///
/// # Errors
/// Requests failed. One may: the probe before the load can take what the first user then asks for.
pub(crate) fn per_s(step: &Value) -> Result<f64> {
    let count = |errors: &serde_json::Map<String, Value>| errors.values().filter_map(Value::as_u64).sum();
    let failed: u64 = step["errors"].as_object().map(count).ok_or("the run file has no errors")?;
    if failed > 1 {
        return Err(format!("requests failed: {}", step["errors"]).into());
    }
    number(step, "throughput_per_s")
}
