//! `nstar sweep --repeats N`: the same sweep again and again, and the server restarted before each.

use std::{
    fs, io,
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use analysis::{
    contrast::{Given, Point},
    run::Run,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};
use sweep::sweep::{SweepPlan, sweep};

use super::measure;
use crate::{
    ci::CiReport,
    exit::{self, Exit, Failure},
    flags::Sweep,
    interrupt::Interrupt,
    output::{self, Files},
    progress::Progress,
};

/// The longest that a command may take to restart the server, and the server until it answers.
const RESTART_MAX: Duration = Duration::from_secs(300);

/// How often is looked whether it did.
const LOOK: Duration = Duration::from_millis(100);

/// The longest that what is ended may take to put things in order.
const IN_ORDER: Duration = Duration::from_secs(2);

/// Sweeps as often as was asked, each time into a file of its own.
pub(super) fn run(
    flags: &Sweep,
    repeats: u16,
    plan: &SweepPlan,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let files = files(flags, repeats)?;
    let mut ci = CiReport::plan(&flags.ci, &flags.show)?;
    let mut progress = Progress::new(flags.show.no_progress);
    let (mut points, mut worst) = (Vec::new(), Exit::Done);
    for (files, number) in files.iter().zip(1u32..) {
        progress.say(&report::progress::repeat(number, repeats.into()));
        // What settings do is the same for all.
        let plan = SweepPlan { advise: number == 1, ..plan.clone() };
        let file = files.run.display().to_string();
        let swept = repeat(flags, plan, interrupt, &mut progress);
        let run = swept.inspect_err(|failure| ci.fail(&file, failure))?;
        files.write(&run)?;
        worst = worst.or_worse(output::exit_of(&run, &flags.show, interrupt));
        ci.add(&run, &file, interrupt)?;
        points.push(Point::of(&Given { file, run }));
        if interrupt.signal().is_some() {
            break;
        }
    }
    progress.finish();
    output::print(&report::history::repeats(&points, &output::terminal_options(&[])))?;
    Ok(worst)
}

/// Restarts the server, if that was asked for, and sweeps.
fn repeat(
    flags: &Sweep,
    mut plan: SweepPlan,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<Run, Failure> {
    if let Some(command) = &flags.repeat.restart {
        restart(command, interrupt)?;
        wait_until_it_answers(&plan, flags, interrupt)?;
    }
    // Members of a fleet are claimed for one sweep.
    let members = (&mut plan.generators, &mut plan.observe);
    measure::claim(&flags.generate, members, &interrupt.asked).map_err(|failure| {
        let interrupted = "interrupted while the fleet was gathered";
        interrupt.signal().map_or(failure, |signal| Failure::Interrupted(signal, interrupted))
    })?;
    let swept = sweep(&plan, &interrupt.asked, progress);
    Ok(swept.map_err(|error| measure::failed(error, interrupt))?.run)
}

/// `run-1.json` to `run-5.json`, or `run-01.json` to `run-10.json`, so that a shell lists them in order.
fn files(flags: &Sweep, repeats: u16) -> Result<Vec<Files>, Failure> {
    let width = repeats.to_string().len();
    (1..=repeats).map(|number| Files::plan_part(&flags.output, &format!("{number:0width$}"))).collect()
}

/// Runs the command that restarts the server, with its output on stderr.
fn restart(command: &str, interrupt: &Interrupt) -> Result<(), Failure> {
    let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(Failure::failed)?;
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(stderr)
        .spawn()
        .map_err(|error| Failure::failed(format!("--restart: cannot run sh: {error}")))?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(Failure::failed)? {
            break status;
        }
        if begun.elapsed() > RESTART_MAX {
            end(&mut child);
            return Err(Failure::failed(format!(
                "--restart: the command had not ended after {} s; let it leave the server behind in the background (&)",
                RESTART_MAX.as_secs()
            )));
        }
        if let Err(interrupted) = go_on(interrupt) {
            end(&mut child);
            return Err(interrupted);
        }
    };
    if status.success() {
        Ok(())
    } else {
        Err(Failure::failed(format!("--restart: the command ended with {status}")))
    }
}

/// Ends a command and all that it started and that runs below it, such as a server that would keep the port; first they are told
/// to end, so that they can put things in order. What has left it, as daemons do, stays. The command is in nstar's own group of
/// processes, and not in one that could be killed as a whole: in the background of a terminal, `sudo` cannot ask for a password.
fn end(child: &mut Child) {
    let root = Pid::from_child(child);
    let all: Vec<Started> = stopped(root).into_iter().map(Started::held).collect();
    // All are told before any goes on, so that none takes the next step of a script.
    for signal in [Signal::TERM, Signal::CONT] {
        for one in &all {
            // It may have ended meanwhile, or run as somebody else.
            let _ = one.send(signal);
        }
    }
    let deadline = Instant::now() + IN_ORDER;
    let left = all.iter().filter(|one| !one.ends_before(deadline)).flat_map(|one| stopped(one.pid));
    let left: Vec<Started> = left.map(Started::held).collect();
    let mut refused = Vec::new();
    // Children before their parents.
    for one in left.iter().rev() {
        if one.send(Signal::KILL) == Err(Errno::PERM) && !refused.contains(&one.pid) {
            exit::warn(format!("--restart: process {} runs as another user and goes on", one.pid));
            refused.push(one.pid);
        }
    }
    if !refused.contains(&root) {
        let _ = child.wait();
    }
}

/// A process that a command started.
struct Started {
    pid: Pid,
    /// Stands for it, also where its number has become another's. `None` where it has ended, and where the kernel has no handles.
    handle: Option<OwnedFd>,
}

impl Started {
    /// Of a process that is stopped, as its parent is, so that nobody reaps it meanwhile.
    fn held(pid: Pid) -> Self {
        let handle = pidfd_open(pid, PidfdFlags::empty());
        if handle.as_ref().is_err_and(|error| *error != Errno::SRCH) {
            // It may not go on without one: its number could become another's.
            let _ = kill_process(pid, Signal::KILL);
        }
        Self { pid, handle: handle.ok() }
    }

    fn send(&self, signal: Signal) -> Result<(), Errno> {
        self.handle.as_ref().map_or(Ok(()), |handle| pidfd_send_signal(handle, signal))
    }

    /// Waits until it has ended. `false` where it has not by then.
    fn ends_before(&self, deadline: Instant) -> bool {
        let Some(handle) = &self.handle else { return true };
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()));
        let ended = left.map(|left| poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&left)));
        matches!(ended, Ok(Ok(1..)))
    }
}

