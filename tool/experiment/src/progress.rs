//! What happens during an experiment, as it happens.

use analysis::{comparison::LeftOut, run::Proof};
use sweep::cores::Split;

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
    /// A trial begins, by name.
    TrialBegun(String),
    /// A program runs without a limit that it should have.
    Unlimited {
        /// The program.
        program: String,
        /// The reason.
        why: String,
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
