//! What happens during a run, as it happens.

use std::fmt;

use analysis::run::Step;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// Preparation.
    Working(String),
    /// Something the person should know.
    Note(String),
    /// A number of users is being measured.
    StepBegun {
        /// How many.
        users: u32,
    },
    /// A number of users has been measured.
    StepDone(Box<Step>),
}

/// Receives what happens.
pub trait Listener {
    /// Called for each event, between measurements and never during one.
    fn on(&mut self, event: &Event);
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Working(text) | Event::Note(text) => f.write_str(text),
            Event::StepBegun { users } => write!(f, "measuring {users} users"),
            Event::StepDone(step) => write!(
                f,
                "{:>6} users  {:>10.0} req/s  {:>9.0} us",
                step.users, step.throughput_per_s, step.response_time_us.mean
            ),
        }
    }
}
