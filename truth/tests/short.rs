//! The short form of the suite: what nstar has to get right on any machine, also a slow and noisy one.

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

#[path = "../../tool/nstar/tests/common/build.rs"]
mod build;

/// Reached only by what would never happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Held by each test, so that none measures beside another.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The suite, with an nstar of these sources.
fn truth(arguments: &[&str]) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_truth"));
    let nstar = program.with_file_name("nstar");
    build::nstar(&nstar);
    let mut command = Command::new(program);
    command.args(arguments).arg("--nstar").arg(nstar).stdout(Stdio::piped());
    command
}

#[test]
fn nstar_is_mostly_right_and_not_wrong_while_sure() {
    let _alone = alone();
    let output = truth(&["--short"]).output().expect("the suite runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(said.contains("| pool "), "{said}\n{errors}");
}

/// Whether this machine can stand for several hosts, on which there are these programs.
fn makes_hosts_or_skip(test: &str, programs: &[&str]) -> bool {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--uts", "--net", "--pid", "--fork", "--mount-proc", "true"]);
    let separates = unshare.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    let mut needed = ["ip", "ssh-keygen", "sshd"].into_iter().chain(programs.iter().copied());
    let can = separates && needed.all(is_installed);
    let needs = [&["root", "namespaces", "iproute2", "openssh-server"][..], programs].concat().join(", ");
    assert!(can || env::var_os("CI").is_none(), "{test} needs {needs}, and CI must have them");
    if !can {
        eprintln!("SKIPPED {test}: it needs {needs}; see scripts/setup-truth");
    }
    can
}

fn is_installed(program: &str) -> bool {
    if program == PYMYSQL {
        let mut python = Command::new("/usr/bin/python3");
        let imported = python.args(["-c", "import pymysql"]).stderr(Stdio::null()).status();
        return imported.is_ok_and(|status| status.success());
    }
    ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|at| Path::new(at).join(program).exists())
}

/// Namespaces and links of other hosts that a process has made and not removed.
fn left_by(process: u32) -> Vec<PathBuf> {
    let folders = ["/run/netns", "/sys/class/net"].map(fs::read_dir);
    let entries = folders.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    let begin = format!("tf{process}x");
    let is_its_own = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&begin))
    };
    entries.filter(is_its_own).collect()
}

/// The hosts on which processes of this name were seen at any step; `None`: that of the generator.
fn hosts_of<'a>(name: &str, run: &'a Value) -> Vec<Option<&'a str>> {
    let steps = run["steps"].as_array().expect("steps").iter();
    let resources = steps.flat_map(|step| step["resources"].as_array().expect("resources"));
    let identities = resources.map(|resource| &resource["identity"]);
    identities.filter(|identity| identity["name"] == name).map(|identity| identity["on"].as_str()).collect()
}

#[test]
fn a_server_behind_ssh_is_judged_by_what_an_agent_on_its_host_saw() {
    let test = "a_server_behind_ssh_is_judged_by_what_an_agent_on_its_host_saw";
    let _alone = alone();
    if !makes_hosts_or_skip(test, &[]) {
        return;
    }
    let keep = TempDir::new().expect("a folder");
    let said = run_leaving_nothing(&["pool", "--behind", "ssh", "--short"], keep.path());
    assert!(said.contains("| rust, behind ssh |"), "{said}");
    assert!(said.contains("Behind ssh: 1 of 1 cases."), "{said}");
    is_only_on("far", "server", &kept("pool", keep.path()));
}

