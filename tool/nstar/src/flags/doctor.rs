//! Flags of `nstar doctor`.

use std::path::PathBuf;

use agent::Endpoint;
use clap::Args;

use super::BySsh;
use crate::{exit::Failure, values::Processors};

/// Flags of `nstar doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The server, if it runs on this host or where --observe looks: its processes are looked at too
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Look at the server's host too, through a command that runs `nstar agent` there, such as 'docker exec -i web nstar agent',
    /// or through ssh://[USER@]HOST[:PORT], which takes nstar along; repeat it for several hosts
    #[arg(long = "observe", value_name = "COMMAND|SSH-URL")]
    pub endpoints: Vec<Endpoint>,
    /// How agents are run where ssh reaches them.
    #[command(flatten)]
    pub by_ssh: BySsh,
    /// Processors that the generator will be given, as in nstar sweep --cpus
    #[arg(long, value_name = "LIST", value_parser = Processors::parse)]
    pub cpus: Option<Processors>,
    /// Change the kernel settings of this host that would spoil a measurement (as root): shows what would be set, asks, writes a
    /// script that puts it back, and sets it
    #[arg(long)]
    pub apply: bool,
    /// Do not ask: needed where there is no terminal
    #[arg(short, long, requires = "apply")]
    pub yes: bool,
    /// Put back what --apply set
    #[arg(long, conflicts_with_all = ["apply", "url", "cpus", "endpoints"])]
    pub undo: bool,
    /// The script that --apply writes and --undo carries out [default: nstar/undo-doctor.sh in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub undo_script: Option<PathBuf>,
    /// Print what was found as JSON on stdout instead of text
    #[arg(short = 'j', long, conflicts_with_all = ["apply", "undo"])]
    pub json: bool,
}

impl Doctor {
    /// Where to look besides this host.
    ///
    /// # Errors
    /// If a flag about ssh has nothing to apply to.
    pub fn observe(&self) -> Result<sweep::elsewhere::Observe, Failure> {
        let any = self.endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Ssh(_)));
        Ok(sweep::elsewhere::Observe { endpoints: self.endpoints.clone(), by_ssh: self.by_ssh.plan(any)? })
    }
}
