//! Puts back what was set.

use std::{fs, path::Path};

use ::sweep::doctor::{SettingError, Settings};
use analysis::doctor::Undo;

use super::script;
use crate::{
    exit::{self, Exit, Failure},
    output,
};

/// Puts back what a script says, and removes it once everything has the value that it had.
pub(super) fn undo(settings: &Settings, path: &Path) -> Result<Exit, Failure> {
    let undo = script::read(path)?;
    let failed = put_back(settings, &undo)?;
    if !failed.is_empty() {
        failed.iter().for_each(exit::warn);
        return Err(Failure::failed(format!(
            "{} of {} settings were not put back: {} is kept. Run it as root",
            failed.len(),
            undo.changes.len(),
            path.display()
        )));
    }
    fs::remove_file(path).map_err(|error| {
        Failure::failed(format!("everything was put back, but {} cannot be removed: {error}", path.display()))
    })?;
    output::print(&report::undo::put_back(&undo.changes, &path.display().to_string()))?;
    Ok(Exit::Done)
}

/// Gives every setting the value that it had. Returns those that have another.
pub(super) fn put_back(settings: &Settings, undo: &Undo) -> Result<Vec<SettingError>, Failure> {
    if undo.network.is_some() && settings.network() != undo.network {
        return Err(Failure::usage(
            "the script is about another network namespace: run nstar there (ip netns exec); nothing was put back",
        ));
    }
    Ok(undo.changes.iter().filter_map(|of| settings.set(of.setting, &of.before).err()).collect())
}
