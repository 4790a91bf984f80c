//! Runs campaigns: `crash-tests power-cut`, `crash-tests kill`.

use std::{path::PathBuf, process::ExitCode, time::Instant};

use clap::{Parser, ValueEnum};
use crash_tests::{Campaign, Crash, Kind, disk};

/// Crashes servers under load, and looks whether they keep what they acknowledged
#[derive(Debug, Parser)]
struct Flags {
    /// How they crash: their disk loses power (needs root and /dev/fuse), or kill -9
    crash: How,
    /// How many times each system crashes
    #[arg(long, value_name = "N", default_value_t = 500)]
    times: u64,
    /// Systems to try [default: all]
    #[arg(long, value_name = "SYSTEM", value_delimiter = ',')]
    systems: Vec<Kind>,
    /// Seed of the first 25 crashes; those after them have the next ones [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The program that serves
    #[arg(long, value_name = "FILE", default_value = "target/release/nstar-lab")]
    program: PathBuf,
    /// Folder with a configuration of each server, such as /etc/nstar; the test says itself where data are [default: none]
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum How {
    PowerCut,
    Kill,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    if matches!(flags.crash, How::PowerCut) && !disk::is_possible() {
        eprintln!("error: no disk can be mounted here; run as root, where /dev/fuse is");
        return ExitCode::from(2);
    }
    let systems = if flags.systems.is_empty() { Kind::ALL.to_vec() } else { flags.systems.clone() };
    let whole: Vec<bool> = systems.into_iter().map(|system| try_one(&flags, system)).collect();
    if whole.into_iter().all(|whole| whole) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tries one system, and prints what came of it. Returns whether it kept everything.
fn try_one(flags: &Flags, system: Kind) -> bool {
    let crash = match flags.crash {
        How::PowerCut => Crash::PowerCut,
        How::Kill => Crash::Kill,
    };
    let seed = flags.seed.unwrap_or_else(|| fastrand::u64(..1_000_000_000));
    let (program, config) = (flags.program.clone(), flags.config.clone());
    let campaign = Campaign { program, system, config, crash, crashes: flags.times, seed };
    let (name, began) = (system.name(), Instant::now());
    eprintln!("{name}: from seed {seed} on");
    let outcome = campaign.run(|so_far| eprintln!("{name}: {} crashes", so_far.crashes));
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("error: {name}: {error}; is {} the program?", flags.program.display());
            return false;
        }
    };
    println!(
        "{name}: {} crashes ({} at the start, {} soon after a kill -9), {} changes acknowledged, {} lost or wrong, {:.0} s",
        outcome.crashes,
        outcome.starting,
        outcome.killed_before,
        outcome.acknowledged,
        outcome.faults.len(),
        began.elapsed().as_secs_f64()
    );
    outcome.faults.iter().for_each(|fault| println!("  {fault}"));
    outcome.faults.is_empty()
}
