//! The command line as typed: every flag, its default, and its one line of help.

mod agent;
mod by_ssh;
mod ci;
mod compare;
mod database;
mod doctor;
mod experiment;
#[cfg(feature = "fleet")]
mod fleet;
mod generate;
mod live;
mod load;
mod observe;
mod predict;
mod profile;
mod repeat;
mod scenario;

use std::{env, ffi::OsString, path::PathBuf};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue, Error, ErrorKind},
};

#[cfg(feature = "fleet")]
pub use self::fleet::{BusLogin, Fleet, FleetCommand, Kubernetes};
pub use self::{
    agent::Agent,
    by_ssh::BySsh,
    ci::CiFiles,
    compare::{Compare, History},
    database::{DatabaseLogin, is_trusted_owner},
    doctor::Doctor,
    experiment::{Conditions, Experiment},
    generate::{Generate, LostGenerator},
    live::Live,
    load::{Drive, Load, Output, Sweep, Target},
    observe::Observe,
    predict::Predict,
    profile::{Profile, program_tables},
    repeat::Repeat,
    scenario::{Check, Import, ScenarioCommand},
};

/// Finds N*, the load at which a server saturates, and names the resource that stops it.
#[derive(Debug, Parser)]
#[command(name = "nstar", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Flags {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Flags {
    /// Reads the command line of this process; ends the process where that is not possible, as clap does.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| with_hint(error, env::args_os()).exit())
    }
}

/// Adds what `--json` is not for, where it was given and a word is left over.
fn with_hint(mut error: Error, mut typed: impl Iterator<Item = OsString>) -> Error {
    let left_over = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => !word.starts_with('-'),
        (ErrorKind::TooManyValues, _) => true,
        _ => false,
    };
    let is_json = |word: OsString| {
        word.to_str().is_some_and(|word| word == "-j" || word.split('=').next() == Some("--json"))
    };
    if left_over && typed.any(is_json) {
        let tip = "--json takes no file: it prints the run file on stdout; `-o FILE` writes it to a file";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// What the exit codes mean, as the help says.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the run failed or no request completed; 2 usage; 3 a --gate was breached;
4 inconclusive (generator-limited, not steady, never bounded, a gate not decided); 130/143 interrupted, partial report written.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Raise the number of users until throughput stops growing, and name what limits it
    Sweep(Box<Sweep>),
    /// Make one load and measure it
    Load(Box<Load>),
    /// Start the programs that a file names, measure every variant, compare, stop them
    Experiment(Experiment),
    /// Show a run file again: as text, HTML, CSV or JSON
    Report(Report),
    /// Compare runs with those before: the change of every figure, with intervals
    Compare(Compare),
    /// Show the runs of a folder in the order of time, and where their figures changed
    History(History),
    /// Say what becomes of a measured server when something about it, or its load, changes
    Predict(Box<Predict>),
    /// Look for what on this host would spoil a measurement
    Doctor(Doctor),
    /// Make a scenario file of what a browser or curl sent or an API describes, or try one
    #[command(subcommand)]
    Scenario(ScenarioCommand),
    /// Run an experiment of the testbed; with no name: start its file server and sweep it (nstar-lab)
    #[command(disable_help_flag = true)]
    Lab(External),
    /// Run a server of the testbed (nstar-lab serve)
    #[command(disable_help_flag = true)]
    Serve(External),
    /// Share files with other peers: search, get, list, remove, key (nstar-lab share)
    #[command(disable_help_flag = true)]
    Share(External),
    /// Observe or make load for another nstar: what --observe, --generator and --fleet use
    Agent(Agent),
    /// Start the machines of a fleet, which runs use with --fleet
    #[cfg(feature = "fleet")]
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// Stand guard over a program of an experiment
    #[command(hide = true)]
    Guard,
}

/// Flags of `nstar report`.
#[derive(Debug, Args)]
pub struct Report {
    /// A run file, or that of a comparison
    pub run: PathBuf,
    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// File to write [default: stdout]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A way to show a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// As on the terminal after a run.
    Text,
    /// One page that opens offline.
    Html,
    /// A row for each step.
    Csv,
    /// The run file itself.
    Json,
    /// The stacks that --profile saw, a line each: tier, calls and samples, as tools for flame graphs read them.
    Folded,
    /// The samples that --profile took, compressed, as pprof reads them: go tool pprof FILE. Into a file (-o) or a pipe.
    Pprof,
    /// The kernel's stacks of threads that slept, in lines as folded has them; --profile sees them as root.
    FoldedOffCpu,
}

/// What commands that `nstar-lab` carries out are given: passed on as it is.
#[derive(Debug, Args)]
pub struct External {
    /// Arguments for nstar-lab; --help shows its own help
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        super::Flags::command().debug_assert();
    }
}
