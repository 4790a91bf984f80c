//! Flags of `nstar compare` and `nstar history`.

use std::path::PathBuf;

use clap::Args;

use super::CiFiles;
use crate::gate::ChangeGate;

/// Flags of `nstar compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// A run file before and one after; with --after, all of them are before. Or two comparison files, or two variants of one:
    /// FILE#VARIANT
    #[arg(value_name = "FILE", required = true)]
    pub before: Vec<PathBuf>,
    /// Run files after
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub after: Vec<PathBuf>,
    /// A bound on the change of a figure, such as 'throughput>-3%' or 'p99<+10%' (exit 3 if breached, 4 if not decided); may be
    /// repeated
    #[arg(long = "gate", value_name = "GATE")]
    pub gates: Vec<ChangeGate>,
    /// Compare runs of different loads all the same
    #[arg(long)]
    pub anyway: bool,
    /// Page to write, HTML [default: none]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the comparison as JSON on stdout instead of text
    #[arg(short = 'j', long)]
    pub json: bool,
    /// What CI shows.
    #[command(flatten)]
    pub ci: CiFiles,
}

/// Flags of `nstar history`.
#[derive(Debug, Args)]
pub struct History {
    /// Folder of run files; other files in it are left out
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Page to write, HTML [default: none]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the history as JSON on stdout instead of text
    #[arg(short = 'j', long)]
    pub json: bool,
    /// File to append a summary in Markdown to, such as "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Exit 3 if, of the load that was measured last, throughput fell or CPU time per request rose with one of the last RUNS runs
    /// (10 if no number is given), and stayed so
    #[arg(
        long,
        value_name = "RUNS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub fail_on_change: Option<u32>,
}
