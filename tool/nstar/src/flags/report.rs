//! Flags of `nstar report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
}
