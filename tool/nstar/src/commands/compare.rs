//! `nstar compare`: two sides beside each other, each of one or several files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use analysis::contrast::{self, Contrast, GateVerdict, Given, Variant, VariantError};
use report::Document;

use crate::{
    exit::{self, Exit, Failure},
    flags::Compare,
    output,
};

/// The version of nstar, for the files it writes.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Between a comparison file and one of its variants.
const VARIANT: char = '#';

pub(super) fn run(flags: &Compare) -> Result<Exit, Failure> {
    let (before, after) = sides(flags)?;
    let mut found = compare(before, after)?;
    if let Some(why) = report::contrast::other_load(&found).filter(|_| !flags.anyway) {
        return Err(Failure::usage(format!(
            "{why} Nothing was compared; --anyway compares them all the same"
        )));
    }
    let gates: Vec<_> = flags.gates.iter().map(|gate| gate.0.clone()).collect();
    found.hold(&gates);
    write(&found, flags)?;
    output::print(&text(&found, flags)?)?;
    Ok(exit_of(&found))
}

/// The paths of both sides.
fn sides(flags: &Compare) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
    match (flags.before.as_slice(), flags.after.as_slice()) {
        ([before, after], []) => Ok((std::slice::from_ref(before), std::slice::from_ref(after))),
        (_, []) => Err(Failure::usage(
            "say which files are before and which after: nstar compare BEFORE.. --after AFTER..",
        )),
        (before, after) => Ok((before, after)),
    }
}

/// What a side is made of.
enum Read {
    Runs(Vec<Given>),
    Variant(Box<Variant>),
}

fn compare(before: &[PathBuf], after: &[PathBuf]) -> Result<Contrast, Failure> {
    match (read_side(before)?, read_side(after)?) {
        (Read::Runs(before), Read::Runs(after)) => contrast::of_runs(before, after, VERSION)
            .ok_or_else(|| Failure::usage("there is no run on one of the sides")),
        (Read::Variant(before), Read::Variant(after)) => {
            contrast::of_variants(&before, &after, VERSION).map_err(unlike)
        }
        _ => Err(Failure::usage(
            "a run file cannot be compared with the file of an experiment; its run files are in the folder beside that",
        )),
    }
}

fn unlike(error: VariantError) -> Failure {
    Failure::usage(match error {
        VariantError::Unknown { file, variant, known } => {
            format!("{file} has no variant '{variant}'; it has {}", known.join(", "))
        }
        VariantError::NothingInCommon => {
            "the two have no variant of one name on one workload; name the variants: \
                                          FILE#VARIANT FILE#VARIANT"
                .to_owned()
        }
    })
}

fn read_side(paths: &[PathBuf]) -> Result<Read, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        match read(path)? {
            Read::Runs(read) => runs.extend(read),
            variant if paths.len() == 1 => return Ok(variant),
            Read::Variant(_) => {
                return Err(Failure::usage(format!(
                    "{}: of experiments, one file is compared with another; several stand for repeats of a run",
                    path.display()
                )));
            }
        }
    }
    Ok(Read::Runs(runs))
}

fn read(path: &Path) -> Result<Read, Failure> {
    let (path, name) = split(path);
    let file = path.display().to_string();
    let text =
        fs::read_to_string(&path).map_err(|error| Failure::usage(format!("cannot read {file}: {error}")))?;
    match report::read(&text).map_err(|error| Failure::usage(format!("{file}: {error}")))? {
        Document::Run(_) if name.is_some() => {
            Err(Failure::usage(format!("{file} is a run file, which has no variants")))
        }
        Document::Run(run) => Ok(Read::Runs(vec![Given { file, run: *run }])),
        Document::Comparison(comparison) => {
            Ok(Read::Variant(Box::new(Variant { file, name, comparison: *comparison })))
        }
    }
}

/// A file and the variant that is named behind it; a file whose own name has the sign is taken as it is.
fn split(path: &Path) -> (PathBuf, Option<String>) {
    let text = path.to_str().filter(|_| !path.exists());
    match text.and_then(|text| text.rsplit_once(VARIANT)) {
        Some((file, variant)) => (file.into(), Some(variant.to_owned())),
        None => (path.to_owned(), None),
    }
}

fn write(found: &Contrast, flags: &Compare) -> Result<(), Failure> {
    if let Some(path) = &flags.output {
        output::write_file(path, &report::contrast::html(found).map_err(Failure::failed)?)?;
    }
    if let Some(path) = &flags.ci.markdown {
        output::append_to_file(path, &report::contrast::markdown(found))?;
    }
    match &flags.ci.junit {
        Some(path) => output::write_file(path, &report::contrast::junit(found)),
        None => Ok(()),
    }
}

fn text(found: &Contrast, flags: &Compare) -> Result<String, Failure> {
    if flags.json {
        return report::contrast::json(found).map_err(Failure::failed);
    }
    let page = flags.output.iter().map(|path| path.display().to_string());
    let written: Vec<String> = page.chain(flags.ci.names()).collect();
    Ok(report::contrast::terminal(found, &output::terminal_options(&written)))
}

/// Says which gates are not met, and how the command ends: a breach is worse than what is not decided.
fn exit_of(found: &Contrast) -> Exit {
    let mut worst = Exit::Done;
    for gate in found.gates.iter().filter(|gate| gate.verdict != GateVerdict::Met) {
        exit::warn(format!("gate {}", report::contrast::gate(gate)));
        worst = worst.or_worse(match gate.verdict {
            GateVerdict::Breached => Exit::GateBreached,
            _ => Exit::Inconclusive,
        });
    }
    worst
}
