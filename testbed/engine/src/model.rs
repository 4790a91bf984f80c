//! The list of concurrency models, and how a server of any of them starts.
//!
//! A new model is a file that implements [`Implementation`] and an entry in this list.

use std::{fmt, str::FromStr};

use crate::{
    blocking::{pool::Pool, threads::Threads},
    completion::{aio::Aio, uring::Uring},
    error::EngineError,
    implementation::{Description, Implementation},
    options::Options,
    process::{prefork::Prefork, processes::Processes},
    readiness::{epoll::Epoll, poll::Poll, polling::Polling, select::Select},
    server::Server,
    service::Factory,
};

/// Makes the public enum and its dispatch out of a list of implementations.
macro_rules! models {
    ($($(#[$doc:meta])* $model:ident,)+) => {
        /// A concurrency model.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Model {
            $($(#[$doc])* $model,)+
        }

        impl Model {
            /// Every model, in the order in which they are listed.
            pub const ALL: &'static [Self] = &[$(Self::$model,)+];

            const fn description(self) -> &'static Description {
                match self {
                    $(Self::$model => &<$model as Implementation>::DESCRIPTION,)+
                }
            }
        }

        fn dispatch<F: Factory>(model: Model, options: &Options, factory: F) -> Result<Server, EngineError> {
            match model {
                $(Model::$model => <$model as Implementation>::start(options, factory),)+
            }
        }
    };
}

models! {
    /// One thread per connection; reads and writes block.
    Threads,
    /// A fixed number of threads, and a bounded queue of connections that wait for one.
    Pool,
    /// One process per connection, forked when it arrives.
    Processes,
    /// A fixed number of processes, forked beforehand, which accept for themselves.
    Prefork,
    /// Loops that try every awaited socket again and again, without asking which is ready.
    Polling,
    /// Event loops over select(2), for descriptors below 1 024.
    Select,
    /// Event loops over poll(2).
    Poll,
    /// Event loops over epoll(7), edge-triggered, each with a listening socket of its own.
    Epoll,
    /// Loops that have the C library read, by POSIX aio_read(3), and ask aio_error(3) whether it has.
    Aio,
    /// Completion loops over io_uring(7), each with a ring and a listening socket of its own.
    Uring,
}

/// Starts a server of `model` whose services `factory` makes.
///
/// # Errors
/// When the address cannot be bound, the system refuses what the model needs, or the factory fails.
pub fn start<F: Factory>(model: Model, options: &Options, factory: F) -> Result<Server, EngineError> {
    if let Some(caution) = model.caution() {
        tracing::warn!("{model}: {caution}");
    }
    dispatch(model, options, factory)
}

impl Model {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// Whether its services run in processes of their own. They then share nothing with each other, nor with the
    /// process that started the server, except [`shared`](crate::shared) memory.
    pub const fn forks(self) -> bool {
        self.description().forks
    }

    /// Whether it has event loops ([`Options::loops`]).
    pub const fn has_loops(self) -> bool {
        self.description().has_loops
    }

    /// Whether it has a fixed number of workers ([`Options::workers`]).
    pub const fn has_workers(self) -> bool {
        self.description().has_workers
    }

    /// Whether it keeps a queue of connections that wait for a worker ([`Options::queue`]).
    pub const fn has_queue(self) -> bool {
        self.description().has_queue
    }

    /// What its users should know beforehand.
    pub const fn caution(self) -> Option<&'static str> {
        self.description().caution
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        let known = Self::ALL.iter().copied().find(|model| model.name() == text);
        known.ok_or_else(|| UnknownModel { given: text.to_owned() })
    }
}

/// A name that no model has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no concurrency model `{given}`; choose one of: {}", names())]
pub struct UnknownModel {
    /// The name that was given.
    pub given: String,
}

fn names() -> String {
    Model::ALL.iter().map(|model| model.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for &model in Model::ALL {
            assert_eq!(model.to_string().parse(), Ok(model));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "thread".parse::<Model>().unwrap_err();
        let names = Model::ALL.iter().map(|model| model.name()).collect::<Vec<_>>().join(", ");
        assert_eq!(
            error.to_string(),
            format!("there is no concurrency model `thread`; choose one of: {names}")
        );
    }
}
