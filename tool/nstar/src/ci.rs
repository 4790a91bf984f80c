//! What CI shows of runs: a summary in Markdown, and gates as tests in JUnit XML.

use analysis::run::Run;
use report::gates::{self, HeldGate};

use crate::{
    exit::{self, Failure},
    flags::{CiFiles, Output},
    gate::Gate,
    interrupt::Interrupt,
    output,
};

/// Writes both files, run by run.
#[derive(Debug)]
pub struct CiReport<'a> {
    files: &'a CiFiles,
    gates: &'a [Gate],
    held: Vec<HeldGate>,
}

impl<'a> CiReport<'a> {
    /// Fails unless both files can be written, so that minutes of work are not lost after it.
    pub fn plan(files: &'a CiFiles, show: &'a Output) -> Result<Self, Failure> {
        files.markdown.as_deref().map(output::check_appendable).transpose()?;
        files.junit.as_deref().map(output::check_writable).transpose()?;
        Ok(Self { files, gates: &show.gates, held: Vec::new() })
    }

    /// Appends a run to the summary, and writes its gates and those before. `file` tells it from other runs of the command;
    /// it is empty where there is one.
    pub fn add(&mut self, run: &Run, file: &str, interrupt: &Interrupt) -> Result<(), Failure> {
        let held = match undecided(run, interrupt) {
            Some(why) => self.each(file, |gate| gate.undecided(&why)),
            None => self.each(file, |gate| gate.held(run)),
        };
        if let Some(path) = &self.files.markdown {
            output::append_to_file(path, &gates::markdown(run, file, &held))?;
        }
        self.held.extend(held);
        self.write()
    }

    /// Writes the gates of a run that was to be made and is none, and those before.
    pub fn fail(&mut self, file: &str, failure: &Failure) {
        let why = format!("the run failed: {failure}");
        let held = self.each(file, |gate| gate.undecided(&why));
        self.held.extend(held);
        // The failure is what the command ends with.
        if let Err(other) = self.write() {
            exit::warn(other);
        }
    }

    fn each(&self, file: &str, of: impl Fn(&Gate) -> HeldGate) -> Vec<HeldGate> {
        self.gates.iter().map(|gate| HeldGate { file: file.to_owned(), ..of(gate) }).collect()
    }

    fn write(&self) -> Result<(), Failure> {
        match &self.files.junit {
            Some(path) => output::write_file(path, &gates::junit(&self.held)),
            None => Ok(()),
        }
    }
}

/// Why a run decides nothing, as its exit code says.
fn undecided(run: &Run, interrupt: &Interrupt) -> Option<String> {
    match interrupt.signal() {
        Some(_) => Some("the run was interrupted".to_owned()),
        None => output::failure(run).map(|why| format!("the run failed: {why}")),
    }
}
