//! Flags of `nstar scenario`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use crate::values;

/// What to do with a scenario.
#[derive(Debug, Subcommand)]
pub enum ScenarioCommand {
    /// Send each request of a scenario once, in order, and show what came
    Check(Check),
}

/// Flags of `nstar scenario check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The scenario file
    #[arg(value_name = "SCENARIO")]
    pub file: PathBuf,
    /// Base URL, in place of the scenario's own
    #[arg(value_name = "URL")]
    pub base: Option<String>,
    /// Do not check the server's certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// A request that takes longer counts as failed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub timeout: Duration,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
