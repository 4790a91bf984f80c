//! The flag that asks where processor time goes.

use clap::Args;
use sweep::profiling::ProgramTables;

/// Whether to find where the server's processor time goes.
#[derive(Debug, Clone, Args)]
pub struct Profile {
    /// Find the function that most of each tier's processor time is spent in: sample its threads, here and wherever an agent
    /// observes (perf_event, 99 times a second), after what is measured: for 5 s more at N*, or for as long again as a load, 10 s at
    /// most. A load of a number of requests is sampled meanwhile. Tells where the threads of each tier sleep, too
    #[cfg(feature = "profile")]
    #[arg(long)]
    pub profile: bool,
}

impl Profile {
    /// What reads the tables of programs, if they are to be profiled.
    pub fn plan(&self) -> Option<ProgramTables> {
        #[cfg(feature = "profile")]
        if self.profile {
            return program_tables();
        }
        None
    }
}

/// What reads the tables of programs, where this program is built with it.
#[cfg(feature = "profile")]
pub fn program_tables() -> Option<ProgramTables> {
    Some(ProgramTables { names: symbols::names, unwinder: symbols::unwinder })
}

/// Nothing: this program is built without what reads the tables of programs.
#[cfg(not(feature = "profile"))]
pub fn program_tables() -> Option<ProgramTables> {
    None
}
