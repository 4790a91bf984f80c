//! The command line.

use std::{
    collections::VecDeque,
    env, fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use clap::{Parser, Subcommand};
use signal_hook::{consts::TERM_SIGNALS, flag};

use crate::{
    Trouble,
    case::{self, Case},
    changes,
    far::{Behind, Generators, Hosts},
    grade::{Grade, Said},
    neighbour::{self, Disturb},
    run::{self, Judge, Servers},
    server::Serve,
    table::{self, Row},
};

/// Time between two looks at whether a signal has come.
const LOOK: Duration = Duration::from_millis(100);

/// Cases without load of their own that are measured at the same time.
const SIDE_BY_SIDE: usize = 6;

/// The exit code for a mistake on the command line.
const USAGE: u8 = 2;

/// In the short form at least half of the cases must be right, where so many were run. With fewer, chance decides.
const TELLING: usize = 4;

/// Arguments of sweeps in the short form.
const SHORT: [&str; 2] = ["--duration", "2s"];

/// Starts servers with one bottleneck of known size each, has `nstar sweep` judge them, and prints a table of what is true
/// and what was said.
///
/// Exit codes: 0 no verdict was wrong while sure; 1 one was, a case could not be run, or in the short form fewer than half were
/// right; 2 usage. Cases whose programs are not installed are skipped, except under CI.
#[derive(Debug, Parser)]
#[command(name = "truth", args_conflicts_with_subcommands = true)]
struct Options {
    /// Cases to run, by name or a part of it [default: all]
    cases: Vec<String>,
    /// Run the short form: a few cases with shorter steps, once more where the answer was inconclusive
    #[arg(long)]
    short: bool,
    /// Run one case at a time. Otherwise those that leave the host idle are measured side by side
    #[arg(long)]
    alone: bool,
    /// What keeps a processor busy beside every case that has no such neighbour of its own: `burn=33%` of it, or
    /// `job=1s/5s`. Cases are then run one at a time
    #[arg(long, value_parser = neighbour::read)]
    beside: Option<String>,
    /// Put the servers of each case on another host, a network namespace with an sshd, and have nstar observe there by
    /// `--observe ssh://`. Needs root
    #[arg(long, value_name = "HOW", conflicts_with_all = ["changes", "start", "read"])]
    behind: Option<Behind>,
    /// Run the cases whose tiers stand on a host of their own each, with a link from each to the next, and have nstar observe
    /// on every one by `--observe ssh://`. The other options then mean these cases. Needs root
    #[arg(long, conflicts_with_all = ["behind", "beside", "changes"])]
    hosts: bool,
    /// Where the load on them is made
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Generators::Here, requires = "hosts")]
    generators: Generators,
    /// How often to run each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The nstar to judge [default: the one beside this program]
    #[arg(long)]
    nstar: Option<PathBuf>,
    /// Folder to keep run files and reports in; with several rounds, a folder within it for each: 1, 2, ..
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Grade the run files that were kept in these folders, in place of running anything; may be repeated
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["short", "keep", "nstar"])]
    read: Vec<PathBuf>,
    /// Change servers and say how well `nstar predict` knew it; names are then those of changes
    #[arg(long, conflicts_with_all = ["short", "read", "list", "start", "rounds", "beside"])]
    changes: bool,
    /// List the cases instead
    #[arg(long)]
    list: bool,
    /// Start the servers of one case, print the address of the front, and wait for Ctrl-C
    #[arg(long, conflicts_with_all = ["list", "short"])]
    start: bool,
    #[command(subcommand)]
    own: Option<Own>,
}

