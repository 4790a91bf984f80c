//! Flags that say where load is made, if not here.

use std::str::FromStr;

use agent::{Endpoint, EndpointError};
use clap::{Args, ValueEnum};
use sweep::fleet::{Generators, OnLoss};

use super::Drive;
use crate::exit::Failure;

/// Where load is made, if not by this process.
#[derive(Debug, Args)]
pub struct Generate {
    /// Make the load elsewhere, through a command that runs `nstar agent` there, such as 'ip netns exec blue nstar agent', or
    /// through ssh://[USER@]HOST[:PORT], which takes nstar along; repeat it for several hosts, which share the users; `here`
    /// is this host
    #[arg(long = "generator", value_name = "COMMAND|SSH-URL|here", value_parser = endpoint)]
    pub generators: Vec<Endpoint>,
    /// When one of the generators is lost: measure again without it what was being measured, or end the run
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = LostGenerator::Repeat, requires = "generators")]
    pub lost_generator: LostGenerator,
}

/// What happens when one of several generators is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LostGenerator {
    /// What was being measured is measured again without it.
    Repeat,
    /// The run fails.
    End,
}

/// The word for this host.
const HERE: &str = "here";

fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    if text == HERE { Ok(Endpoint::Here) } else { Endpoint::from_str(text) }
}

impl Generate {
    /// Whether load is made elsewhere.
    pub fn is_elsewhere(&self) -> bool {
        !self.generators.is_empty()
    }

    /// The plan that they make, for a load made like this.
    ///
    /// # Errors
    /// If something is asked for that goes with a load made here.
    pub fn plan(&self, drive: &Drive) -> Result<Generators, Failure> {
        if self.is_elsewhere() && drive.fewer_users {
            return Err(Failure::usage(
                "--fewer-users goes with a load made by this process; with --generator, name fewer users (-c)",
            ));
        }
        let on_loss = match self.lost_generator {
            LostGenerator::Repeat => OnLoss::Repeat,
            LostGenerator::End => OnLoss::End,
        };
        Ok(Generators { endpoints: self.generators.clone(), threads: drive.threads.map(u32::from), on_loss })
    }
}
