//! Flags that say where load is made, if not here.

use agent::Endpoint;
use clap::{ArgGroup, Args, ValueEnum};
use sweep::fleet::{self, Generators, OnLoss};

use super::Drive;

/// Flags that have load made elsewhere.
const ELSEWHERE: &[&str] = if cfg!(feature = "fleet") { &["generators", "fleet"] } else { &["generators"] };

/// Where load is made, if not by this process.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("elsewhere").args(ELSEWHERE).multiple(true))]
pub struct Generate {
    /// Make the load elsewhere, through a command that runs `nstar agent` there, such as 'ip netns exec blue nstar agent', or
    /// through ssh://[USER@]HOST[:PORT], which takes nstar along; repeat it for several hosts, which share the users; `here`
    /// is this host
    #[arg(long = "generator", value_name = "COMMAND|SSH-URL|here", value_parser = fleet::endpoint)]
    pub generators: Vec<Endpoint>,
    /// When one of the generators is lost: measure again without it what was being measured, or end the run with the steps
    /// that are complete
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = LostGenerator::Repeat, requires = "elsewhere")]
    pub lost_generator: LostGenerator,
    /// A fleet to make it with.
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::Fleet,
}

/// What happens when one of several generators is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LostGenerator {
    /// What was being measured is measured again without it.
    Repeat,
    /// The run ends with the steps that are complete.
    End,
}

impl From<LostGenerator> for OnLoss {
    fn from(lost: LostGenerator) -> Self {
        match lost {
            LostGenerator::Repeat => OnLoss::Repeat,
            LostGenerator::End => OnLoss::End,
        }
    }
}

impl Generate {
    /// Whether load is made elsewhere.
    pub fn is_elsewhere(&self) -> bool {
        self.has_fleet() || !self.generators.is_empty()
    }

    #[cfg(feature = "fleet")]
    fn has_fleet(&self) -> bool {
        self.fleet.fleet.is_some()
    }

    #[cfg(not(feature = "fleet"))]
    fn has_fleet(&self) -> bool {
        false
    }

    /// Whether any is reached by ssh.
    pub fn is_by_ssh(&self) -> bool {
        self.generators.iter().any(|endpoint| matches!(endpoint, Endpoint::Ssh(_)))
    }

    /// The plan that they make, for a load made like this.
    pub fn plan(&self, drive: &Drive, by_ssh: agent::BySsh) -> Generators {
        Generators {
            endpoints: self.generators.clone(),
            threads: drive.threads.map(u32::from),
            on_loss: self.lost_generator.into(),
            by_ssh,
            fewer_users: drive.fewer_users,
        }
    }
}
