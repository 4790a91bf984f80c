//! The `nstar-lab` program: experiments, the systems as servers, file sharing. A library only so that its manual is written
//! from its flags.

mod flags;
mod published;
mod systems;

/// One module per command; each reads as its stages in order.
mod commands {
    pub(crate) mod health;
    pub(crate) mod lab;
    pub(crate) mod series;
    pub(crate) mod share;
    pub(crate) mod steps;
}

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use nstar::exit::{self, Exit, Failure};

use crate::{
    commands::{health, lab, share, steps},
    flags::{Command, Flags},
};

/// The command line: every flag, with its help.
pub fn command() -> clap::Command {
    Flags::command()
}

/// Runs what the command line of this process asks for.
pub fn main() -> ExitCode {
    let words = systems::with_file(std::env::args_os().collect());
    exit::end(words.and_then(|words| run(&Flags::parse_from(words))))
}

fn run(flags: &Flags) -> Result<Exit, Failure> {
    match &flags.command {
        None => lab::run(&flags.lab),
        Some(Command::Run(flags)) => lab::run(flags),
        Some(Command::Serve(system)) => system.run(),
        Some(Command::Share(flags)) => share::run(flags),
        Some(Command::Health(flags)) => health::run(flags),
        Some(Command::Database(flags)) => steps::database_server::run(flags),
        Some(Command::Fill(steps::Fill::Bookings(flags))) => steps::fill::bookings(flags),
        Some(Command::Prove(steps::Prove::Bookings(flags))) => steps::bookings::prove(flags),
        Some(Command::AwaitPeers(flags)) => steps::peers::run(flags),
        Some(Command::Guard) => nstar::commands::experiment::guard(),
    }
}
