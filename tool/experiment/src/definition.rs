//! What an experiment is: which programs to start, what to drive them with, and what varies.
//!
//! Texts may hold names (`${port.web}`) that are filled in for each measurement: see [`crate::template`].

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use analysis::{
    comparison::{Claim, Published},
    search::UsersRange,
};
use load::Connections;

use crate::template::Values;

/// The most users of one server: more than a host's local ports allow to one address.
pub const USERS_MAX: u64 = 60_000;

/// One experiment, checked.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// What it shows, in one line.
    pub title: String,
    /// What differs between variants, such as `workers`; empty if nothing does.
    pub axis: String,
    /// Whether variants are combinations of several such things.
    pub combines: bool,
    /// The variants, in order; without an axis a single one without a name.
    pub variants: Vec<Variant>,
    /// Values that hold unless a variant or a workload has its own.
    pub values: Values,
    /// Text files to write for the programs.
    pub texts: Vec<TextFile>,
    /// Files of random bytes to make.
    pub data: Vec<Data>,
    /// What its programs put on the disk besides, such as a filled database, as a text that gives a size; empty: nothing much.
    pub room: String,
    /// The programs, in the order in which they start. They stop in the opposite order.
    pub processes: Vec<Process>,
    /// What to run once the programs are ready.
    pub prepare: Vec<Preparation>,
    /// Commands to run before each step, so that every step finds the same.
    pub reset: Vec<Command>,
    /// How the programs prove that they kept their promises.
    pub prove: Option<Proving>,
    /// What is measured, in this order, on every variant.
    pub works: Vec<Workload>,
    /// What the page cache holds when a step begins.
    pub page_cache: PageCache,
    /// Where load is made, if not by the process that runs the experiment.
    pub generators: Vec<Elsewhere>,
    /// Where to observe besides this host.
    pub observe: Vec<Elsewhere>,
    /// Which verdicts are tested by slowing each tier a little.
    pub confirm: Confirm,
    /// About how long all of it may take; `None`: each sweep takes as long as it needs.
    pub time: Option<Duration>,
    /// How often each variant is measured on each workload, at least.
    pub rounds: u32,
    /// The variant that all others are compared with; `None`: all with each other.
    pub baseline: Option<String>,
    /// Figures published by others, shown beside the results.
    pub published: Vec<Published>,
    /// What others claim, checked on the results.
    pub claims: Vec<Claim>,
    /// The file that it was read from, which relative paths start from.
    pub file: PathBuf,
    /// Lines of the file that define values, by name, for messages.
    pub lines: BTreeMap<String, usize>,
    /// Names to fill in, each with its line of the file, in the order of the file, for messages.
    pub names: Vec<(String, usize)>,
}

/// One value of the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Such as `epoll` or `4`; empty if nothing is varied.
    pub name: String,
    /// Its own values.
    pub values: Values,
}

/// A command, word by word. No shell reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Line of the file, for messages.
    pub line: usize,
}

/// Where load is made, or observed: a host to reach by ssh, or a command that runs `nstar agent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// A text that gives it.
    pub text: String,
    /// Line of the file, for messages.
    pub line: usize,
}

/// An environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub text: String,
    /// Line of the file, for messages.
    pub line: usize,
}

/// A program that runs while the experiment measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// How it is started.
    pub command: Command,
    /// Words that every instance but the first has besides, to join it.
    pub join: Vec<String>,
    /// Commands to run before it starts.
    pub before: Vec<Command>,
    /// Environment variables besides those of nstar.
    pub environment: Vec<Variable>,
    /// Names of the ports that it gets.
    pub ports: Vec<String>,
    /// How it is known to be ready.
    pub ready: Ready,
    /// How long that may take.
    pub ready_within: Duration,
    /// Values that a variant must have for it to start: name, and what the value may be.
    pub when: Vec<(String, Vec<String>)>,
    /// How many of it, as a text that gives a number.
    pub count: String,
    /// Which processors it may use.
    pub processors: Processors,
    /// Most memory, bytes, as a text that gives a size; empty: no limit.
    pub memory: String,
    /// Most operations of the disk per second, reads and writes each, as a text that gives a number; empty: no limit.
    pub disk_iops: String,
    /// Most megabytes read from the disk or written to it per second, likewise.
    pub disk_mb_per_s: String,
    /// Rate of the link to it, Mb/s, as a text that gives a number; empty: loopback.
    pub link_mbit: String,
    /// Signal that asks it to stop.
    pub stop: StopSignal,
    /// How long it may take to stop before it is killed.
    pub stop_within: Duration,
}

/// Which processors a program may use, as texts that names are filled into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Processors {
    /// `systems`: those for programs; `all`: also those of the generator; or how many of those for programs.
    Some(String),
    /// These, by number.
    These(Vec<String>),
}

/// How a program is known to be ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// As soon as it runs.
    Started,
    /// It has printed this.
    Line(String),
    /// It accepts connections at this port.
    Port(String),
    /// It answers this URL with a status below 400.
    Http(String),
}

