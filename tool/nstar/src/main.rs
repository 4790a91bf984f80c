//! The `nstar` program.

use nstar::{commands, exit, flags::Flags};

fn main() -> std::process::ExitCode {
    exit::end(commands::run(Flags::read().command))
}
