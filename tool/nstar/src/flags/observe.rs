//! Flags that say where else to observe.

use agent::Endpoint;
use clap::Args;

use super::Generate;
use crate::exit::Failure;

/// Where to observe besides this host.
#[derive(Debug, Args)]
pub struct Observe {
    /// Observe where the server is, through a command that runs `nstar agent` there, such as 'docker exec -i web nstar agent',
    /// or through ssh://[USER@]HOST[:PORT], which takes nstar along; repeat it for several hosts
    #[arg(long = "observe", value_name = "COMMAND|SSH-URL")]
    pub endpoints: Vec<Endpoint>,
    /// With --observe or --generator ssh://..: run the agent there as root, through `sudo -n`
    #[arg(long)]
    pub sudo: bool,
}

impl Observe {
    /// The plan that they make, beside a load that is made like this.
    ///
    /// # Errors
    /// If `--sudo` has nothing to apply to.
    pub fn plan(&self, generate: &Generate) -> Result<sweep::elsewhere::Observe, Failure> {
        let by_ssh = self.endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Ssh(_)));
        if self.sudo && !by_ssh && !generate.is_by_ssh() {
            return Err(Failure::usage(
                "--sudo goes with --observe or --generator ssh://[USER@]HOST; write sudo into a command yourself",
            ));
        }
        Ok(sweep::elsewhere::Observe { endpoints: self.endpoints.clone(), with_sudo: self.sudo })
    }
}
