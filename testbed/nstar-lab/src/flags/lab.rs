//! Flags of an experiment.

use clap::Args;
use nstar::flags::Conditions;

#[derive(Debug, Args)]
pub(crate) struct Lab {
    /// An experiment: a name from --list, or a file (.toml)
    #[arg(default_value = crate::published::DEFAULT)]
    pub experiment: String,
    /// List the published experiments
    #[arg(long)]
    pub list: bool,
    /// Concurrency model of the systems, unless the experiment varies it [default: epoll]
    #[arg(long, value_name = "MODEL")]
    pub engine: Option<engine::Model>,
    #[command(flatten)]
    pub conditions: Conditions,
}
