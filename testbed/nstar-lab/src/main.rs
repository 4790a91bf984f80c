//! The `nstar-lab` program.

fn main() -> std::process::ExitCode {
    nstar_lab::main()
}
