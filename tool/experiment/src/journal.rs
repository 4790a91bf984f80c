//! The journal of an experiment: which trials were made, and in which files they are, so that it can go on after an
//! interruption or a crash. One line of JSON for each trial, after one that tells which experiment it was.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::run::RunPlan;

/// The name of the file, in the folder of the single runs.
const NAME: &str = "journal.jsonl";

/// Why an experiment cannot be kept, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("the journal of the experiment, {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// There is nothing to go on with.
    #[error(
        "there is nothing to go on with: no journal at {0}. Leave out --resume, or give the same -o as before"
    )]
    Nothing(PathBuf),
    /// Another process writes it now.
    #[error("another nstar writes to {0} now. Wait for it, or give this one another -o")]
    InUse(PathBuf),
    /// Another experiment was begun.
    #[error(
        "{path} is of another experiment: {what} changed since. Leave out --resume to begin anew, or put it back as it was"
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: &'static str,
    },
}

/// What an experiment was when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Begun {
    version: String,
    /// All that its file and its values come to.
    experiment: String,
    /// All that the command line says besides.
    conditions: String,
}

impl Begun {
    fn of(plan: &RunPlan) -> Self {
        let mut experiment = plan.experiment.clone();
        experiment.file = std::path::absolute(&experiment.file).unwrap_or(experiment.file);
        let elsewhere = (&plan.generators.endpoints, &plan.observe.endpoints, &plan.fleet);
        Begun {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: format!("{experiment:?}"),
            conditions: format!("{:?}", (&plan.users, plan.step_max, &plan.split, plan.seed, elsewhere)),
        }
    }

    fn differs(&self, other: &Begun) -> Option<&'static str> {
        let fields = [
            (self.version == other.version, "the version of nstar"),
            (self.experiment == other.experiment, "its file or a value given with --set"),
            (
                self.conditions == other.conditions,
                "a flag, such as --seed or -d, or the number of processors",
            ),
        ];
        fields.into_iter().find(|(same, _)| !same).map(|(_, what)| what)
    }
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    work: String,
    variant: String,
    round: u32,
    /// Name of its run file, in the same folder.
    file: String,
    /// How long it took, with everything around it, seconds.
    took_s: f64,
    /// How often it was made again, because the fleet that makes the load was lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    again: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The journal of an experiment that is running.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    made: BTreeMap<(String, String, u32), (String, Duration)>,
}

impl Journal {
    /// Begins a journal in this folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(folder: &Path, plan: &RunPlan) -> Result<Self, JournalError> {
        let path = folder.join(NAME);
        let file = locked(&path, OpenOptions::new().append(true).create(true))?;
        file.set_len(0).map_err(|error| JournalError::File { path: path.clone(), error })?;
        let mut journal = Journal { path, file, made: BTreeMap::new() };
        journal.write(&Begun::of(plan))?;
        Ok(journal)
    }

    /// Goes on with the journal in this folder.
    ///
    /// # Errors
    /// If there is none, or if it is of another experiment.
    pub fn go_on(folder: &Path, plan: &RunPlan) -> Result<Self, JournalError> {
        let path = folder.join(NAME);
        let failed = |error| JournalError::File { path: path.clone(), error };
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(JournalError::Nothing(path)),
            read => read.map_err(failed)?,
        };
        // What a crash cut short in the middle of a line was not kept.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let Some((begun, lines)) = parsed(whole) else { return Err(JournalError::Nothing(path)) };
        if let Some(what) = begun.differs(&Begun::of(plan)) {
            return Err(JournalError::Changed { path, what });
        }
        let made = lines.into_iter().map(|line| {
            let took = Duration::try_from_secs_f64(line.took_s).unwrap_or_default();
            ((line.work, line.variant, line.round), (line.file, took))
        });
        let made = made.collect();
        let file = locked(&path, OpenOptions::new().append(true))?;
        file.set_len(whole.len() as u64).map_err(failed)?;
        Ok(Journal { path, file, made })
    }

    /// How long the trials took that the journal in this folder holds; `None`: there is no journal to go on with.
    pub fn spent(folder: &Path) -> Option<Duration> {
        Self::spent_by(&fs::read_to_string(folder.join(NAME)).ok()?)
    }

    /// The same of a journal with this text.
    pub fn spent_by(text: &str) -> Option<Duration> {
        let (_, lines) = parsed(text)?;
        let took = lines.iter().map(|line| line.took_s).sum();
        Some(Duration::try_from_secs_f64(took).unwrap_or_default())
    }

    /// How many trials it holds.
    pub fn made(&self) -> u32 {
        u32::try_from(self.made.len()).unwrap_or(u32::MAX)
    }

    /// The run file of a trial that was made before, and how long that took.
    pub fn find(&self, work: &str, variant: &str, round: u32) -> Option<(&str, Duration)> {
        let (file, took) = self.made.get(&(work.to_owned(), variant.to_owned(), round))?;
        Some((file, *took))
    }

    /// Notes a trial whose run file has been written, and that was made `again` so often.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(
        &mut self,
        (work, variant, round): (&str, &str, u32),
        file: &str,
        took: Duration,
        again: u32,
    ) -> Result<(), JournalError> {
        let (work, variant, file) = (work.to_owned(), variant.to_owned(), file.to_owned());
        let line = Line { work, variant, round, file, took_s: took.as_secs_f64(), again };
        self.write(&line)?;
        self.made.insert((line.work, line.variant, round), (line.file, took));
        Ok(())
    }

    /// Writes a line at once, so that a crash cuts at most the last one short.
    fn write(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        let written = serde_json::to_string(line)
            .map_err(io::Error::other)
            .and_then(|text| self.file.write_all(format!("{text}\n").as_bytes()));
        written.map_err(|error| JournalError::File { path: self.path.clone(), error })
    }
}

