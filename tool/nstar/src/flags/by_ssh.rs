//! Flags that say how agents are run on hosts that ssh reaches.

use clap::Args;

use crate::exit::Failure;

/// How agents are run on hosts that ssh reaches.
#[derive(Debug, Clone, Copy, Args)]
pub struct BySsh {
    /// With --observe or --generator ssh://..: run the agent there as root, through `sudo -n`
    #[arg(long)]
    pub sudo: bool,
    /// With --observe or --generator ssh://..: leave the copy of nstar there, in the cache of the user, so that the next start
    /// is quick
    #[arg(long)]
    pub keep_copy: bool,
}

impl BySsh {
    /// The plan that they make, where `any` host is reached so.
    ///
    /// # Errors
    /// If there is none.
    pub fn plan(self, any: bool) -> Result<agent::BySsh, Failure> {
        match self {
            _ if any => Ok(agent::BySsh { with_sudo: self.sudo, keep_copy: self.keep_copy }),
            Self { sudo: true, .. } => Err(Failure::usage(
                "--sudo goes with --observe or --generator ssh://[USER@]HOST; write sudo into a command yourself",
            )),
            Self { keep_copy: true, .. } => Err(Failure::usage(
                "--keep-copy goes with --observe or --generator ssh://[USER@]HOST: nothing else takes a copy along",
            )),
            _ => Ok(agent::BySsh::default()),
        }
    }
}
