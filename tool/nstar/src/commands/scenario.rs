//! `nstar scenario`: makes and tries scenario files.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use ::import::Imported;
use ::load::{Plan, Url, check as send_each};

use super::plan;
use crate::{
    exit::{self, Exit, Failure},
    flags::{Check, Import, ScenarioCommand},
    output,
};

pub(super) fn run(command: &ScenarioCommand) -> Result<Exit, Failure> {
    match command {
        ScenarioCommand::Import(flags) => import(flags),
        ScenarioCommand::Check(flags) => check(flags),
    }
}

/// Makes a scenario file, and says what it does not have.
fn import(flags: &Import) -> Result<Exit, Failure> {
    if let Some(path) = flags.output.as_deref().filter(|path| path.exists()) {
        return Err(Failure::usage(format!(
            "{} is there already, and may have been changed by hand; give another name",
            path.display()
        )));
    }
    let imported = imported(flags)?;
    let file = flags.file.as_deref().and_then(Path::file_stem).filter(|name| *name != "-");
    let first = imported.requests.first().map(|request| request.name.clone()).unwrap_or_default();
    let name = file.map_or(first, |name| name.to_string_lossy().into_owned());
    let text = imported.to_toml(&name);
    match &flags.output {
        Some(path) => output::write_file(path, &text)?,
        None => output::print(&text)?,
    }
    exit::say(&report::import::imported(imported.requests.len(), imported.base.as_deref()));
    for what in &imported.left_out {
        exit::say(&format!("  {}", report::import::left_out(what)));
    }
    Ok(Exit::Done)
}

fn imported(flags: &Import) -> Result<Imported, Failure> {
    if let Some(curl) = &flags.from_curl {
        return curl.clone().into_scenario().map_err(Failure::usage);
    }
    let path = flags.file.as_deref().unwrap_or(Path::new("-"));
    // Read as the other URLs are, whose errors do not repeat them.
    let base = flags.base.as_deref().map(str::parse::<Url>).transpose().map_err(Failure::usage)?;
    let base = base.map(|base| base.to_string());
    let text = read(path).map_err(|error| {
        Failure::usage(format!("cannot read {}, which is to be imported: {error}", path.display()))
    })?;
    ::import::read(&text, base.as_deref())
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// The text of a file, or of stdin.
fn read(path: &Path) -> io::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}

/// Sends each request once.
fn check(flags: &Check) -> Result<Exit, Failure> {
    let scenario = plan::read_scenario(&flags.file)?;
    let scenario = plan::with_base(scenario, &flags.file, flags.base.as_deref(), "URL")?;
    let Check { insecure, timeout, seed, .. } = *flags;
    let plan = Plan { insecure, timeout, seed, ..Plan::new(scenario) };
    let checked = send_each(&plan).map_err(Failure::failed)?;
    output::print(&report::check::terminal(&checked, &output::terminal_options(&[])))?;
    let all = checked.iter().all(|checked| checked.is_success());
    Ok(if all { Exit::Done } else { Exit::Failed })
}
