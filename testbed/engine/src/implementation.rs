//! What every concurrency model provides.

use crate::{error::EngineError, options::Options, server::Server, service::Factory};

/// A concurrency model: its description, and how a server of it starts.
pub(crate) trait Implementation {
    const DESCRIPTION: Description;

    /// Starts a server whose services `factory` makes.
    ///
    /// # Errors
    /// When the address cannot be bound, the system refuses what the model needs, or the factory fails.
    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError>;
}

/// What a model is called, which options it uses, and what its users should know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// Services run in processes of their own.
    pub(crate) forks: bool,
    /// Uses [`Options::loops`].
    pub(crate) has_loops: bool,
    /// Uses [`Options::workers`].
    pub(crate) has_workers: bool,
    /// Uses [`Options::queue`] and the options for its overload.
    pub(crate) has_queue: bool,
    /// Logged as a warning at every start.
    pub(crate) caution: Option<&'static str>,
}

impl Description {
    /// A model without loops, workers or a queue, in this process.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self { name, forks: false, has_loops: false, has_workers: false, has_queue: false, caution: None }
    }
}
