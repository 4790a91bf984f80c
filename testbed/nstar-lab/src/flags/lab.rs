//! Flags of an experiment.

use std::{path::PathBuf, time::Duration};

use analysis::search::UsersRange;
use clap::Args;

use nstar::{flags::Output, values};

#[derive(Debug, Args)]
pub(crate) struct Lab {
    /// An experiment: a name from --list, or a file (.toml)
    #[arg(default_value = experiment::library::DEFAULT)]
    pub experiment: String,
    /// List the published experiments
    #[arg(long)]
    pub list: bool,
    /// Users, in place of the experiment's own
    #[arg(short = 'c', long, value_name = "LO..HI|LIST", value_parser = values::users_range)]
    pub users: Option<UsersRange>,
    /// Longest time per number of users, in place of the experiment's own
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
    /// Concurrency model of the systems, unless the experiment varies it [default: epoll]
    #[arg(long, value_name = "MODEL")]
    pub engine: Option<engine::Model>,
    /// Let the generator and the systems share all processors
    #[arg(long)]
    pub share_cores: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run file to write; the report goes beside it as .html
    #[arg(short = 'o', long, value_name = "FILE", default_value = "run.json")]
    pub output: PathBuf,
    #[command(flatten)]
    pub show: Output,
}
