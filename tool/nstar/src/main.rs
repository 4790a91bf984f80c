//! The command line: flags, a validated plan, stages in order. Nothing else.

mod commands;
mod exit;
mod flags;
mod gate;
mod interrupt;
mod output;
mod progress;
mod values;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let flags = flags::Flags::parse();
    match commands::run(flags.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("nstar: {failure}");
            failure.exit().into()
        }
    }
}
