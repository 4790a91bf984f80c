//! The published experiments and their scenarios, compiled in from `experiments/` and `scenarios/`.

use std::{ffi::OsStr, fs, io, path::Path};

use experiment::{
    definition::Experiment,
    document::{self, Disk, Library},
};
use nstar::exit::Failure;

/// The experiment that runs when none is named.
pub(crate) const DEFAULT: &str = "files-same";

/// The name that stands for every experiment.
pub(crate) const ALL: &str = "all";

/// Experiments that take so long that a quick run leaves them to their short forms.
const SHORT_FORMS: [(&str, &str); 2] =
    [("io-models-grid", "io-models"), ("p2p-file-size-whole", "p2p-file-size")];

struct Published {
    name: &'static str,
    text: &'static str,
}

macro_rules! compiled_in {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(Published { name: $name, text: include_str!(concat!("../../../", $folder, "/", $name, ".toml")) }),*]
    };
}

const EXPERIMENTS: &[Published] = compiled_in![
    "experiments":
    "files-same",
    "files-same-sizes",
    "files-different",
    "accounts-new",
    "io-models",
    "io-models-grid",
    "worker-pool",
    "booking",
    "booking-mix",
    "booking-data",
    "booking-galera",
    "p2p-nodes",
    "p2p-file-size",
    "p2p-file-size-whole",
    "p2p-central-or-distributed",
];

const SCENARIOS: &[Published] = compiled_in![
    "scenarios":
    "sixteen-accounts",
    "get-same-file",
    "get-open-file",
    "new-accounts",
    "book",
    "book-cancel",
    "share-register",
    "share-search",
    "share-obtain",
];

/// The scenarios that published experiments name.
struct CompiledIn;

impl Library for CompiledIn {
    fn read(&self, path: &Path) -> io::Result<String> {
        let name = path.file_stem().and_then(OsStr::to_str);
        let found = SCENARIOS.iter().find(|scenario| Some(scenario.name) == name);
        found.map(|scenario| scenario.text.to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Names and titles of the published experiments.
pub(crate) fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    let title =
        |text: &'static str| text.lines().find_map(|line| line.strip_prefix("title = \"")?.strip_suffix('"'));
    EXPERIMENTS.iter().map(move |experiment| (experiment.name, title(experiment.text).unwrap_or_default()))
}

/// The short form of an experiment that takes long.
pub(crate) fn short_form(name: &str) -> Option<&'static str> {
    SHORT_FORMS.iter().find(|(long, _)| *long == name).map(|(_, short)| *short)
}

/// Loads a published experiment by its name, or a file (`.toml`), with values in place of its own.
pub(crate) fn load(name: &str, set: &[(String, String)]) -> Result<Experiment, Failure> {
    let path = Path::new(name);
    if path.extension() == Some(OsStr::new("toml")) {
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
        return document::read_with(path, &text, &Disk, set).map_err(Failure::usage);
    }
    let Some(found) = EXPERIMENTS.iter().find(|experiment| experiment.name == name) else {
        let known: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        return Err(Failure::usage(format!(
            "there is no experiment '{name}'; choose one of {}, or give a file that ends in .toml",
            known.join(", ")
        )));
    };
    let path = Path::new("experiments").join(name).with_extension("toml");
    document::read_with(&path, found.text, &CompiledIn, set).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_experiment_can_be_read_and_has_a_title() {
        for (name, title) in list() {
            assert!(!title.is_empty(), "{name}");
            if let Err(error) = load(name, &[]) {
                panic!("{name}: {error}");
            }
        }
    }

    #[test]
    fn every_experiment_of_the_folder_is_published() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut files: Vec<String> = fs::read_dir(folder)
            .expect("experiments/")
            .flatten()
            .filter(|entry| entry.path().is_file())
            .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
            .collect();
        let mut names: Vec<&str> = list().map(|(name, _)| name).collect();
        files.sort_unstable();
        names.sort_unstable();
        assert_eq!(files, names);
    }

    #[test]
    fn short_forms_are_published() {
        let known: Vec<&str> = list().map(|(name, _)| name).collect();
        for (long, short) in SHORT_FORMS {
            assert!(known.contains(&long) && known.contains(&short) && short_form(short).is_none());
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = load("file-same", &[]).expect_err("a typo").to_string();
        assert!(error.contains("files-same") && error.contains(".toml"), "{error}");
    }
}