/// The suite's own programs, which cases start.
#[derive(Debug, Subcommand)]
enum Own {
    /// Serve one tier of a case
    #[command(hide = true)]
    Serve(Serve),
    /// Keep a processor busy for a part of the time
    #[command(hide = true)]
    Disturb(Disturb),
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.own {
        Some(Own::Serve(serve)) => serve.run().map(|()| true),
        Some(Own::Disturb(disturb)) => disturb.run().map(|()| true),
        None => suite(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("truth: {error}");
            if matches!(error, Trouble::Usage(_)) { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// Runs what was asked for. Returns whether all went well.
fn suite(options: &Options) -> Result<bool, Trouble> {
    if options.changes {
        return change(options);
    }
    let cases = wanted(options)?;
    if options.list {
        let line = |case: &Case| format!("{:<34} {:<24} {}\n", case.name, case.stacks(), case.shows);
        // Who reads only the first lines closes the pipe, which is no fault.
        let _ = io::stdout().write_all(cases.iter().map(line).collect::<String>().as_bytes());
        return Ok(true);
    }
    let stop = signals()?;
    if options.start {
        return start(options, &cases, &stop);
    }
    if !options.read.is_empty() {
        return read(&cases, &options.read);
    }
    measure(options, &cases, &stop)
}

/// Set once a signal says to stop.
fn signals() -> Result<Arc<AtomicBool>, Trouble> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in TERM_SIGNALS {
        flag::register(*signal, Arc::clone(&stop)).map_err(Trouble::io("listen for signals"))?;
    }
    Ok(stop)
}

/// Measures servers before and after changes, and prints both beside what was predicted. Returns whether that was right.
fn change(options: &Options) -> Result<bool, Trouble> {
    let wanted = wanted_changes(options)?;
    let nstar = nstar(options)?;
    let own = tempfile::TempDir::new().map_err(Trouble::io("make a folder"))?;
    let keep = folder(options, 1)?.unwrap_or_else(|| own.path().to_owned());
    let mut cases: Vec<Case> = Vec::new();
    for (change, case) in &wanted {
        for one in [case.clone(), change.changed(case)] {
            if !cases.iter().any(|known| known.name == one.name) {
                cases.push(one);
            }
        }
    }
    let stop = signals()?;
    let judge =
        Judge { nstar: &nstar, arguments: &[], behind: None, across: None, keep: Some(&keep), stop: &stop };
    let mut rows: Vec<_> = cases.iter().map(|case| Row { case, said: Vec::new() }).collect();
    // What a changed server is stopped by is not in the list, so that no verdict on it can be graded.
    let mut well = !round(&mut rows, &judge, options.alone, |_| true).contains(&Fate::NotRun);
    let is_measured = |name: &str| rows.iter().any(|row| row.case.name == name && !row.said.is_empty());
    let mut outcomes = Vec::new();
    let measured =
        wanted.iter().filter(|(change, case)| is_measured(&change.name) && is_measured(&case.name));
    for (change, _) in measured {
        match changes::outcome(change, &keep, &nstar) {
            Ok(outcome) => outcomes.push(outcome),
            Err(trouble) => {
                eprintln!("NOT PREDICTED {}: {trouble}", change.name);
                well = false;
            }
        }
    }
    print!("{}", changes::table(&outcomes));
    Ok(well && changes::well(&outcomes))
}

/// The changes asked for, each with its case.
fn wanted_changes(options: &Options) -> Result<Vec<(changes::Change, Case)>, Trouble> {
    let mut all = changes::all(&case::all().map_err(Trouble::Case)?).map_err(Trouble::Case)?;
    let holds = |name: &str, part: &String| name.contains(part.as_str());
    let is_unknown = |part: &&String| !all.iter().any(|(change, _)| holds(&change.name, part));
    if let Some(unknown) = options.cases.iter().find(is_unknown) {
        return Err(Trouble::Usage(format!("there is no change '{unknown}'; see truth/changes.toml")));
    }
    let fits = |name: &str| options.cases.is_empty() || options.cases.iter().any(|part| holds(name, part));
    all.retain(|(change, _)| fits(&change.name));
    Ok(all)
}

/// Has nstar judge the cases. Returns whether all went well.
fn measure(options: &Options, cases: &[Case], stop: &AtomicBool) -> Result<bool, Trouble> {
    let nstar = nstar(options)?;
    let arguments = if options.short { &SHORT[..] } else { &[] };
    let (behind, across) = (options.behind, options.across());
    let (cases, left_out) = suited(cases, options);
    let mut rows: Vec<_> = cases.into_iter().map(|case| Row { case, said: Vec::new() }).collect();
    let (mut fates, mut mostly_right) = (Vec::new(), true);
    for number in 1..=options.rounds {
        let keep = folder(options, number)?;
        let judge = Judge { nstar: &nstar, arguments, behind, across, keep: keep.as_deref(), stop };
        fates.extend(round(&mut rows, &judge, options.alone, |_| true));
        if options.short {
            fates.extend(round(&mut rows, &judge, options.alone, is_open));
            mostly_right &= is_mostly_right(&rows);
        }
    }
    print!("{}", table::table(&rows));
    if let Some((_, elsewhere)) = options.elsewhere() {
        print!("{}", table::coverage(elsewhere, &rows, &left_out));
    }
    if !mostly_right {
        eprintln!("NOT DECIDED: fewer than half of the cases were right, even after a second try");
    }
    Ok(mostly_right && fates.into_iter().all(Fate::is_well))
}

/// A case that cannot be run as asked, and why.
type LeftOut<'a> = (&'a Case, &'static str);

impl Options {
    /// Where the load is made, if each tier stands on a host of its own.
    fn across(&self) -> Option<Generators> {
        self.hosts.then_some(self.generators)
    }

    /// Where servers stand if that is not this host, within a sentence and at the beginning of one.
    fn elsewhere(&self) -> Option<(&'static str, &'static str)> {
        match (self.behind, self.across()) {
            (Some(Behind::Ssh), _) => Some(("behind ssh", "Behind ssh")),
            (None, Some(Generators::Here)) => Some(("on hosts of their own", "On hosts of their own")),
            (None, Some(Generators::Nats)) => Some(("through NATS", "Through NATS")),
            (None, None) => None,
        }
    }

    /// Why a case cannot be run with its servers there; `None` where it can.
    fn obstacle(&self, case: &Case) -> Option<&'static str> {
        let behind = self.behind.and_then(|behind| behind.obstacle(case));
        behind.or_else(|| self.across().and_then(|generators| generators.obstacle(case)))
    }
}

/// The cases that can be run with their servers there, and the others, which are told.
fn suited<'a>(cases: &'a [Case], options: &Options) -> (Vec<&'a Case>, Vec<LeftOut<'a>>) {
    let obstacle = |case: &Case| options.obstacle(case);
    let left_out: Vec<_> = cases.iter().filter_map(|case| Some((case, obstacle(case)?))).collect();
    for (case, why) in &left_out {
        let there = options.elsewhere().map_or("", |(there, _)| there);
        eprintln!("SKIPPED {} {there}: {why}", case.name);
    }
    (cases.iter().filter(|case| obstacle(case).is_none()).collect(), left_out)
}

/// The folder in which a round is kept, made where it is missing.
fn folder(options: &Options, number: u32) -> Result<Option<PathBuf>, Trouble> {
    let Some(folder) = &options.keep else { return Ok(None) };
    let folder = if options.rounds == 1 { folder.clone() } else { folder.join(number.to_string()) };
    fs::create_dir_all(&folder).map_err(Trouble::io(format!("make {}", folder.display())))?;
    Ok(Some(folder))
}

/// The cases asked for.
fn wanted(options: &Options) -> Result<Vec<Case>, Trouble> {
    let all = if options.hosts { case::on_hosts() } else { case::all() };
    let mut cases = all.map_err(Trouble::Case)?;
    let is_name = |part: &String| cases.iter().any(|case| case.name == *part);
    let (names, parts): (Vec<_>, Vec<_>) = options.cases.iter().partition(|part| is_name(part));
    if let Some(unknown) = parts.iter().find(|part| !cases.iter().any(|case| case.name.contains(**part))) {
        return Err(Trouble::Usage(format!("there is no case '{unknown}'; see --list")));
    }
    let fits = |name: &String| names.contains(&name) || parts.iter().any(|part| name.contains(*part));
    cases.retain(|case| options.cases.is_empty() || fits(&case.name));
    cases.retain(|case| !options.short || case.short);
    for case in cases.iter_mut().filter(|case| case.beside.is_none()) {
        case.beside.clone_from(&options.beside);
    }
    Ok(cases)
}

/// The nstar to judge: that which is named, or the one beside this program.
fn nstar(options: &Options) -> Result<PathBuf, Trouble> {
    let beside = || Ok(env::current_exe().map_err(Trouble::io("find this program"))?.with_file_name("nstar"));
    let path = options.nstar.clone().map_or_else(beside, Ok)?;
    match path.exists() {
        true => Ok(path),
        false => Err(Trouble::Usage(format!(
            "there is no {}: build it, or name another with --nstar",
            path.display()
        ))),
    }
}

fn start(options: &Options, cases: &[Case], stop: &AtomicBool) -> Result<bool, Trouble> {
    let [case] = cases else {
        return Err(Trouble::Usage("--start takes the name of one case".into()));
    };
    if let Some(why) = options.obstacle(case) {
        return Err(Trouble::Usage(format!("{} cannot be started so: {why}", case.name)));
    }
    // The servers, started after their hosts, end before them.
    let hosts = match options.across() {
        Some(generators) => Some(Hosts::make(case, generators, &nstar(options)?)?),
        None => None,
    };
    let servers = match &hosts {
        Some(hosts) => Servers::start_across(hosts, case)?,
        None => Servers::start(case)?,
    };
    println!("{}", servers.url());
    eprintln!("{}: {}", case.name, case.shows);
    if let Some(hosts) = &hosts {
        eprintln!("{}", hosts.by_hand(&nstar(options)?, servers.url()));
    }
    while !stop.load(Relaxed) {
        thread::sleep(LOOK);
    }
    Ok(true)
}

/// Grades what was kept in folders.
fn read(cases: &[Case], folders: &[PathBuf]) -> Result<bool, Trouble> {
    let mut rows = Vec::new();
    for case in cases {
        let said = folders
            .iter()
            .filter_map(|folder| run::kept(case, folder).transpose())
            .collect::<Result<_, _>>()?;
        rows.push(Row { case, said });
    }
    print!("{}", table::table(&rows));
    let sure = |row: &Row| row.said.iter().any(|said| said.grade(row.case) == Grade::SurelyWrong);
    Ok(!rows.iter().any(sure))
}

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Judged(Grade),
    /// This machine lacks what it needs.
    Skipped,
    NotRun,
}

