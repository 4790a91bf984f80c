//! Flags that say where else to observe.

use agent::Endpoint;
use clap::Args;

use super::{BySsh, Generate};
use crate::exit::Failure;

/// Where to observe besides this host.
#[derive(Debug, Args)]
pub struct Observe {
    /// Observe where the server is, through a command that runs `nstar agent` there, such as 'docker exec -i web nstar agent',
    /// or through ssh://[USER@]HOST[:PORT], which takes nstar along; repeat it for several hosts
    #[arg(long = "observe", value_name = "COMMAND|SSH-URL")]
    pub endpoints: Vec<Endpoint>,
    /// How agents are run where ssh reaches them.
    #[command(flatten)]
    pub by_ssh: BySsh,
}

impl Observe {
    /// The plan that they make, beside a load that is made like this.
    ///
    /// # Errors
    /// If a flag about ssh has nothing to apply to.
    pub fn plan(&self, generate: &Generate) -> Result<sweep::elsewhere::Observe, Failure> {
        Ok(sweep::elsewhere::Observe { endpoints: self.endpoints.clone(), by_ssh: self.by_ssh(generate)? })
    }

    /// How agents that observe or generate are run where ssh reaches them.
    ///
    /// # Errors
    /// If a flag about ssh has nothing to apply to.
    pub fn by_ssh(&self, generate: &Generate) -> Result<agent::BySsh, Failure> {
        let any = self.endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Ssh(_)));
        self.by_ssh.plan(any || generate.is_by_ssh())
    }
}
