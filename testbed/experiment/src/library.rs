//! Where experiments come from: files, or published ones that are compiled in from `experiments/` and `scenarios/`.

mod document;

use std::{
    fs,
    path::{Path, PathBuf},
};

use load::{Scenario, ScenarioError};

use crate::definition::Experiment;

/// The experiment that `nstar-lab` runs when none is named.
pub const DEFAULT: &str = "files-same";

struct Shipped {
    name: &'static str,
    text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        [$(Shipped { name: $name, text: include_str!(concat!("../../../experiments/", $name, ".toml")) }),*]
    };
}

const EXPERIMENTS: [Shipped; 13] = shipped![
    "files-same",
    "files-same-sizes",
    "files-different",
    "accounts-new",
    "io-models",
    "io-models-grid",
    "worker-pool",
    "booking",
    "booking-mix",
    "p2p-nodes",
    "p2p-file-size",
    "p2p-file-size-whole",
    "p2p-central-or-distributed",
];

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        [$(Shipped { name: $name, text: include_str!(concat!("../../../scenarios/", $name, ".toml")) }),*]
    };
}

const SCENARIOS: [Shipped; 9] = scenarios![
    "get-same-file",
    "get-open-file",
    "get-random-file",
    "new-accounts",
    "book",
    "book-cancel",
    "share-register",
    "share-search",
    "share-obtain",
];

/// An experiment that cannot be run as written.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Neither a published experiment nor a file.
    #[error("there is no experiment '{name}'; choose one of {known}, or give a file that ends in .toml")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The known names.
        known: String,
    },
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not an experiment; the message carries line and column.
    #[error("{path}: {message}")]
    Parse {
        /// Which file.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// A value out of bounds.
    #[error("{path}: {key}: {message}")]
    Value {
        /// Which file.
        path: PathBuf,
        /// Which key.
        key: &'static str,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// Its scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Names and titles of the published experiments.
pub fn list() -> Vec<(&'static str, String)> {
    EXPERIMENTS
        .iter()
        .map(|shipped| (shipped.name, document::title(shipped.text).unwrap_or_default()))
        .collect()
}

impl Experiment {
    /// Finds an experiment by name, or reads it from a file. `experiments/NAME.toml` is found from any folder.
    pub fn load(name: &str) -> Result<Self, ExperimentError> {
        let path = Path::new(name);
        let is_file = path.extension().is_some_and(|extension| extension == "toml");
        let stem =
            if is_file { path.strip_prefix("experiments").ok().and_then(Path::file_stem) } else { None };
        let known = stem.and_then(|stem| stem.to_str()).unwrap_or(name);
        let shipped = EXPERIMENTS.iter().find(|shipped| shipped.name == known && !path.exists());
        match shipped {
            Some(shipped) => Self::parse(Path::new(&format!("experiments/{known}.toml")), shipped.text),
            None if is_file => Self::parse(path, &read(path)?),
            None => Err(ExperimentError::Unknown {
                name: name.into(),
                known: EXPERIMENTS.map(|shipped| shipped.name).join(", "),
            }),
        }
    }

    /// Reads an experiment from text; `path` is for messages and for finding its scenario.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ExperimentError> {
        document::read(path, text)
    }
}

/// Reads a published scenario, or a file beside the experiment.
fn scenario(experiment: &Path, name: &str) -> Result<Scenario, ExperimentError> {
    if let Some(shipped) = SCENARIOS.iter().find(|shipped| shipped.name == name) {
        return Ok(Scenario::from_toml(Path::new(&format!("scenarios/{name}.toml")), shipped.text)?);
    }
    let path = experiment.with_file_name(name);
    Ok(Scenario::from_toml(&path, &read(&path)?)?)
}

fn read(path: &Path) -> Result<String, ExperimentError> {
    fs::read_to_string(path).map_err(|source| ExperimentError::Read { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_experiment_can_be_read() {
        for (name, title) in list() {
            let experiment = Experiment::load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!title.is_empty() && experiment.title == title);
        }
        assert!(Experiment::load(DEFAULT).is_ok());
    }

    #[test]
    fn a_wrong_key_is_told_with_its_line() {
        let text = "title = \"x\"\nacounts = 3\n";
        let error = Experiment::parse(Path::new("mine.toml"), text).expect_err("a typo").to_string();
        assert!(
            error.starts_with("mine.toml:") && error.contains("line 2") && error.contains("acounts"),
            "{error}"
        );
    }

    #[test]
    fn bounds_are_kept() {
        let with = |line: &str| {
            format!(
                "title = \"x\"\npage_cache = \"warm\"\ndrive = \"files\"\nscenario = \"get-same-file\"\n{line}\n"
            )
        };
        for (line, word) in [
            ("users = [4, 2]", "not a range"),
            ("users = [1, 2]\nfiles = 9\nfile_sizes = [\"1 parsec\"]", "not a size"),
            ("users = [1, 2]\nfiles = 900000\nfile_sizes = [\"1 GB\"]", "more than"),
            ("users = [1, 2]\nfiles = 1", "no file_sizes"),
        ] {
            let error = Experiment::parse(Path::new("mine.toml"), &with(line)).expect_err(line).to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    #[test]
    fn the_path_in_the_repository_names_an_experiment_wherever_one_is() {
        for (name, title) in list() {
            let found = Experiment::load(&format!("experiments/{name}.toml")).expect(name);
            assert_eq!(found.title, title);
        }
        assert!(matches!(Experiment::load("experiments/no-such.toml"), Err(ExperimentError::Read { .. })));
    }

    #[test]
    fn an_axis_that_says_too_little_or_too_much_is_told() {
        let with = |axis: &str| {
            format!(
                "title = \"x\"\npage_cache = \"warm\"\ndrive = \"open-files\"\nscenario = \"get-open-file\"\nusers = 4\n{axis}\n"
            )
        };
        for (axis, word) in [
            ("axis = {}", "one of `engines`"),
            ("axis = { databases = [\"oracle\"] }", "not a known database"),
            ("axis = { databases = [\"sqlite\"] }", "go with `drive = \"booking\"`"),
            ("axis = { engines = [] }", "names no model"),
            ("axis = { engine = \"pool\" }", "one of `engines`"),
            ("axis = { engine = \"pool\", workers = [1, 0] }", "at least 1"),
            ("axis = { engines = \"all\" }\nrounds = 0", "rounds"),
            ("axis = { peers = [1] }", "go with `drive = \"peers\""),
            ("axis = { peers = [] }", "1 to 64 peers"),
            ("axis = { peers = [0, 1] }", "1 to 64 peers"),
            ("axis = { peers = [8, 1] }", "ascending"),
            ("axis = { peers = [1, 65] }", "1 to 64 peers"),
            ("axis = { peers = [1], indexes = [\"gossip\"] }", "not a known index"),
            ("axis = { peers = [1], indexes = [] }", "names no index"),
            ("axis = { indexes = \"all\" }", "one of `engines`"),
            ("rounds = 3", "go with an [axis]"),
            ("axis = { engines = \"all\" }\ntime = \"soon\"", "not a length of time"),
            (
                "axis = { engines = \"all\" }\n[[work]]\nname = \"x\"\nscenario = \"get-open-file\"\nusers = 1",
                "either `scenario`",
            ),
        ] {
            let error = Experiment::parse(Path::new("mine.toml"), &with(axis)).expect_err(axis).to_string();
            assert!(error.contains(word), "{axis}: {error}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Experiment::load("fils-same").expect_err("no such").to_string();
        assert!(error.contains("files-same"), "{error}");
    }
}
