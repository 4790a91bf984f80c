//! Flags that say how often to measure.

use clap::Args;

/// The most repeats of one command.
const REPEATS_MAX: i64 = 1_000;

/// How often to measure.
#[derive(Debug, Args)]
pub struct Repeat {
    /// Sweep so many times, each into a run file of its own (run-1.json, run-2.json, ..), for nstar compare
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=REPEATS_MAX), conflicts_with = "json")]
    pub repeats: Option<u16>,
    /// Before each repeat, restart the server by this command, which sh runs; it may leave the server behind in the background
    #[arg(long, value_name = "COMMAND", requires = "repeats")]
    pub restart: Option<String>,
}