/// Stops a process and its descendants, so that they start no more, and returns them, each before its children.
fn stopped(root: Pid) -> Vec<Pid> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        let _ = kill_process(pid, Signal::STOP);
        all.extend(children(pid));
        next += 1;
    }
    all
}

/// The children of a process; none where the kernel lists none.
fn children(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let numbers = lists.iter().flat_map(|list| list.split_whitespace());
    numbers.filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}

/// Waits until the server answers a request as the scenario expects; where others make the load, they ask it themselves.
fn wait_until_it_answers(plan: &SweepPlan, flags: &Sweep, interrupt: &Interrupt) -> Result<(), Failure> {
    if flags.generate.is_elsewhere() {
        return Ok(());
    }
    let begun = Instant::now();
    loop {
        match load::probe(&plan.load) {
            Ok(probes) if probes.iter().all(|probe| probe.status_expected) => return Ok(()),
            // What it answers at last is told, and counted, by the sweep.
            Ok(_) if begun.elapsed() > RESTART_MAX => return Ok(()),
            Err(error) if begun.elapsed() > RESTART_MAX => {
                return Err(Failure::failed(format!("after --restart: {error}")));
            }
            _ => go_on(interrupt)?,
        }
    }
}

/// Waits a moment, unless a signal came.
fn go_on(interrupt: &Interrupt) -> Result<(), Failure> {
    thread::sleep(LOOK);
    match interrupt.signal().filter(|_| interrupt.asked.load(Ordering::Relaxed)) {
        Some(signal) => Err(Failure::Interrupted(signal, "interrupted while the server was restarted")),
        None => Ok(()),
    }
}
