//! `nstar sweep --repeats N`: the same sweep again and again, and the server restarted before each.

use std::{
    io,
    os::fd::AsFd,
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use analysis::{
    contrast::{Given, Point},
    run::Run,
};
use sweep::sweep::{SweepPlan, sweep};

use super::measure;
use crate::{
    ci::CiReport,
    exit::{Exit, Failure},
    flags::Sweep,
    interrupt::Interrupt,
    output::{self, Files},
    progress::Progress,
};

/// The longest that a command may take to restart the server, and the server until it answers.
const RESTART_MAX: Duration = Duration::from_secs(300);

/// How often is looked whether it did.
const LOOK: Duration = Duration::from_millis(100);

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
    Ok(sweep(&plan, &interrupt.asked, progress).map_err(measure::failed)?.run)
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

fn end(child: &mut Child) {
    // It may have ended meanwhile.
    let _ = child.kill();
    let _ = child.wait();
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
