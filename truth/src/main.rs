//! `truth`: runs the suite, one case, or one of the suite's own programs.

use std::process::ExitCode;

fn main() -> ExitCode {
    truth::command::main()
}
