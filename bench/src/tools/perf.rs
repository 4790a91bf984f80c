//! Counts and profiles of a server under load, by perf(1).

mod hottest;

use std::{
    fs,
    process::{Command, Stdio},
};

pub(crate) use self::hottest::{Place, hottest};
use crate::tools::{
    cpu,
    effort::Result,
    workspace::{CLIENTS, ServerProcess, Workspace, installed},
};

/// Samples per second of processor time; not a divisor of a timer's rate.
const SAMPLES_PER_S: &str = "2999";

/// What a server did while it was counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counts {
    pub system_calls: f64,
    /// Voluntary and involuntary, of all its threads.
    pub context_switches: f64,
}

/// One line of a profile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Symbol {
    /// Share of all samples, in per cent.
    pub percent: f64,
    pub in_kernel: bool,
    pub name: String,
}

/// Says why perf cannot count here; `None` if it can.
pub(crate) fn unavailable() -> Option<String> {
    refusal(&["stat", "-x,", "-e", EVENTS], "count system calls")
}

/// Says why perf cannot sample here; `None` if it can.
pub(crate) fn cannot_sample() -> Option<String> {
    refusal(&["record", "-q", "-N", "-e", "cpu-clock", "-o", "/dev/null"], "sample")
}

/// Says why perf cannot sample all processors here, whatever runs on them; `None` if it can.
pub(crate) fn cannot_sample_all() -> Option<String> {
    refusal(&["record", "-q", "-N", "-a", "-e", "cpu-clock", "-o", "/dev/null"], "sample all processors")
}

/// Tries perf on a program that does nothing.
fn refusal(words: &[&str], what: &str) -> Option<String> {
    if !installed("perf") {
        return Some("perf is not installed".into());
    }
    let tried = Command::new("perf")
        .args(words)
        .args(["--", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "perf may not {what} (root may): {}",
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default()
        )),
        Err(error) => Some(format!("perf does not run: {error}")),
    }
}

const EVENTS: &str = "raw_syscalls:sys_enter,context-switches";

/// Counts what the server and its descendants do while the client runs. Also returns what the client printed.
pub(crate) fn count(
    workspace: &Workspace,
    server: &ServerProcess,
    client: &[String],
) -> Result<(Counts, String)> {
    let seen = workspace.path("perf.stat").display().to_string();
    let printed = watch(&["stat", "-x,", "-o", &seen, "-e", EVENTS], server, client, &[0])?;
    let text = fs::read_to_string(&seen)?;
    let counts = parse_counts(&text).ok_or_else(|| format!("perf stat counted nothing: {text}"))?;
    Ok((counts, printed))
}

/// Samples where the server's processor time goes while the client runs. Returns the symbols with their callees counted
/// to them, and the symbols alone.
pub(crate) fn profile(
    workspace: &Workspace,
    server: &ServerProcess,
    client: &[String],
) -> Result<(Vec<Symbol>, Vec<Symbol>)> {
    let seen = record(workspace, server, client, &[0], SAMPLES_PER_S)?;
    let with_callees = report(&seen, "--children", "overhead_children,sym")?;
    Ok((with_callees, report(&seen, "--no-children", "overhead,sym")?))
}

/// Samples the server so many times per second of processor time while the client runs, whose exit status must be among
/// `accepted`. Returns the file of samples.
fn record(
    workspace: &Workspace,
    server: &ServerProcess,
    client: &[String],
    accepted: &[i32],
    samples_per_s: &str,
) -> Result<String> {
    let seen = workspace.path("perf.data").display().to_string();
    // -N: without it perf copies what was sampled to ~/.debug, where it stays.
    let words = ["record", "-q", "-N", "-e", "cpu-clock", "-F", samples_per_s, "-g", "-o", &seen];
    watch(&words, server, client, accepted)?;
    Ok(seen)
}

/// How often perf is tried: a process may end after it was listed and before perf attaches to it.
const TRIES: usize = 3;

/// Runs perf on the server's processes while the client runs, whose exit status must be among `accepted`. Returns what the
/// client printed.
fn watch(words: &[&str], server: &ServerProcess, client: &[String], accepted: &[i32]) -> Result<String> {
    let mut tries = (1..TRIES).map(|_| watch_once(words, server, client, accepted));
    tries.find(Result::is_ok).unwrap_or_else(|| watch_once(words, server, client, accepted))
}

fn watch_once(words: &[&str], server: &ServerProcess, client: &[String], accepted: &[i32]) -> Result<String> {
    let processes: Vec<String> = cpu::tree(server.pid()).iter().map(u32::to_string).collect();
    let output = Command::new("perf")
        .args(words)
        .args(["-p", &processes.join(","), "--", "taskset", "-c", &CLIENTS.to_string()])
        .args(client)
        .stdin(Stdio::null())
        .output()?;
    // perf ends with the status of the client.
    if !output.status.code().is_some_and(|code| accepted.contains(&code)) {
        return Err(format!("perf failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn report(data: &str, callees: &str, fields: &str) -> Result<Vec<Symbol>> {
    let output = Command::new("perf")
        .args(["report", "--stdio", "-i", data, callees, "-g", "none", "-F", fields, "-t", "|"])
        .stdin(Stdio::null())
        .output()?;
    let symbols = parse_symbols(&String::from_utf8_lossy(&output.stdout));
    if symbols.is_empty() {
        return Err(format!("perf report shows nothing: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(symbols)
}

/// `112240,,raw_syscalls:sys_enter,..`, a line for each event.
fn parse_counts(text: &str) -> Option<Counts> {
    let of = |event: &str| {
        let line = text.lines().find(|line| line.split(',').nth(2) == Some(event))?;
        line.split(',').next()?.parse().ok()
    };
    Some(Counts { system_calls: of("raw_syscalls:sys_enter")?, context_switches: of("context-switches")? })
}

/// `12.34%|[k] name`, a line for each symbol.
fn parse_symbols(text: &str) -> Vec<Symbol> {
    let symbol = |line: &str| {
        let (percent, rest) = line.split_once('|')?;
        let (space, name) = rest.trim().split_once(' ')?;
        Some(Symbol {
            percent: percent.trim().strip_suffix('%')?.parse().ok()?,
            in_kernel: space == "[k]",
            name: name.trim().to_owned(),
        })
    };
    text.lines().filter_map(symbol).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_what_perf_stat_writes() {
        let text = "# started on Sat\n\n112240,,raw_syscalls:sys_enter,422701501,100.00,,\n\
                    233,,context-switches,422701501,100.00,,\n";
        assert_eq!(parse_counts(text), Some(Counts { system_calls: 112_240.0, context_switches: 233.0 }));
        assert_eq!(parse_counts("<not supported>,,raw_syscalls:sys_enter,0,100.00,,\n"), None);
        assert_eq!(parse_counts(""), None);
    }

    #[test]
    fn symbols_are_read_from_what_perf_report_prints() {
        let text =
            "# Overhead|Symbol\n    30.95%|[k] __x64_sys_sendto\n     2.07%|[.] head::read::{{closure}}\n\n";
        let symbol = |percent, in_kernel, name: &str| Symbol { percent, in_kernel, name: name.into() };
        assert_eq!(
            parse_symbols(text),
            [symbol(30.95, true, "__x64_sys_sendto"), symbol(2.07, false, "head::read::{{closure}}")]
        );
    }
}
