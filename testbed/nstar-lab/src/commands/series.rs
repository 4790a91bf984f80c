//! `nstar-lab run all`: several experiments one after the other, and an index of them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use experiment::{comparison, definition::Experiment, journal::Journal, names::slug, progress::FREE_SWEEP};
use nstar::{
    commands::experiment::{Reported, Session, run_in},
    exit::{self, Exit, Failure},
    flags::Conditions,
    output,
};
use report::{
    index::{self, Index, Outcome, Shown},
    progress,
};
use sweep::conclusion::RunStart;

use crate::published;

/// What a sweep without a time of its own is given at the quick scale.
const QUICK_SWEEP: Duration = Duration::from_secs(35);
/// At the quick scale an experiment has two thirds of its published time: all of them fit into three quarters of an hour.
const QUICK_PART: f64 = 2.0 / 3.0;

/// An experiment of the series.
struct Planned {
    /// The name of its folder.
    name: String,
    /// What it is called on the command line.
    given: String,
    title: String,
    /// How it is run.
    run: Run,
    /// How long it was measured before, where it is gone on with; `None`: not at all.
    spent: Option<Duration>,
}

enum Run {
    /// For about this long.
    For(Box<Experiment>, Duration),
    /// Only at the published scale: another experiment is its short form.
    OnlyFull(&'static str),
}

/// Runs the experiments of these names, `all` standing for every published one, and writes one folder with an index.
pub(crate) fn run(names: &[String], full: bool, conditions: &Conditions) -> Result<Exit, Failure> {
    check(conditions)?;
    let mut planned = plan(names, full)?;
    let folder = folder(&conditions.output);
    if conditions.resume {
        planned
            .iter_mut()
            .for_each(|one| one.spent = Journal::spent(&folder.join(&one.name).join("run.runs")));
    }
    if conditions.resume && planned.iter().all(|one| one.spent.is_none()) {
        let why = "there is nothing to go on with: leave out --resume, or give the same -o as before";
        return Err(Failure::usage(format!("{}: {why}", folder.display())));
    }
    make(&folder)?;
    let start = RunStart::now();
    // What is complete is not measured again, also where it is a single measurement.
    let mut session = Session::begin(conditions)?;
    session.keeps_single = true;
    let mut index = Index {
        host: comparison::host(),
        started: start.rfc3339(),
        elapsed_s: 0.0,
        version: env!("CARGO_PKG_VERSION").into(),
        full,
        interrupted: false,
        experiments: Vec::new(),
    };
    let show = |line: String| {
        if !conditions.show.no_progress {
            exit::say(&line);
        }
    };
    let mut left = planned.iter().map(Planned::ahead).fold(Duration::ZERO, Duration::saturating_add);
    show(progress::experiments_planned(planned.len(), left));
    let mut exits: Vec<(String, Exit)> = Vec::new();
    for (number, planned) in planned.into_iter().enumerate() {
        let time = planned.ahead();
        let Planned { name, given, title, run, spent } = planned;
        let outcome = match run {
            Run::OnlyFull(short_form) => Outcome::OnlyFull { short_form: short_form.to_owned() },
            Run::For(..) if session.interrupt.signal().is_some() => Outcome::NotMeasured,
            Run::For(experiment, _) => {
                show(progress::experiment_begun(&name, number + 1, left));
                left = left.saturating_sub(time);
                // What was not begun has nothing to go on with.
                let conditions = Conditions { resume: spent.is_some(), ..conditions.clone() };
                let (outcome, exit) = measure(&session, *experiment, &folder, &name, &conditions);
                exits.push((name.clone(), exit));
                outcome
            }
        };
        index.experiments.push(Shown { name, given, title, outcome });
        index.elapsed_s = start.elapsed_s().max(elapsed_s(&index.experiments));
        index.interrupted = session.interrupt.signal().is_some();
        // After each, so that nothing is lost however the series ends.
        write(&index, &folder)?;
    }
    output::print(&(index::text(&index) + &format!("{}\n", index_path(&folder).display())))?;
    Ok(match session.interrupt.signal() {
        Some(signal) => Exit::Interrupted(signal),
        None => worst(exits, show),
    })
}

/// The worst of the exits, after saying which experiments ended with it.
fn worst(exits: Vec<(String, Exit)>, show: impl Fn(String)) -> Exit {
    let worst = exits.iter().fold(Exit::Done, |worst, (_, exit)| worst.or_worse(*exit));
    let names: Vec<String> =
        exits.into_iter().filter(|(_, exit)| *exit == worst).map(|(name, _)| name).collect();
    if worst != Exit::Done {
        show(progress::exit_decided_by(worst.status(), &names));
    }
    worst
}

/// How long the experiments took, those included that were made before.
fn elapsed_s(experiments: &[Shown]) -> f64 {
    let measured = experiments.iter().map(|shown| match &shown.outcome {
        Outcome::Measured { comparison, .. } => comparison.elapsed_s,
        _ => 0.0,
    });
    measured.sum()
}

impl Planned {
    /// How long it takes from here on.
    fn ahead(&self) -> Duration {
        match &self.run {
            Run::For(_, time) => time.saturating_sub(self.spent.unwrap_or_default()),
            Run::OnlyFull(_) => Duration::ZERO,
        }
    }
}

/// Refuses what goes with a single experiment alone.
fn check(conditions: &Conditions) -> Result<(), Failure> {
    let refused = [
        (!conditions.set.is_empty(), "--set and --engine"),
        (!conditions.show.gates.is_empty(), "--gate"),
        (conditions.show.json, "--json"),
    ];
    match refused.iter().find(|(given, _)| *given) {
        Some((_, flag)) => Err(Failure::usage(format!("{flag}: goes with one experiment, not with several"))),
        None => Ok(()),
    }
}

fn plan(names: &[String], full: bool) -> Result<Vec<Planned>, Failure> {
    let mut wanted: Vec<&str> = Vec::new();
    for name in names {
        match name.as_str() {
            published::ALL => wanted.extend(published::list().map(|(name, _)| name)),
            name => wanted.push(name),
        }
    }
    let mut planned: Vec<Planned> = Vec::new();
    for name in wanted {
        let experiment = published::load(name, &[])?;
        let folder = slug(&Path::new(name).file_stem().unwrap_or_default().to_string_lossy());
        if planned.iter().any(|before| before.name == folder) {
            return Err(Failure::usage(format!("the experiment {folder} is named twice")));
        }
        let title = experiment.title.clone();
        let run = match published::short_form(name).filter(|_| !full) {
            Some(short_form) => Run::OnlyFull(short_form),
            None => scaled(experiment, full),
        };
        planned.push(Planned { name: folder, given: name.to_owned(), title, run, spent: None });
    }
    Ok(planned)
}

/// The experiment with its time at this scale.
fn scaled(mut experiment: Experiment, full: bool) -> Run {
    let sweeps = |each: Duration| each * u32::try_from(experiment.works.len()).unwrap_or(u32::MAX);
    let time = match (experiment.time, full) {
        (Some(time), true) => time,
        (Some(time), false) => time.mul_f64(QUICK_PART),
        (None, true) => sweeps(FREE_SWEEP),
        (None, false) => sweeps(QUICK_SWEEP),
    };
    if !full {
        experiment.time = Some(time);
    }
    Run::For(Box::new(experiment), time)
}

/// The folder that everything is written to: the one given, or `run` beside where `run.json` would be.
fn folder(output: &Path) -> PathBuf {
    if output == Path::new("run.json") { output.with_extension("") } else { output.to_owned() }
}

fn make(folder: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(folder);
    made.map_err(|error| Failure::usage(format!("cannot make the folder {}: {error}", folder.display())))?;
    output::check_writable(&index_path(folder))
}

fn index_path(folder: &Path) -> PathBuf {
    folder.join("index.html")
}

/// Runs one experiment into a folder of its own.
fn measure(
    session: &Session,
    experiment: Experiment,
    folder: &Path,
    name: &str,
    conditions: &Conditions,
) -> (Outcome, Exit) {
    let own = folder.join(name);
    let made = fs::create_dir_all(&own)
        .map_err(|error| Failure::failed(format!("cannot make the folder {}: {error}", own.display())));
    let conditions = Conditions { output: own.join("run.json"), ..conditions.clone() };
    match made.and_then(|()| run_in(session, experiment, &conditions)) {
        Ok(Reported { exit, comparison, .. }) if comparison.works.is_empty() => (Outcome::NotMeasured, exit),
        Ok(Reported { exit, comparison, page, .. }) => {
            let page = page.strip_prefix(folder).unwrap_or(&page).display().to_string();
            (Outcome::Measured { comparison: Box::new(comparison), page }, exit)
        }
        Err(_) if session.interrupt.signal().is_some() => (Outcome::NotMeasured, Exit::Done),
        Err(failure) => {
            exit::warn(format!("{name}: {failure}"));
            (Outcome::Failed { why: failure.to_string() }, Exit::Failed)
        }
    }
}

fn write(index: &Index, folder: &Path) -> Result<(), Failure> {
    output::write_file(&index_path(folder), &index::html(index).map_err(Failure::failed)?)
}