impl Fate {
    /// Whether it stands for success.
    fn is_well(self) -> bool {
        !matches!(self, Fate::NotRun | Fate::Judged(Grade::SurelyWrong))
    }
}

/// Adds a verdict to its row.
fn take(row: &mut Row, outcome: Result<Said, Trouble>) -> Fate {
    match outcome {
        Ok(said) => {
            let grade = said.grade(row.case);
            row.said.push(said);
            Fate::Judged(grade)
        }
        Err(trouble) => {
            let skipped = trouble.is_lack() && env::var_os("CI").is_none();
            eprintln!("{} {}: {trouble}", if skipped { "SKIPPED" } else { "NOT RUN" }, row.case.name);
            if skipped { Fate::Skipped } else { Fate::NotRun }
        }
    }
}

/// Whether nothing was claimed about a case.
fn is_open(row: &Row) -> bool {
    row.said.last().is_some_and(|said| said.grade(row.case) == Grade::Inconclusive)
}

/// Whether the last verdict was right of half of the cases at least. A tool that never decides is never wrong.
fn is_mostly_right(rows: &[Row]) -> bool {
    let grades: Vec<_> = rows.iter().filter_map(|row| Some(row.said.last()?.grade(row.case))).collect();
    let right = grades.iter().filter(|grade| **grade == Grade::Right).count();
    grades.len() < TELLING || 2 * right >= grades.len()
}

