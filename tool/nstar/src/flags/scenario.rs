//! Flags of `nstar scenario`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use import::Curl;

use crate::values::{self, Unshown};

/// What to do with a scenario.
#[derive(Debug, Subcommand)]
pub enum ScenarioCommand {
    /// Make a scenario file of a recording of a browser (HAR), an OpenAPI description or a curl command line
    Import(Import),
    /// Send each request of a scenario once, in order, and show what came
    Check(Check),
}

/// Flags of `nstar scenario import`.
#[derive(Debug, Args)]
pub struct Import {
    /// A recording of a browser (HAR), a description of an API (OpenAPI 3), or a curl command line; `-` for stdin
    #[arg(value_name = "FILE|-", required_unless_present = "from_curl")]
    pub file: Option<PathBuf>,
    /// A curl command line, as browsers copy it (as cURL, bash)
    #[arg(long, value_name = "COMMAND", conflicts_with = "file", value_parser = Unshown::<Curl>::default())]
    pub from_curl: Option<Curl>,
    /// The server: of a recording, the one whose requests are kept [default: the one that gets most of them; of a description,
    /// its first]
    #[arg(long, value_name = "URL", conflicts_with = "from_curl")]
    pub base: Option<String>,
    /// Scenario file to write, which must not be there yet [default: stdout]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
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
