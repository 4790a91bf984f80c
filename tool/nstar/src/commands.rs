//! One module per command; each reads as its stages in order.

mod database;
mod lab;
mod load;
mod plan;
mod reach;
mod report;
mod serve;
mod share;
mod sweep;

use crate::{
    exit::{Exit, Failure},
    flags::Command,
};

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Lab(flags) => lab::run(&flags),
        Command::Sweep(flags) => sweep::run(&flags),
        Command::Load(flags) => load::run(&flags),
        Command::Serve(flags) => serve::run(&flags),
        Command::Share(flags) => share::run(&flags),
        Command::Report(flags) => report::run(&flags),
    }
}
