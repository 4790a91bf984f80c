//! CPU time as the operating system accounts it: user plus system, of a whole process tree.

use std::{
    fmt, fs,
    process::{Command, Stdio},
};

use crate::Outcome;

/// A finished program: what it printed, and the CPU time of it and all its children.
#[derive(Debug)]
pub(crate) struct Finished {
    pub stdout: String,
    /// Seconds.
    pub cpu_s: f64,
}

/// Runs a program to its end on one processor, or on those of a list.
///
/// # Errors
/// A program that cannot be run, or fails: its exit status is none of `accepted`.
pub(crate) fn run_on(processors: impl fmt::Display, words: &[String], accepted: &[i32]) -> Outcome<Finished> {
    // bash's `time` reports the times that wait4 gave it, in milliseconds.
    let script = r#"TIMEFORMAT="%3U %3S"; time taskset -c "$@""#;
    let output = Command::new("bash")
        .args(["-c", script, "time", &processors.to_string()])
        .args(words)
        .stdin(Stdio::null())
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.code().is_some_and(|code| accepted.contains(&code)) {
        return Err(format!("{words:?} failed: {stderr}").into());
    }
    let times = stderr.lines().last().unwrap_or_default();
    let cpu_s = times.split_whitespace().map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(Finished { stdout: String::from_utf8_lossy(&output.stdout).into_owned(), cpu_s })
}

/// CPU time so far of a running process and all its descendants, seconds.
pub(crate) fn of_tree(root: u32) -> f64 {
    tree(root).into_iter().filter_map(own).sum()
}

/// A running process and all its descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut all = children(root).into_iter().flat_map(tree).collect::<Vec<_>>();
    all.push(root);
    all
}

/// The living children, of whichever thread.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// A process's own time and that of its children which have ended and been waited for.
fn own(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // utime, stime, cutime and cstime are fields 14 to 17; the name in field 2 may hold anything but ends at the last parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<f64>()).sum::<Result<f64, _>>().ok()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}
