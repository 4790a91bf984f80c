//! CPU time, user plus system, as the operating system accounts it to a process and its descendants.

use std::{
    collections::BTreeMap,
    fmt, fs,
    process::{Command, Stdio},
};

use crate::tools::effort::Result;

/// A program that ran to its end: what it printed, and the CPU time of it and its children.
#[derive(Debug)]
pub(crate) struct ProgramRun {
    pub stdout: String,
    /// Seconds.
    pub cpu_s: f64,
}

/// Runs a program to its end on one processor, or on a list of them.
///
/// # Errors
/// The program cannot be run, or its exit status is not among `accepted`.
pub(crate) fn run_on(
    processors: impl fmt::Display,
    words: &[String],
    accepted: &[i32],
) -> Result<ProgramRun> {
    run_on_with(processors, words, accepted, &[])
}

/// As [`run_on`], with variables in the program's environment.
pub(crate) fn run_on_with(
    processors: impl fmt::Display,
    words: &[String],
    accepted: &[i32],
    variables: &[(&str, &str)],
) -> Result<ProgramRun> {
    // bash's `time` reports what wait4 returned, in milliseconds.
    let script = r#"TIMEFORMAT="%3U %3S"; time taskset -c "$@""#;
    let output = Command::new("bash")
        .args(["-c", script, "time", &processors.to_string()])
        .args(words)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.code().is_some_and(|code| accepted.contains(&code)) {
        return Err(format!("{words:?} failed: {stderr}").into());
    }
    let times = stderr.lines().last().unwrap_or_default();
    let cpu_s = times.split_whitespace().map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ProgramRun { stdout: String::from_utf8_lossy(&output.stdout).into_owned(), cpu_s })
}

/// Returns the CPU time so far of a running process and its descendants, in seconds.
pub(crate) fn of_tree(root: u32) -> f64 {
    tree(root).into_iter().filter_map(own).sum()
}

/// Returns a running process and all its descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut all = children(root).into_iter().flat_map(tree).collect::<Vec<_>>();
    all.push(root);
    all
}

/// Returns the living children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// A thread of a running process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Thread {
    /// The kernel's name of it, 15 bytes at most.
    pub name: String,
    /// CPU time so far, seconds. What a thread has used since the last tick of a clock may be missing.
    pub cpu_s: f64,
}

/// Returns the threads of a running process by their numbers.
///
/// # Errors
/// The process has ended, or the kernel keeps no accounts of threads (`CONFIG_SCHED_INFO`).
pub(crate) fn threads(pid: u32) -> Result<BTreeMap<u32, Thread>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let threads: BTreeMap<u32, Thread> = tasks
        .filter_map(|task| {
            // One that ends just now has neither file.
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let account = fs::read_to_string(task.path().join("schedstat")).ok()?;
            Some((task.file_name().to_str()?.parse().ok()?, thread(&name, &account)?))
        })
        .collect();
    if threads.is_empty() { Err("the kernel keeps no schedstat of threads".into()) } else { Ok(threads) }
}

/// A thread by its `comm` and `schedstat`: proc_pid_comm(5), and nanoseconds on a processor as the first field of
/// Documentation/scheduler/sched-stats.rst.
fn thread(name: &str, account: &str) -> Option<Thread> {
    let on_cpu_ns: f64 = account.split_whitespace().next()?.parse().ok()?;
    Some(Thread { name: name.trim_end().to_owned(), cpu_s: on_cpu_ns / 1e9 })
}

/// Returns the time of a process and of the children it has waited for, in seconds.
fn own(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields 14 to 17 are utime, stime, cutime and cstime. The name in field 2 may hold anything and ends at the last
    // parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<f64>()).sum::<Result<f64, _>>().ok()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, thread};

    use super::*;

    #[test]
    fn a_thread_is_known_by_its_name_and_its_time_on_a_processor() {
        let expected = Thread { name: "page client".into(), cpu_s: 1.5 };
        assert_eq!(thread("page client\n", "1500000000 50866 7\n"), Some(expected));
        assert_eq!(thread("screen\n", ""), None);
    }

    #[test]
    fn the_threads_of_this_process_are_found_by_name() {
        let ((ready, is_ready), (end, ended)) = (channel(), channel::<()>());
        let waits = move || ready.send(()).is_ok() && ended.recv().is_err();
        let waiting = thread::Builder::new().name("waits here".into()).spawn(waits).expect("a thread");
        is_ready.recv().expect("it runs");
        let names: Vec<String> =
            threads(std::process::id()).expect("threads").into_values().map(|thread| thread.name).collect();
        drop(end);
        assert!(waiting.join().is_ok_and(|waited| waited));
        assert!(names.iter().any(|name| name == "waits here"), "{names:?}");
    }
}
