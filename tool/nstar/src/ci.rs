//! What CI shows of runs: a summary in Markdown, and gates as tests in JUnit XML.

use std::{fs::OpenOptions, io::ErrorKind};

use analysis::{contrast::GateVerdict, run::Run};
use report::gates::{self, HeldGate};

use crate::{
    exit::Failure,
    flags::{CiFiles, Output},
    output,
};

/// Writes both files, run by run.
#[derive(Debug)]
pub struct CiReport<'a> {
    files: &'a CiFiles,
    held: Vec<HeldGate>,
}

impl<'a> CiReport<'a> {
    /// Fails unless both files can be written, so that minutes of work are not lost after it.
    pub fn plan(files: &'a CiFiles) -> Result<Self, Failure> {
        if let Some(path) = &files.markdown {
            match OpenOptions::new().append(true).open(path) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => output::check_writable(path)?,
                Err(error) => {
                    let path = path.display();
                    return Err(Failure::usage(format!("cannot write {path}: {error}; nothing was run")));
                }
            }
        }
        files.junit.as_deref().map(output::check_writable).transpose()?;
        Ok(Self { files, held: Vec::new() })
    }

    /// Appends a run to the summary, and writes its gates and those before. `file` tells it from other runs of the command;
    /// it is empty where there is one.
    pub fn add(&mut self, run: &Run, file: &str, show: &Output) -> Result<(), Failure> {
        let failed = output::failure(run);
        let held = show.gates.iter().map(|gate| HeldGate { file: file.to_owned(), ..gate.held(run) });
        let held: Vec<HeldGate> = held.map(|gate| undecided_if(failed.as_deref(), gate)).collect();
        if let Some(path) = &self.files.markdown {
            output::append_to_file(path, &gates::markdown(run, file, &held))?;
        }
        self.held.extend(held);
        match &self.files.junit {
            Some(path) => output::write_file(path, &gates::junit(&self.held)),
            None => Ok(()),
        }
    }
}

/// The gate, on which a run that failed decides nothing.
fn undecided_if(failed: Option<&str>, gate: HeldGate) -> HeldGate {
    match failed {
        Some(why) => HeldGate {
            verdict: GateVerdict::NotDecided,
            found: format!("the run failed: {}", report::printable(why)),
            ..gate
        },
        None => gate,
    }
}
