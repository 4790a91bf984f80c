//! Reads and checks an experiment file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    str::FromStr,
    time::Duration,
};

use analysis::{comparison::Published, search::UsersRange};
use bytesize::ByteSize;
use load::{Connections, Scenario, ScenarioError};
use serde::Deserialize;

use super::{ExperimentError, scenario};
use crate::{
    definition::{
        Axis, DatabaseKind, Engines, Experiment, Files, IndexKind, PEERS_MAX, PageCache, Tier, Users,
        Workload,
    },
    names,
    size::Size,
};

/// The most files an experiment may ask for.
const FILES_MAX: u64 = 1_000_000;
/// The most bytes an experiment may put on the disk.
const BYTES_MAX: u64 = 64 << 30;
/// The most variants, works and rounds, multiplied: a typo must not run for days.
const TRIALS_MAX: usize = 10_000;
/// How long a comparison may take unless its file says otherwise.
const COMPARISON_TIME: Duration = Duration::from_secs(300);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: String,
    #[serde(default)]
    accounts: u32,
    page_cache: PageCache,
    drive: Tier,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    axis: Option<AxisSection>,
    time: Option<String>,
    #[serde(default = "once")]
    rounds: u32,
    #[serde(default)]
    published: Vec<Published>,
    #[serde(default)]
    files: u64,
    #[serde(default)]
    file_sizes: Vec<String>,
    scenario: Option<String>,
    users: Option<UsersKey>,
    #[serde(default)]
    work: Vec<WorkSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisSection {
    engines: Option<NamesKey>,
    engine: Option<String>,
    workers: Option<Vec<u32>>,
    databases: Option<NamesKey>,
    indexes: Option<NamesKey>,
    peers: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NamesKey {
    Word(String),
    Named(Vec<String>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum UsersKey {
    Fixed(u32),
    Range([u32; 2]),
    List(Vec<u32>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkSection {
    name: String,
    scenario: Option<String>,
    /// Weights of the scenario's requests, by name, in place of its own.
    #[serde(default)]
    weights: BTreeMap<String, u32>,
    #[serde(default)]
    upload: Vec<String>,
    users: UsersKey,
    #[serde(default)]
    files: u64,
    file_size: Option<String>,
    #[serde(default)]
    connections: Connections,
    timeout: Option<String>,
    #[serde(default)]
    overload: bool,
    link_mbit: Option<u32>,
}

fn once() -> u32 {
    1
}

/// A wrong value: its key, and what is wrong with it.
type Wrong = (&'static str, String);

/// The title, if the text is an experiment at all.
pub(super) fn title(text: &str) -> Option<String> {
    toml::from_str::<Document>(text).ok().map(|document| document.title)
}

/// Reads and checks an experiment; `path` is for messages and for finding its scenarios.
pub(super) fn read(path: &Path, text: &str) -> Result<Experiment, ExperimentError> {
    let document: Document = toml::from_str(text)
        .map_err(|error| ExperimentError::Parse { path: path.into(), message: error.to_string() })?;
    let value = |(key, message)| ExperimentError::Value { path: path.into(), key, message };
    let axis = document.axis.as_ref().map(axis).transpose().map_err(value)?;
    let time = document.time.as_deref().map(|text| duration("time", text)).transpose().map_err(value)?;
    let works = works(path, &document, value)?;
    check_trials(&document, axis.as_ref(), works.len()).map_err(value)?;
    check_peers(document.drive, axis.as_ref(), &works).map_err(value)?;
    Ok(Experiment {
        title: document.title,
        accounts: document.accounts,
        page_cache: document.page_cache,
        drive: document.drive,
        flags: document.flags,
        time: time.or(axis.as_ref().map(|_| COMPARISON_TIME)),
        axis,
        works,
        rounds: document.rounds,
        published: document.published,
    })
}

fn axis(section: &AxisSection) -> Result<Axis, Wrong> {
    let AxisSection { engines, engine, workers, databases, indexes, peers } = section;
    match (engines, (engine, workers), databases, (indexes, peers)) {
        (Some(engines), (None, None), None, (None, None)) => self::engines(engines).map(Axis::Engines),
        (None, (Some(engine), Some(workers)), None, (None, None)) => {
            if workers.is_empty() || workers.contains(&0) {
                return Err(("axis.workers", "give at least one number, each at least 1".into()));
            }
            Ok(Axis::Workers { engine: engine.clone(), workers: workers.clone() })
        }
        (None, (None, None), Some(databases), (None, None)) => {
            kinds("axis.databases", "database", databases, &DatabaseKind::ALL).map(Axis::Databases)
        }
        (None, (None, None), None, (indexes, Some(peers))) => self::peers(indexes.as_ref(), peers),
        _ => Err((
            "axis",
            "give one of `engines`, `databases`, `peers` (and `indexes`), or `engine` and `workers`".into(),
        )),
    }
}

fn engines(key: &NamesKey) -> Result<Engines, Wrong> {
    match key {
        NamesKey::Word(word) if word == "all" => Ok(Engines::All),
        NamesKey::Word(word) => Ok(Engines::Named(vec![word.clone()])),
        NamesKey::Named(names) if names.is_empty() => {
            Err(("axis.engines", "names no model; write \"all\" or a list of names".into()))
        }
        NamesKey::Named(names) => Ok(Engines::Named(names.clone())),
    }
}

fn kinds<T: Copy + FromStr<Err = String>>(
    key: &'static str,
    what: &str,
    names: &NamesKey,
    all: &[T],
) -> Result<Vec<T>, Wrong> {
    let names = match names {
        NamesKey::Word(word) if word == "all" => return Ok(all.to_vec()),
        NamesKey::Word(word) => std::slice::from_ref(word),
        NamesKey::Named(names) => names.as_slice(),
    };
    if names.is_empty() {
        return Err((key, format!("names no {what}; write \"all\" or a list of names")));
    }
    names.iter().map(|name| name.parse().map_err(|wrong| (key, wrong))).collect()
}

fn peers(indexes: Option<&NamesKey>, peers: &[u32]) -> Result<Axis, Wrong> {
    let indexes = match indexes {
        Some(names) => kinds("axis.indexes", "index", names, &IndexKind::ALL)?,
        None => vec![IndexKind::Central],
    };
    let fits = |count: &u32| (1..=PEERS_MAX).contains(count);
    if peers.is_empty() || !peers.iter().all(fits) || !peers.is_sorted_by(|a, b| a < b) {
        return Err((
            "axis.peers",
            format!(
                "{peers:?}: give an ascending list of 1 to {PEERS_MAX} peers, each of which is a process"
            ),
        ));
    }
    Ok(Axis::Peers { indexes, peers: peers.to_vec() })
}

fn works(
    path: &Path,
    document: &Document,
    value: impl Fn(Wrong) -> ExperimentError + Copy,
) -> Result<Vec<Workload>, ExperimentError> {
    match (&document.scenario, &document.users, document.work.as_slice()) {
        (Some(name), Some(users), []) => one_per_size(path, document, name, users, value),
        (None, None, sections @ [_, ..]) if document.files == 0 && document.file_sizes.is_empty() => {
            check_names(sections).map_err(value)?;
            sections.iter().map(|section| work(path, section, value)).collect()
        }
        _ => Err(value((
            "work",
            "give either `scenario` and `users`, or [[work]] sections that each have their own (and files)"
                .into(),
        ))),
    }
}

fn one_per_size(
    path: &Path,
    document: &Document,
    name: &str,
    users: &UsersKey,
    value: impl Fn(Wrong) -> ExperimentError + Copy,
) -> Result<Vec<Workload>, ExperimentError> {
    let plain = Workload {
        name: String::new(),
        files: None,
        scenario: scenario(path, name)?,
        users: self::users(users).map_err(value)?,
        connections: Connections::Kept,
        timeout: None,
        overload: false,
        link_mbit: None,
    };
    if document.file_sizes.is_empty() {
        check_files(document.files, None).map_err(value)?;
        return Ok(vec![plain]);
    }
    let several = document.file_sizes.len() > 1;
    let of_size = |text: &String| {
        let size = size("file_sizes", text)?;
        check_files(document.files, Some(size))?;
        let name = if several { text.clone() } else { String::new() };
        Ok(Workload { name, files: Some(Files { count: document.files, size }), ..plain.clone() })
    };
    document.file_sizes.iter().map(|text| of_size(text).map_err(value)).collect()
}

fn work(
    path: &Path,
    section: &WorkSection,
    value: impl Fn(Wrong) -> ExperimentError + Copy,
) -> Result<Workload, ExperimentError> {
    let checked = || -> Result<_, Wrong> {
        let size = section.file_size.as_deref().map(|text| size("work.file_size", text)).transpose()?;
        check_files(section.files, size)?;
        if section.link_mbit == Some(0) {
            return Err(("work.link_mbit", "a link of 0 Mb/s carries nothing".into()));
        }
        let timeout = section.timeout.as_deref().map(|text| duration("work.timeout", text)).transpose()?;
        let files = size.filter(|_| section.files > 0).map(|size| Files { count: section.files, size });
        Ok((files, users(&section.users)?, timeout))
    };
    let (files, users, timeout) = checked().map_err(value)?;
    Ok(Workload {
        name: section.name.clone(),
        files,
        scenario: section_scenario(path, section, value)?,
        users,
        connections: section.connections,
        timeout,
        overload: section.overload,
        link_mbit: section.link_mbit,
    })
}

/// Checks that names differ as file names too, which are made of them.
fn check_names(sections: &[WorkSection]) -> Result<(), Wrong> {
    let mut seen = BTreeSet::new();
    match sections.iter().find(|section| !seen.insert(names::slug(&section.name))) {
        None => Ok(()),
        Some(twice) => {
            Err(("work.name", format!("'{}' appears twice, or is too similar to another", twice.name)))
        }
    }
}

/// A scenario by name, or uploads of generated bodies of one or several sizes.
fn section_scenario(
    path: &Path,
    section: &WorkSection,
    value: impl Fn(Wrong) -> ExperimentError,
) -> Result<Scenario, ExperimentError> {
    match (&section.scenario, section.upload.as_slice()) {
        (Some(name), []) => scenario(path, name)?
            .with_weights(&section.weights)
            .map_err(|problem| value(("work.weights", problem.to_string()))),
        (None, texts @ [_, ..]) => {
            let sizes: Result<Vec<u64>, Wrong> = texts.iter().map(|text| size("work.upload", text)).collect();
            Ok(upload(path, &sizes.map_err(value)?)?)
        }
        _ => Err(value(("work", "give either `scenario`, or the sizes to `upload`".into()))),
    }
}

/// Every user sends bodies of these sizes, one drawn at random each time.
fn upload(path: &Path, sizes: &[u64]) -> Result<Scenario, ScenarioError> {
    let text = format!(
        "name = \"upload\"\n[[request]]\nmethod = \"POST\"\npath = \"/upload\"\nbody = {{ sizes = {sizes:?} }}\nexpect = 200\n"
    );
    Scenario::from_toml(path, &text)
}

fn users(key: &UsersKey) -> Result<Users, Wrong> {
    match *key {
        UsersKey::Fixed(0) => Err(("users", "0 users make no load".into())),
        UsersKey::Fixed(users) => Ok(Users::Fixed(users)),
        UsersKey::Range([lo, hi]) if lo == 0 || lo >= hi => {
            Err(("users", format!("[{lo}, {hi}] is not a range; write [1, 256]")))
        }
        UsersKey::Range([lo, hi]) => Ok(Users::Swept(UsersRange::Range { lo, hi })),
        UsersKey::List(ref list) => match list.as_slice() {
            [first, _, ..] if *first > 0 && list.is_sorted_by(|a, b| a < b) => {
                Ok(Users::Swept(UsersRange::List(list.clone())))
            }
            _ => {
                Err(("users", format!("{list:?}: write one number, a range [1, 256], or an ascending list")))
            }
        },
    }
}

fn size(key: &'static str, text: &str) -> Result<u64, Wrong> {
    let wrong =
        || format!("'{text}' is not a size; write a number and a unit, such as \"1 KiB\" or \"10 MB\"");
    ByteSize::from_str(text).map(|size| size.as_u64()).map_err(|_| (key, wrong()))
}

fn duration(key: &'static str, text: &str) -> Result<Duration, Wrong> {
    let found = humantime::parse_duration(text).ok().filter(|time| !time.is_zero());
    found.ok_or_else(|| (key, format!("'{text}' is not a length of time; write \"30s\" or \"5m\"")))
}

fn check_files(count: u64, size: Option<u64>) -> Result<(), Wrong> {
    let bytes = count.saturating_mul(size.unwrap_or(0));
    if count > FILES_MAX || bytes > BYTES_MAX {
        let size = Size(size.unwrap_or(0));
        let most = Size(BYTES_MAX);
        return Err((
            "files",
            format!(
                "{count} files of {size} are more than the {FILES_MAX} files or {most} an experiment may make"
            ),
        ));
    }
    if count > 0 && size.is_none() {
        return Err(("files", "files to make, but no file_sizes".into()));
    }
    Ok(())
}

fn check_trials(document: &Document, axis: Option<&Axis>, works: usize) -> Result<(), Wrong> {
    let variants = match axis {
        Some(Axis::Workers { workers, .. }) => workers.len(),
        Some(Axis::Engines(Engines::Named(names))) => names.len(),
        Some(Axis::Databases(kinds)) => kinds.len(),
        Some(Axis::Peers { indexes, peers }) => indexes.len().saturating_mul(peers.len()),
        Some(Axis::Engines(Engines::All)) | None => 1,
    };
    let trials = variants.saturating_mul(works).saturating_mul(document.rounds as usize);
    if document.rounds == 0 || trials > TRIALS_MAX {
        return Err(("rounds", format!("{trials} measurements; ask for 1 to {TRIALS_MAX} in all")));
    }
    if matches!(axis, Some(Axis::Databases(_))) != (document.drive == Tier::Booking) {
        return Err(("axis", "`databases` go with `drive = \"booking\"`, and the other way round".into()));
    }
    if axis.is_none() && (document.rounds > 1 || document.work.iter().any(|work| work.link_mbit.is_some())) {
        return Err(("axis", "`rounds` and `link_mbit` go with an [axis]".into()));
    }
    Ok(())
}

/// Checks that peers are driven if they are varied, and only then, with a fixed number of users and files of their own.
fn check_peers(drive: Tier, axis: Option<&Axis>, works: &[Workload]) -> Result<(), Wrong> {
    let peers = match (drive, axis) {
        (Tier::Peers, Some(Axis::Peers { peers, .. })) => peers.iter().copied().max().unwrap_or(0),
        (Tier::Peers, _) | (_, Some(Axis::Peers { .. })) => {
            return Err(("axis", "`peers` go with `drive = \"peers\"`, and the other way round".into()));
        }
        _ => return Ok(()),
    };
    for work in works {
        let files = work.files.filter(|files| files.count > 0);
        let Some(files) = files else {
            return Err(("files", "peers share files: say how many each shares, and of which size".into()));
        };
        check_files(files.count.saturating_mul(peers.into()), Some(files.size))?;
        if !matches!(work.users, Users::Fixed(_)) || work.link_mbit.is_some() {
            return Err((
                "users",
                "give the number of users of each peer, such as 1, and no link: `peers` is what is varied"
                    .into(),
            ));
        }
    }
    Ok(())
}
