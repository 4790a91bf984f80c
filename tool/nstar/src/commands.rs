//! One module per command; each reads as its stages in order.

mod external;
mod load;
mod plan;
mod report;
mod sweep;

use crate::{
    exit::{Exit, Failure},
    flags::Command,
};

/// Runs a command.
///
/// # Errors
/// Why it could not do its work.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Sweep(flags) => sweep::run(&flags),
        Command::Load(flags) => load::run(&flags),
        Command::Report(flags) => report::run(&flags),
        Command::Lab(passed) => external::run(None, passed.arguments),
        Command::Serve(passed) => external::run(Some("serve"), passed.arguments),
        Command::Share(passed) => external::run(Some("share"), passed.arguments),
    }
}
