//! Flags of `nstar doctor`.

use std::path::PathBuf;

use clap::Args;

use crate::values::Processors;

/// Flags of `nstar doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The server, if it runs on this host: its processes are looked at too
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Processors that the generator will be given, as in nstar sweep --cpus
    #[arg(long, value_name = "LIST", value_parser = Processors::parse)]
    pub cpus: Option<Processors>,
    /// Mend what settings of the kernel mend (as root): shows what would be set, asks, writes a script that puts it back, sets it
    #[arg(long)]
    pub apply: bool,
    /// Do not ask: needed where there is no terminal
    #[arg(short, long, requires = "apply")]
    pub yes: bool,
    /// Put back what --apply set
    #[arg(long, conflicts_with_all = ["apply", "url", "cpus"])]
    pub undo: bool,
    /// The script that --apply writes and --undo carries out [default: nstar/undo-doctor.sh in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub undo_script: Option<PathBuf>,
}
