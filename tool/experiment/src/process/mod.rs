//! The programs of an experiment: started under a guard, known to be ready, stopped with all that they started.

pub(crate) mod command;
pub mod guard;
pub(crate) mod limit;
pub mod link;
pub(crate) mod program;
pub(crate) mod ready;
pub(crate) mod running;

use analysis::comparison::LeftOutCause;

/// Why a program or a command did not do its work.
#[derive(Debug)]
pub enum Trouble {
    /// The user asked to stop.
    Interrupted,
    /// What was in the way.
    Cause(LeftOutCause),
}

impl<C: Into<LeftOutCause>> From<C> for Trouble {
    fn from(cause: C) -> Self {
        Self::Cause(cause.into())
    }
}
