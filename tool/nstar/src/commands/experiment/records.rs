//! The files of the single runs of an experiment: each is written as soon as its trial ends, and read again where the
//! experiment goes on.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use analysis::{
    comparison::Finished,
    run::{Cause, Run, WarningKind},
};
use experiment::{
    journal::Journal,
    names,
    run::{Kept, RecordError, Records, RunPlan},
};

use super::{Failure, file_name, output};

/// Where the runs go.
pub(super) enum Place<'a> {
    /// Each to a file in the folder beside the comparison.
    Folder,
    /// Each with a report of its own, by workload.
    Reports(&'a [(String, output::Files)]),
}

/// The run files, and the journal that says which are there.
pub(super) struct RunFiles<'a> {
    place: Place<'a>,
    /// The folder of the journal.
    folder: PathBuf,
    /// `None`: there is a single measurement, which is not gone on with.
    journal: Option<Journal>,
}

impl<'a> RunFiles<'a> {
    /// Begins to keep the runs of an experiment in a journal, or goes on with those that are there (`resume`). `None`: keeps
    /// none.
    pub(super) fn open(
        place: Place<'a>,
        output: &Path,
        plan: &RunPlan,
        resume: Option<bool>,
    ) -> Result<Self, Failure> {
        let folder = output.with_extension("runs");
        let journal = match resume {
            None => None,
            Some(true) => Some(Journal::go_on(&folder, plan).map_err(Failure::usage)?),
            Some(false) => {
                let failed =
                    |error| Failure::usage(format!("cannot make the folder {}: {error}", folder.display()));
                fs::create_dir_all(&folder).map_err(failed)?;
                Some(Journal::begin(&folder, plan).map_err(Failure::usage)?)
            }
        };
        Ok(Self { place, folder, journal })
    }

    /// How many trials can be gone on with after an interruption.
    pub(super) fn made(&self) -> u32 {
        self.journal.as_ref().map_or(0, Journal::made)
    }

    /// The run file of a trial, as its comparison names it.
    pub(super) fn name(&self, trial: &Finished) -> String {
        match self.files(&trial.work) {
            Some(files) => file_name(&files.run),
            None => format!("{}/{}.json", file_name(&self.folder), names::of_trial(trial)),
        }
    }

    /// The files of a workload, where each has its own.
    pub(super) fn files(&self, work: &str) -> Option<&output::Files> {
        match self.place {
            Place::Folder => None,
            Place::Reports(all) => all.iter().find(|(name, _)| name == work).map(|(_, files)| files),
        }
    }
}

impl Records for RunFiles<'_> {
    fn made_before(&self) -> u32 {
        self.made()
    }

    fn take(&mut self, work: &str, variant: &str, round: u32) -> Option<Kept> {
        let (file, took) = self.journal.as_ref()?.find(work, variant, round)?;
        // What cannot be read any more is measured again.
        let text = fs::read_to_string(self.folder.join(file)).ok()?;
        Some(Kept { run: report::parse(&text).ok()?, took })
    }

    fn keep(&mut self, trial: &Finished, took: Duration) -> Result<(), RecordError> {
        let failed = |failure: Failure| RecordError(failure.to_string());
        let name = match self.files(&trial.work) {
            Some(files) => {
                files.write(&trial.run).map_err(failed)?;
                format!("../{}", file_name(&files.run))
            }
            None => {
                let name = format!("{}.json", names::of_trial(trial));
                let text = report::json(&trial.run).map_err(|error| RecordError(error.to_string()))?;
                output::write_file(&self.folder.join(&name), &text).map_err(failed)?;
                name
            }
        };
        let interrupted = trial.run.warnings.iter().any(|warning| warning.kind == WarningKind::Interrupted);
        match &mut self.journal {
            // An interrupted trial is shown, but made again.
            Some(journal) if !interrupted => journal
                .note((&trial.work, &trial.variant, trial.round), &name, took, made_again(&trial.run))
                .map_err(|error| RecordError(error.to_string())),
            _ => Ok(()),
        }
    }
}

/// How often a trial was made again, because its fleet was lost.
fn made_again(run: &Run) -> u32 {
    let times = run.warnings.iter().filter_map(|warning| match warning.cause {
        Cause::MeasuredAgain { times, .. } => Some(times),
        _ => None,
    });
    times.sum()
}