/// A signal that asks a program to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// Usual.
    Term,
    /// PostgreSQL's fast shutdown; Ctrl-C.
    Int,
    /// nginx's graceful shutdown.
    Quit,
}

/// A text file for the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Its path within the experiment's folder.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// Line of the file, for messages.
    pub line: usize,
}

/// Files of random bytes: `0.bin`, `1.bin`, ..
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Their folder within the experiment's.
    pub folder: String,
    /// How many, as a text that gives a number.
    pub files: String,
    /// Size of each, as a text that gives a size.
    pub size: String,
    /// The process each instance of which gets files of its own; empty: made once.
    pub of: String,
    /// Line of the file, for messages.
    pub line: usize,
}

/// Something to do once the programs are ready.
#[derive(Debug, Clone)]
pub struct Preparation {
    /// What.
    pub action: Action,
    /// Whether once is enough, however often the programs start.
    pub once: bool,
}

/// What a preparation does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Run a command. A JSON object on its stdout may give `values`, lists that the scenario draws from.
    Command(Command),
    /// Make each of a scenario's requests this often.
    Load {
        /// Who receives it.
        target: Target,
        /// How many users, as a text that gives a number.
        users: String,
        /// How many requests each of them makes.
        requests: u64,
    },
}

/// Where a load goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The URL; with a scenario, that of its server.
    pub url: String,
    /// The process each instance of which gets a URL; empty: a single URL.
    pub each: String,
    /// What is sent; `None`: one GET of the URL.
    pub scenario: Option<ScenarioText>,
    /// Line of the file, for messages.
    pub line: usize,
}

/// A scenario before its names are filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioText {
    /// Its file; where it stands in the experiment itself, that of the experiment.
    pub path: PathBuf,
    /// The text.
    pub text: String,
    /// Weights of its requests, by name, in place of its own.
    pub weights: Vec<(String, u32)>,
}

/// How the programs prove that they kept their promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proving {
    /// Exit status 0 if they did. A JSON object on its stdout is shown in the report.
    pub command: Command,
    /// Programs that stop first, so that nothing is under way.
    pub after: Vec<String>,
}

/// One thing to measure.
#[derive(Debug, Clone)]
pub struct Workload {
    /// What tells it from the others: `100 KB, 100 connections`; empty if it is the only one.
    pub name: String,
    /// Who receives the load, and what.
    pub target: Target,
    /// How many users; for each instance, if the target has several.
    pub users: Users,
    /// Whether a user keeps its connection.
    pub connections: Connections,
    /// A request that takes longer has timed out; `None`: the generator's own limit.
    pub timeout: Option<Duration>,
    /// The database to ask meanwhile which of its sessions wait for locks, as a text that gives a URL; empty: none.
    pub watch_database: String,
    /// The file with its password, as a text that gives a path, from the experiment's folder; empty: it asks for none.
    pub database_password_file: String,
    /// Whether users ask for more than can be served, so that denied requests are part of the result.
    pub overload: bool,
    /// Its own values.
    pub values: Values,
}

/// How many users a workload has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// As many as this text says, in one load.
    Fixed(String),
    /// A sweep of a range, if there are two of these numbers; of a list, if there are more. Each may hold names.
    Swept(Vec<String>),
}

impl Users {
    /// What a sweep says in place of a number.
    pub(crate) const EXPECTED: &str = "a number, a range [1, 256], or an ascending list";

    /// The users of a sweep: a range of two numbers, or a list of more; `None` where they do not ascend.
    pub(crate) fn range(numbers: Vec<u32>) -> Option<UsersRange> {
        match *numbers.as_slice() {
            [lo, hi] => (lo < hi).then_some(UsersRange::Range { lo, hi }),
            [_, _, ..] => numbers.is_sorted_by(|a, b| a < b).then_some(UsersRange::List(numbers)),
            _ => None,
        }
    }
}

/// What the page cache holds when a step begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PageCache {
    /// Whatever earlier steps left there.
    #[default]
    Warm,
    /// None of the experiment's data.
    Cold,
}

/// Which verdicts of an experiment's sweeps are tested by slowing each tier a little, once for each variant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confirm {
    /// Where it is not sure which tier holds the bottleneck.
    #[default]
    Doubtful,
    /// All.
    Always,
    /// None.
    Never,
}

impl Experiment {
    /// Whether variants are compared.
    pub fn compares(&self) -> bool {
        !self.axis.is_empty()
    }

    /// The values of one measurement: those of the workload before those of the variant before those of the
    /// experiment.
    pub fn values_of(&self, variant: &Variant, work: &Workload) -> Values {
        let mut all = self.values.clone();
        all.extend(variant.values.clone());
        all.extend(work.values.clone());
        all
    }
}

impl Process {
    /// Whether it starts where these values hold.
    pub fn starts_with(&self, values: &Values) -> bool {
        self.when.iter().all(|(name, allowed)| match values.get(name) {
            Some(crate::template::Value::Text(text)) => allowed.contains(text),
            _ => false,
        })
    }
}
