//! Flags of `nstar experiment`.

use std::{path::PathBuf, time::Duration};

use analysis::search::UsersRange;
use clap::Args;

use super::{Output, profile::Profile};
use crate::values;

/// What is said of `--gate`, which goes with a single answer alone.
const GATE: &str = "Where nothing varies: a bound to keep, such as 'throughput>=1000' or 'p99<=20ms' (exit 3 if breached); may be \
                    repeated";

/// Flags of `nstar experiment`.
#[derive(Debug, Args)]
pub struct Experiment {
    /// The experiment (.toml)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How it is run here.
    #[command(flatten)]
    pub conditions: Conditions,
}

/// How an experiment is run here.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("gates", |arg| arg.help(GATE)))]
pub struct Conditions {
    /// Users, in place of the experiment's own
    #[arg(short = 'c', long, value_name = "LO..HI|LIST", value_parser = values::users_range)]
    pub users: Option<UsersRange>,
    /// Longest time per number of users, in place of the experiment's own
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
    /// A value of the experiment, in place of its own; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = values::named)]
    pub set: Vec<(String, String)>,
    /// Let the generator and the programs share all processors
    #[arg(long)]
    pub share_cores: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run file to write; the report goes beside it as .html
    #[arg(short = 'o', long, value_name = "FILE", default_value = "run.json")]
    pub output: PathBuf,
    /// Go on with an experiment that was interrupted: trials that were made are not made again
    #[arg(long)]
    pub resume: bool,
    /// Whether each variant is profiled once.
    #[command(flatten)]
    pub profile: Profile,
    /// Where the answer goes.
    #[command(flatten)]
    pub show: Output,
}
