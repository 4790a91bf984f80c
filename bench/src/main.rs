//! Measures nstar beside what people would use instead, in one run, as ratios.
//!
//! Usage: `bench [--rounds N] [--seconds S] [CASE ...]`, `bench --list`. Programs take turns, A B A B. The work of each
//! is divided by the CPU time that the operating system accounts to it, and a ratio is taken within each round.

mod cases;
mod programs;
mod tools;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use cases::Measure;
use tools::{
    effort::{Effort, Result},
    table,
    workspace::Workspace,
};

/// The command line.
struct Options {
    effort: Effort,
    list: bool,
    /// Names of the cases to run; all but long ones if empty.
    wanted: Vec<String>,
}

fn main() -> ExitCode {
    match options(env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options { effort: Effort { rounds: 5, seconds: 1 }, list: false, wanted: Vec::new() };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a number"));
        match arg.as_str() {
            "--rounds" => options.effort.rounds = value()?.parse()?,
            "--seconds" => options.effort.seconds = value()?.parse()?,
            "--list" => options.list = true,
            _ if cases::ALL.iter().any(|case| case.name == arg) => options.wanted.push(arg),
            _ => return Err(format!("no case '{arg}'; see --list").into()),
        }
    }
    if options.effort.rounds == 0 || options.effort.seconds == 0 {
        return Err("--rounds and --seconds start at 1".into());
    }
    Ok(options)
}

fn run(options: &Options) -> Result<()> {
    if options.list {
        let line = |case: &cases::Case| format!("{:<14} {}\n", case.name, case.title);
        // Who reads only the first lines closes the pipe, which is no fault.
        let _ = io::stdout().write_all(cases::ALL.iter().map(line).collect::<String>().as_bytes());
        return Ok(());
    }
    let workspace = Workspace::new()?;
    let wanted = |case: &&cases::Case| match options.wanted.as_slice() {
        [] => !case.is_long(),
        named => named.iter().any(|name| name == case.name),
    };
    let (mut rows, mut grids, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for case in cases::ALL.iter().filter(wanted) {
        eprintln!("{} ...", case.title);
        let measured = match case.measure {
            Measure::Ratios(measure) => {
                measure(&workspace, options.effort).map(|measured| rows.extend(measured))
            }
            Measure::Figures(measure) => {
                measure(&workspace, options.effort).map(|grid| grids.push((case.title, grid)))
            }
        };
        if let Err(error) = measured {
            failures.push(format!("{}: {error}", case.title));
        }
    }
    if !rows.is_empty() {
        print!("{}", table::render(&rows));
    }
    grids.iter().for_each(|(title, grid)| print!("\n{title}\n\n{}", grid.render()));
    failures.iter().for_each(|failure| println!("not measured: {failure}"));
    Ok(())
}