/// Runs cases with their servers on other hosts, of which nothing is left. Returns what was said.
fn run_leaving_nothing(arguments: &[&str], keep: &Path) -> String {
    let folder = keep.display().to_string();
    let mut suite = truth(&[arguments, &["--keep", &folder]].concat());
    let suite = suite.stderr(Stdio::piped()).spawn().expect("the suite starts");
    let process = suite.id();
    let output = suite.wait_with_output().expect("the suite runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + "\n" + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(left_by(process).is_empty(), "{:?}\n{said}", left_by(process));
    said
}

/// The run file of a case.
fn kept(case: &str, folder: &Path) -> Value {
    let run = fs::read_to_string(folder.join(format!("{case}.json"))).expect("a run file");
    serde_json::from_str(&run).expect("JSON")
}

/// Checks that processes of this name were seen on this host and on no other.
fn is_only_on(host: &str, name: &str, run: &Value) {
    let hosts = hosts_of(name, run);
    assert!(!hosts.is_empty() && hosts.iter().all(|on| *on == Some(host)), "{name}: {hosts:?}\n{run}");
}

/// The package of the library by which the tier in Python calls the database.
const PYMYSQL: &str = "python3-pymysql";
/// What has to be there for every case of the short form whose tiers stand on hosts of their own.
const PROGRAMS: [&str; 4] = ["mariadbd", "nginx", "python3", PYMYSQL];

#[test]
fn a_bottleneck_is_named_with_the_one_of_four_hosts_that_it_is_on() {
    let test = "a_bottleneck_is_named_with_the_one_of_four_hosts_that_it_is_on";
    let _alone = alone();
    if !makes_hosts_or_skip(test, &PROGRAMS) {
        return;
    }
    let keep = TempDir::new().expect("a folder");
    let said = run_leaving_nothing(&["--hosts", "--short"], keep.path());
    // Two cases, each once more where it was inconclusive. On a busy machine one of them may be so twice.
    assert!(said.contains("On hosts of their own: 2 of 2 cases."), "{said}");
    assert!(said.contains("wrong 0 of ") && !said.contains("right 0 of "), "{said}");
    for (case, front) in [("back-lock", "nginx"), ("link-front-back", "gate")] {
        let run = kept(case, keep.path());
        for (host, name) in [("front", front), ("back", "python3"), ("db", "mariadbd")] {
            is_only_on(host, name, &run);
        }
    }
}

/// What the hosts themselves need is hidden as well, and would be missed first if they were made first.
#[test]
fn a_bus_that_is_not_installed_is_missed_before_any_host_is_made() {
    let test = "a_bus_that_is_not_installed_is_missed_before_any_host_is_made";
    if !makes_hosts_or_skip(test, &[]) {
        return;
    }
    let program = env!("CARGO_BIN_EXE_truth");
    let without = "mount -t tmpfs none /usr/sbin && PATH=/nowhere && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", without, "sh", program, "back-lock"])
        .args(["--hosts", "--generators", "nats", "--nstar", program])
        .output()
        .expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("back-lock: nats-server is not installed"), "{said}");
}

/// The processes in a namespace.
fn processes_in(namespace: &str) -> Vec<PathBuf> {
    let listed = Command::new("ip").args(["netns", "pids", namespace]).output().expect("ip runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    listed.split_whitespace().map(|pid| Path::new("/proc").join(pid)).collect()
}

/// Whether an agent is among them.
fn is_observed(processes: &[PathBuf]) -> bool {
    processes.iter().any(|it| fs::read_to_string(it.join("comm")).is_ok_and(|name| name.trim() == "nstar"))
}

#[test]
fn a_signal_ends_what_runs_on_the_other_host_and_removes_it() {
    let test = "a_signal_ends_what_runs_on_the_other_host_and_removes_it";
    let _alone = alone();
    if makes_hosts_or_skip(test, &[]) {
        ends_by_a_signal(&["pool", "--behind", "ssh"], 2);
    }
}

/// Three namespaces, a link to each from here, and one of those over which tiers are called.
#[test]
fn a_signal_ends_what_runs_on_hosts_of_several_tiers_and_removes_them() {
    let test = "a_signal_ends_what_runs_on_hosts_of_several_tiers_and_removes_them";
    let _alone = alone();
    if makes_hosts_or_skip(test, &PROGRAMS) {
        ends_by_a_signal(&["back-lock", "--hosts"], 7);
    }
}

/// Tells the suite to stop once an agent observes on the first host. So many namespaces and links are there by then.
fn ends_by_a_signal(arguments: &[&str], made: usize) {
    let mut suite = truth(arguments).spawn().expect("the suite starts");
    let name = format!("tf{}x0", suite.id());
    let (mut processes, deadline) = (Vec::new(), Instant::now() + PATIENCE);
    while !is_observed(&processes) {
        let goes_on = matches!(suite.try_wait(), Ok(None)) && Instant::now() < deadline;
        assert!(goes_on, "no agent came to observe");
        thread::sleep(Duration::from_millis(20));
        processes = processes_in(&name);
    }
    let number = |file: &Path| fs::metadata(file).map(|about| about.ino()).ok();
    let namespace = number(&Path::new("/run/netns").join(&name));
    assert!(namespace.is_some() && left_by(suite.id()).len() == made, "{:?}", left_by(suite.id()));
    kill_process(Pid::from_child(&suite), Signal::TERM).expect("a signal");
    let status = suite.wait().expect("the suite ends");
    assert_eq!(status.code(), Some(1), "no case was run");
    assert!(left_by(suite.id()).is_empty(), "{:?}", left_by(suite.id()));
    let stays = |process: &&PathBuf| number(&process.join("ns/net")) == namespace;
    let left: Vec<_> = processes.iter().filter(stays).collect();
    assert!(left.is_empty(), "{left:?}");
}
