//! One module per command; each reads as its stages in order.

mod database;
mod lab;
mod reach;
mod serve;
mod share;

use nstar::exit::{Exit, Failure};

use crate::flags::{Command, Flags};

/// Runs a command.
pub(crate) fn run(flags: &Flags) -> Result<Exit, Failure> {
    match &flags.command {
        None => lab::run(&flags.lab),
        Some(Command::Run(flags)) => lab::run(flags),
        Some(Command::Serve(flags)) => serve::run(flags),
        Some(Command::Share(flags)) => share::run(flags),
    }
}