/// What a journal holds: which experiment it is of, and the trials that can be read. `None`: it does not say of which.
fn parsed(text: &str) -> Option<(Begun, Vec<Line>)> {
    let mut lines = text.lines();
    let begun = serde_json::from_str(lines.next()?).ok()?;
    Some((begun, lines.filter_map(|line| serde_json::from_str(line).ok()).collect()))
}

/// Opens the file for this process alone, as long as it is open.
fn locked(path: &Path, options: &OpenOptions) -> Result<File, JournalError> {
    let failed = |error| JournalError::File { path: path.to_owned(), error };
    let file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse(path.to_owned())),
        // A file system without locks.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use sweep::{elsewhere::Observe, fleet::Generators};

    use super::*;
    use crate::document::{Disk, read};

    fn plan(seed: u64) -> RunPlan {
        let text =
            "title = \"x\"\naxis = { n = [1, 2] }\n[[work]]\nurl = \"http://127.0.0.1:1/${n}\"\nusers = 1";
        RunPlan {
            program: PathBuf::new(),
            guard: Vec::new(),
            experiment: read(Path::new("mine.toml"), text, &Disk).expect("an experiment"),
            users: None,
            step_max: None,
            split: None,
            seed,
            profile: None,
            generators: Generators::default(),
            observe: Observe::default(),
            fleet: None,
        }
    }

    #[test]
    fn what_was_noted_is_found_after_a_crash_in_the_middle_of_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::begin(folder.path(), &plan(1)).expect("a journal");
        journal.note(("", "1", 0), "1-1.json", Duration::from_millis(2_500), 0).expect("noted");
        journal.note(("", "2", 0), "2-1.json", Duration::from_secs(1), 0).expect("noted");
        let path = folder.path().join(NAME);
        drop(journal);
        let text = fs::read_to_string(&path).expect("a journal");
        fs::write(&path, &text[..text.len() - 9]).expect("cut");
        let mut journal = Journal::go_on(folder.path(), &plan(1)).expect("the journal");
        assert_eq!(journal.find("", "1", 0), Some(("1-1.json", Duration::from_millis(2_500))));
        assert_eq!((journal.find("", "2", 0), journal.made()), (None, 1));
        journal.note(("", "2", 0), "2-1.json", Duration::from_secs(1), 0).expect("noted");
        drop(journal);
        assert_eq!(Journal::go_on(folder.path(), &plan(1)).expect("the journal").made(), 2);
        assert_eq!(Journal::spent(folder.path()), Some(Duration::from_millis(3_500)));
    }

    #[test]
    fn a_trial_that_was_made_again_is_noted_once_and_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::begin(folder.path(), &plan(1)).expect("a journal");
        journal.note(("", "1", 0), "1-1.json", Duration::from_secs(1), 0).expect("noted");
        journal.note(("", "2", 0), "2-1.json", Duration::from_secs(40), 2).expect("noted");
        assert_eq!(journal.made(), 2);
        let text = fs::read_to_string(folder.path().join(NAME)).expect("a journal");
        let said: Vec<_> = text.lines().skip(1).map(|line| line.contains("\"again\":2")).collect();
        assert_eq!(said, [false, true], "{text}");
        drop(journal);
        assert_eq!(Journal::go_on(folder.path(), &plan(1)).expect("the journal").made(), 2);
    }

    #[test]
    fn two_experiments_do_not_share_a_journal() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = Journal::begin(folder.path(), &plan(1)).expect("a journal");
        assert!(matches!(Journal::begin(folder.path(), &plan(2)), Err(JournalError::InUse(_))));
        assert!(matches!(Journal::go_on(folder.path(), &plan(1)), Err(JournalError::InUse(_))));
        first.note(("", "1", 0), "1-1.json", Duration::from_secs(1), 0).expect("still there");
        drop(first);
        assert_eq!(Journal::go_on(folder.path(), &plan(1)).expect("the journal").made(), 1);
    }

    #[test]
    fn another_experiment_does_not_go_on() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(Journal::go_on(folder.path(), &plan(1)), Err(JournalError::Nothing(_))));
        assert_eq!(Journal::spent(folder.path()), None);
        // Killed before it had written what it was.
        fs::write(folder.path().join(NAME), "").expect("written");
        assert_eq!(Journal::spent(folder.path()), None);
        drop(Journal::begin(folder.path(), &plan(1)));
        let told = Journal::go_on(folder.path(), &plan(2)).expect_err("another seed").to_string();
        assert!(told.contains("a flag, such as --seed"), "{told}");
        let mut changed = plan(1);
        changed.experiment.rounds = 9;
        let told = Journal::go_on(folder.path(), &changed).expect_err("other rounds").to_string();
        assert!(told.contains("its file"), "{told}");
    }
}
