//! An experiment as data: which systems to start, on what files, driven by which scenario.
//!
//! The ones that come with nstar are compiled in from `experiments/` and `scenarios/`.

use std::{
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use bytesize::ByteSize;
use load::{Scenario, ScenarioError};
use serde::Deserialize;

/// The experiment that `nstar lab` runs when none is named.
pub const DEFAULT: &str = "files-same";

/// The most files an experiment may ask for.
const FILES_MAX: u64 = 1_000_000;
/// The most bytes an experiment may put on the disk.
const BYTES_MAX: u64 = 64 << 30;

struct Shipped {
    name: &'static str,
    text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        [$(Shipped { name: $name, text: include_str!(concat!("../../../experiments/", $name, ".toml")) }),*]
    };
}

const EXPERIMENTS: [Shipped; 4] =
    shipped!["files-same", "files-same-sizes", "files-different", "accounts-new"];

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        [$(Shipped { name: $name, text: include_str!(concat!("../../../scenarios/", $name, ".toml")) }),*]
    };
}

const SCENARIOS: [Shipped; 3] = scenarios!["get-same-file", "get-random-file", "new-accounts"];

/// One experiment, checked.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// What it shows, in a line.
    pub title: String,
    /// Accounts to make first; user `u` of the load signs in as account `u` modulo this.
    pub accounts: u32,
    /// How many files to make.
    pub files: u64,
    /// Sizes of those files, bytes: one sweep for each.
    pub file_sizes: Vec<u64>,
    /// What the page cache holds when a step begins.
    pub page_cache: PageCache,
    /// Which server the scenario drives.
    pub drive: Tier,
    /// What the users do.
    pub scenario: Scenario,
    /// Numbers of users to search, [lo, hi].
    pub users: [u32; 2],
}

/// What the page cache holds when a step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageCache {
    /// Whatever earlier steps left there.
    Warm,
    /// None of the files.
    Cold,
}

/// A tier of the authenticated file server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// The file server in front.
    Files,
    /// The accounts server behind it.
    Accounts,
}

/// The file's own words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: String,
    #[serde(default)]
    accounts: u32,
    #[serde(default)]
    files: u64,
    #[serde(default)]
    file_sizes: Vec<String>,
    page_cache: PageCache,
    drive: Tier,
    scenario: String,
    users: [u32; 2],
}

/// An experiment that cannot be run as written.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Neither the name of one that comes with nstar nor a file.
    #[error(
        "no experiment '{name}'; the ones that come with nstar: {known}. Or give a file that ends in .toml"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are.
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

/// Names and titles of the experiments that come with nstar.
pub fn list() -> Vec<(&'static str, String)> {
    EXPERIMENTS
        .iter()
        .map(|shipped| {
            let title = toml::from_str::<Document>(shipped.text).map(|document| document.title);
            (shipped.name, title.unwrap_or_default())
        })
        .collect()
}

impl Experiment {
    /// Finds an experiment by name, or reads it from a file.
    pub fn load(name: &str) -> Result<Self, ExperimentError> {
        if let Some(shipped) = EXPERIMENTS.iter().find(|shipped| shipped.name == name) {
            return Self::parse(Path::new(&format!("experiments/{name}.toml")), shipped.text);
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|extension| extension != "toml") {
            let known = EXPERIMENTS.map(|shipped| shipped.name).join(", ");
            return Err(ExperimentError::Unknown { name: name.into(), known });
        }
        Self::parse(path, &read(path)?)
    }

    /// Reads an experiment from text; `path` is for messages and for finding its scenario.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ExperimentError> {
        let document: Document = toml::from_str(text)
            .map_err(|error| ExperimentError::Parse { path: path.into(), message: error.to_string() })?;
        let value = |key, message: String| ExperimentError::Value { path: path.into(), key, message };
        let [lo, hi] = document.users;
        if lo == 0 || lo >= hi {
            return Err(value("users", format!("[{lo}, {hi}] is not a range; write [1, 256]")));
        }
        let file_sizes = sizes(&document).map_err(|message| value("file_sizes", message))?;
        check_bytes(document.files, &file_sizes).map_err(|message| value("files", message))?;
        Ok(Experiment {
            scenario: scenario(path, &document.scenario)?,
            title: document.title,
            accounts: document.accounts,
            files: document.files,
            file_sizes,
            page_cache: document.page_cache,
            drive: document.drive,
            users: document.users,
        })
    }
}

fn sizes(document: &Document) -> Result<Vec<u64>, String> {
    let parse = |text: &String| {
        ByteSize::from_str(text).map(|size| size.as_u64()).map_err(|_| {
            format!("'{text}' is not a size; write a number and a unit, such as \"1 KiB\" or \"10 MB\"")
        })
    };
    document.file_sizes.iter().map(parse).collect()
}

fn check_bytes(files: u64, sizes: &[u64]) -> Result<(), String> {
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let bytes = files.saturating_mul(largest);
    if files > FILES_MAX || bytes > BYTES_MAX {
        return Err(format!(
            "{files} files of {} are more than the {FILES_MAX} files or {} an experiment may make",
            ByteSize(largest),
            ByteSize(BYTES_MAX)
        ));
    }
    if files > 0 && sizes.is_empty() {
        return Err("files to make, but no file_sizes".into());
    }
    Ok(())
}

/// A scenario that comes with nstar, or a file beside the experiment.
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
    fn every_experiment_that_comes_with_nstar_is_whole() {
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
    fn an_unknown_name_lists_the_known_ones() {
        let error = Experiment::load("fils-same").expect_err("no such").to_string();
        assert!(error.contains("files-same"), "{error}");
    }
}
