//! `nstar history`: the run files of a folder in the order of time.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use analysis::{
    contrast::Given,
    history::{self, Brief},
};

use crate::{
    exit::{self, Exit, Failure},
    flags::History,
    output,
};

pub(super) fn run(flags: &History) -> Result<Exit, Failure> {
    let found = history::history(read(&flags.folder)?, env!("CARGO_PKG_VERSION"));
    if let Some(path) = &flags.output {
        output::write_file(path, &report::history::html(&found).map_err(Failure::failed)?)?;
    }
    if let Some(path) = &flags.markdown {
        output::append_to_file(path, &report::history::markdown(&found))?;
    }
    let written = flags.output.iter().chain(&flags.markdown).map(|path| path.display().to_string());
    let text = match flags.json {
        true => report::history::json(&found).map_err(Failure::failed)?,
        false => report::history::terminal(&found, &output::terminal_options(&written.collect::<Vec<_>>())),
    };
    output::print(&text)?;
    Ok(exit_of(&found, flags))
}

/// Says what became worse lately, and how the command ends.
fn exit_of(found: &history::History, flags: &History) -> Exit {
    let (Some(runs), Some(course)) = (flags.fail_on_change, found.measured_last()) else { return Exit::Done };
    if let Some(why) = report::history::unjudged(course) {
        exit::warn(format!("--fail-on-change finds no fall of throughput yet: {why}"));
    }
    let worse = course.worse_within(runs);
    report::history::changes(course, &worse).iter().for_each(exit::warn);
    if worse.is_empty() { Exit::Done } else { Exit::GateBreached }
}

/// What a history keeps of every run file of a folder; says which other JSON files were left out, and why.
fn read(folder: &Path) -> Result<Vec<Brief>, Failure> {
    let named =
        |error: io::Error| Failure::usage(format!("cannot read the folder {}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(named)? {
        let path = entry.map_err(named)?.path();
        if path.extension() == Some(OsStr::new("json")) && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut runs = Vec::with_capacity(paths.len());
    for path in paths {
        match read_run(&path) {
            Ok(run) => runs.push(run),
            Err(why) => exit::warn(format!("{} is left out: {why}", path.display())),
        }
    }
    if runs.is_empty() {
        return Err(Failure::usage(format!(
            "there is no run file in {}; nstar sweep URL -o {}/NAME.json writes one",
            folder.display(),
            folder.display()
        )));
    }
    Ok(runs)
}

/// A file may be large, such as one with stacks, and there may be thousands.
fn read_run(path: &PathBuf) -> Result<Brief, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let run = report::parse(&text).map_err(|error| error.to_string())?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Brief::of(&Given { file, run }))
}