/// Runs each of the wanted cases once: those that leave the host idle side by side, then the others one by one.
fn round(rows: &mut [Row], judge: &Judge, alone: bool, wanted: fn(&Row) -> bool) -> Vec<Fate> {
    let numbers = (0..rows.len()).filter(|number| wanted(&rows[*number]));
    let (idle, busy): (VecDeque<_>, VecDeque<_>) =
        numbers.partition(|number| !alone && rows[*number].case.is_idle());
    let mut fates = Vec::new();
    for (queue, width) in [(idle, SIDE_BY_SIDE), (busy, 1)] {
        for (number, outcome) in side_by_side(rows, judge, queue, width) {
            fates.push(take(&mut rows[number], outcome));
        }
    }
    fates
}

/// Runs cases from a queue, so many at a time.
fn side_by_side(
    rows: &[Row],
    judge: &Judge,
    queue: VecDeque<usize>,
    width: usize,
) -> Vec<(usize, Result<Said, Trouble>)> {
    let (queue, done) = (Mutex::new(queue), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        while let Some(number) = next() {
            let case = rows[number].case;
            let outcome = match judge.stop.load(Relaxed) {
                true => Err(Trouble::Interrupted),
                false => run::judge(case, judge),
            };
            let grade = outcome.as_ref().map_or("not run", |said| said.grade(case).name());
            eprintln!("{:<34} {grade}", case.name);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
        }
    };
    thread::scope(|scope| (0..width).for_each(|_| drop(scope.spawn(work))));
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A verdict on the case `lock`.
    fn said(kind: &str) -> Said {
        let run = json!({ "elapsed_s": 20.0, "verdict": {
            "users_at_saturation": 1, "users_at_saturation_ci": [1, 2], "throughput_max_per_s": 99.0,
            "bottleneck": { "kind": kind, "holder": "server (pid 12)", "confidence": 0.9 },
            "inconclusive": [],
        }});
        Said::read(&run).expect("a verdict")
    }

    /// An nstar that was never sure of anything passed the short form.
    #[test]
    fn who_never_decides_does_not_pass_the_short_form() {
        let cases = case::all().expect("the list");
        let lock = cases.iter().find(|case| case.name == "lock").expect("lock");
        let row = |kinds: &&[&str]| Row { case: lock, said: kinds.iter().map(|kind| said(kind)).collect() };
        let passes = |rows: &[&[&str]]| is_mostly_right(&rows.iter().map(&row).collect::<Vec<_>>());
        let [right, open, late, none]: [&[&str]; 4] = [&["lock"], &["unknown"], &["unknown", "lock"], &[]];
        assert!(!passes(&[open, open, open, open, open, open]));
        assert!(!passes(&[right, right, open, open, open]));
        assert!(passes(&[right, right, open, open]));
        assert!(passes(&[right, late, open, open]), "the second try counts");
        assert!(passes(&[open]) && passes(&[none, none, none, open]), "one case tells nothing");
    }
}
