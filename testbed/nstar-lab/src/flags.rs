//! The command line as typed: every flag, its default, and its one line of help.

use clap::{Parser, Subcommand};

use crate::{
    commands::{
        health::Health,
        lab::Lab,
        share::Share,
        steps::{AwaitPeers, Fill, Prove, ServeDatabase},
    },
    systems::Serve,
};

/// The testbed of nstar: experiments on five systems, and the systems themselves.
///
/// With no command it runs an experiment, as `run` does; with no name either, it starts the authenticated file server
/// and sweeps it, which takes about a minute.
#[derive(Debug, Parser)]
#[command(name = "nstar-lab", version, max_term_width = 100, after_help = nstar::flags::EXIT_CODES)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub lab: Lab,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment: start its systems, measure every variant, report
    Run(Box<Lab>),
    /// Run one of the systems
    #[command(subcommand)]
    Serve(Serve),
    /// Share files with other peers: search, get, list, remove, key
    #[command(subcommand)]
    Share(Share),
    /// Ask a server whether it is up; exits 1 if not
    Health(Health),
    /// Run an empty database server, for an experiment
    Database(ServeDatabase),
    /// Fill a database with data before a load, for an experiment
    #[command(subcommand)]
    Fill(Fill),
    /// Prove that a system kept its promises, for an experiment
    #[command(subcommand)]
    Prove(Prove),
    /// Wait until peers find each other's files, for an experiment
    AwaitPeers(AwaitPeers),
    /// Stand guard over a program of an experiment
    #[command(hide = true)]
    Guard,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        super::Flags::command().debug_assert();
    }
}
