//! The `nstar` program.

use clap::Parser;
use nstar::{commands, exit, flags::Flags};

fn main() -> std::process::ExitCode {
    exit::end(commands::run(Flags::parse().command))
}
