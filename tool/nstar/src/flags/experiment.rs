//! Flags of `nstar experiment`.

use std::{path::PathBuf, time::Duration};

use ::experiment::definition;
use agent::Endpoint;
use analysis::search::UsersRange;
use clap::Args;
use sweep::{
    elsewhere::Observe,
    fleet::{self, Generators},
};

use super::{BySsh, LostGenerator, Output, profile::Profile};
use crate::{exit::Failure, values};

/// What is said of `--gate`, which goes with a single answer alone.
const GATE: &str = "Where nothing varies: a bound to keep, such as 'throughput>=1000' or 'p99<=20ms' (exit 3 if breached); may be \
                    repeated";

/// Flags of `nstar experiment`.
#[derive(Debug, Args)]
pub struct Experiment {
    /// The experiment (.toml)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How it is run here.
    #[command(flatten)]
    pub conditions: Conditions,
}

/// How an experiment is run here.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("gates", |arg| arg.help(GATE)))]
pub struct Conditions {
    /// Users, in place of the experiment's own
    #[arg(short = 'c', long, value_name = "LO..HI|LIST", value_parser = values::users_range)]
    pub users: Option<UsersRange>,
    /// Longest time per number of users, in place of the experiment's own
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
    /// A value of the experiment, in place of its own; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = values::named)]
    pub set: Vec<(String, String)>,
    /// Let the generator and the programs share all processors
    #[arg(long)]
    pub share_cores: bool,
    /// Where else load is made, and observed.
    #[command(flatten)]
    pub elsewhere: Elsewhere,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run file to write; the report goes beside it as .html
    #[arg(short = 'o', long, value_name = "FILE", default_value = "run.json")]
    pub output: PathBuf,
    /// Go on with an experiment that was interrupted: trials that were made are not made again
    #[arg(long)]
    pub resume: bool,
    /// Whether each variant is profiled once.
    #[command(flatten)]
    pub profile: Profile,
    /// Where the answer goes.
    #[command(flatten)]
    pub show: Output,
}

/// Where else an experiment's load is made, and its programs observed.
#[derive(Debug, Clone, Args)]
pub struct Elsewhere {
    /// Make the load elsewhere, in place of where the experiment says: a command that runs `nstar agent` there, or
    /// ssh://[USER@]HOST[:PORT]; repeat it for several hosts, which share the users; `here` is this host
    #[arg(long = "generator", value_name = "COMMAND|SSH-URL|here", value_parser = fleet::endpoint)]
    pub generators: Vec<Endpoint>,
    /// A fleet to make it with.
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::Fleet,
    /// When one of the generators is lost: measure again without it what was being measured, or end that measurement
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = LostGenerator::Repeat)]
    pub lost_generator: LostGenerator,
    /// Observe on other hosts too, in place of where the experiment says, through a command that runs `nstar agent` there, or
    /// ssh://[USER@]HOST[:PORT]; may be repeated
    #[arg(long = "observe", value_name = "COMMAND|SSH-URL")]
    pub observe: Vec<Endpoint>,
    /// How agents are run where ssh reaches them.
    #[command(flatten)]
    pub by_ssh: BySsh,
}

impl Elsewhere {
    /// What makes the load, and what observes, in place of what this experiment says.
    ///
    /// # Errors
    /// If a flag has nothing to apply to.
    pub fn plan(&self, experiment: &definition::Experiment) -> Result<(Generators, Observe), Failure> {
        let texts = |all: &[definition::Elsewhere]| all.iter().any(|one| one.text.starts_with("ssh://"));
        let is_ssh = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Ssh(_));
        let any_by_ssh = self.generators.iter().chain(&self.observe).any(is_ssh)
            || (self.generators.is_empty() && texts(&experiment.generators))
            || (self.observe.is_empty() && texts(&experiment.observe));
        let by_ssh = self.by_ssh.plan(any_by_ssh)?;
        let is_here = self.generators.is_empty() && experiment.generators.is_empty() && !self.has_fleet();
        if self.lost_generator != LostGenerator::Repeat && is_here {
            return Err(Failure::usage("--lost-generator goes with --generator"));
        }
        let generators = Generators {
            endpoints: self.generators.clone(),
            on_loss: self.lost_generator.into(),
            by_ssh,
            ..Generators::default()
        };
        Ok((generators, Observe { endpoints: self.observe.clone(), by_ssh }))
    }

    #[cfg(feature = "fleet")]
    fn has_fleet(&self) -> bool {
        self.fleet.fleet.is_some()
    }

    #[cfg(not(feature = "fleet"))]
    fn has_fleet(&self) -> bool {
        false
    }

    /// Whether all of the load is made on hosts that ssh reaches or by a fleet, and none by what is started here.
    pub fn is_on_other_hosts(&self, experiment: &definition::Experiment) -> bool {
        if self.has_fleet() || !self.generators.is_empty() {
            return self.generators.iter().all(|endpoint| matches!(endpoint, Endpoint::Ssh(_)));
        }
        let all = &experiment.generators;
        !all.is_empty() && all.iter().all(|one| one.text.starts_with("ssh://"))
    }
}
