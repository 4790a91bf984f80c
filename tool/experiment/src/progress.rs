//! What happens during an experiment, as it happens.

use std::time::Duration;

use analysis::{comparison::LeftOut, run::Proof};
use sweep::{cores::Split, fleet::Lost};

pub use crate::trials::{FREE_SWEEP, Forecast};

/// Something that happened around the loads and sweeps of an experiment.
#[derive(Debug, Clone)]
pub enum Event {
    /// The processors are shared out; `None`: generator and programs share all of them.
    Placed(Option<Split>),
    /// Files of random bytes are being made.
    MakingFiles {
        /// How many.
        files: u64,
        /// Their size together.
        bytes: u64,
    },
    /// Programs are being started: names, and how many of each.
    Starting(Vec<(String, usize)>),
    /// Commands or loads prepare what is measured.
    Preparing,
    /// How many trials there will be, besides those made before, and how long they take; told before the first.
    Planned(Forecast),
    /// The time that the experiment gives itself is too short for its trials, which are made nevertheless.
    TooShort {
        /// What they need at least.
        needed: Duration,
    },
    /// So many trials were made before, and are not made again.
    GoesOn(u32),
    /// A trial begins.
    TrialBegun {
        /// Its name.
        name: String,
        /// Its number, from 1.
        number: u32,
        /// What is still to come, this trial included.
        ahead: Forecast,
    },
    /// The fleet of a trial was lost, and the trial with it, which is made again.
    MeasuredAgain {
        /// What was lost.
        lost: Lost,
        /// How often the trial was made again, this time included.
        times: u32,
    },
    /// A program runs without a limit that it should have.
    Unlimited(LeftOut),
    /// The programs are asked to prove that they kept their promises.
    Proving {
        /// Whether the measurement before was interrupted.
        interrupted: bool,
    },
    /// The order is settled before the time is spent, so the experiment ends early.
    Settled {
        /// How much of its time is left.
        left: Duration,
    },
    /// The programs have proved that they kept their promises, or that they did not.
    Proved(Proof),
    /// Something will not be measured.
    LeftOut(LeftOut),
}

/// Receives what happens.
pub trait Listener: sweep::progress::Listener {
    /// Called for each event, between measurements and never during one.
    fn on_experiment(&mut self, event: &Event);
}
