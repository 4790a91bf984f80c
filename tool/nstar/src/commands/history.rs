//! `nstar history`: the run files of a folder in the order of time.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use analysis::{contrast::Given, history};

use crate::{
    exit::{self, Exit, Failure},
    flags::History,
    output,
};

pub(super) fn run(flags: &History) -> Result<Exit, Failure> {
    let runs = read(&flags.folder)?;
    let found = history::history(&runs, env!("CARGO_PKG_VERSION"));
    if let Some(path) = &flags.output {
        output::write_file(path, &report::history::html(&found).map_err(Failure::failed)?)?;
    }
    let written: Vec<String> = flags.output.iter().map(|path| path.display().to_string()).collect();
    let text = match flags.json {
        true => report::history::json(&found).map_err(Failure::failed)?,
        false => report::history::terminal(&found, &output::terminal_options(&written)),
    };
    output::print(&text)?;
    Ok(Exit::Done)
}

/// Every run file of a folder; says which other JSON files were left out, and why.
fn read(folder: &Path) -> Result<Vec<Given>, Failure> {
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

fn read_run(path: &PathBuf) -> Result<Given, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let run = report::parse(&text).map_err(|error| error.to_string())?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Given { file, run })
}
