//! The `nstar-lab` program: experiments, the systems as servers, file sharing.

mod commands;
mod flags;
mod values;

use clap::Parser;
use nstar::exit;

fn main() -> std::process::ExitCode {
    exit::end(commands::run(&flags::Flags::parse()))
}
