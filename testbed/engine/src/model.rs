//! Which concurrency model to run, by name.

use std::{fmt, str::FromStr};

/// A concurrency model this build can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// One thread per connection; reads and writes block.
    Threads,
    /// A fixed number of threads, and a bounded queue of connections that wait for one.
    Pool,
    /// One process per connection, forked when it comes.
    Processes,
    /// A fixed number of processes, forked beforehand, that accept for themselves.
    Prefork,
    /// Loops that try every socket somebody waits for again and again, without reading readiness anywhere.
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

impl Model {
    /// Every model, in the order they are listed to people.
    pub const ALL: &'static [Self] = &[
        Self::Threads,
        Self::Pool,
        Self::Processes,
        Self::Prefork,
        Self::Polling,
        Self::Select,
        Self::Poll,
        Self::Epoll,
        Self::Aio,
        Self::Uring,
    ];

    /// The name people type and read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Pool => "pool",
            Self::Processes => "processes",
            Self::Prefork => "prefork",
            Self::Polling => "polling",
            Self::Select => "select",
            Self::Poll => "poll",
            Self::Epoll => "epoll",
            Self::Aio => "aio",
            Self::Uring => "uring",
        }
    }

    /// Whether its services run in processes of their own: they share nothing with each other, nor with their starter,
    /// but [`shared`](crate::shared) memory.
    pub const fn forks(self) -> bool {
        matches!(self, Self::Processes | Self::Prefork)
    }

    /// Whether it has event loops ([`Options::loops`](crate::Options::loops)).
    pub const fn has_loops(self) -> bool {
        !matches!(self, Self::Threads | Self::Pool | Self::Processes | Self::Prefork)
    }

    /// Whether it has a fixed number of workers ([`Options::workers`](crate::Options::workers)).
    pub const fn has_workers(self) -> bool {
        matches!(self, Self::Pool | Self::Prefork)
    }

    /// Whether connections wait for a worker in a queue of its own ([`Options::queue`](crate::Options::queue)).
    pub const fn has_queue(self) -> bool {
        matches!(self, Self::Pool)
    }

    /// What somebody who runs it should know beforehand.
    pub const fn caution(self) -> Option<&'static str> {
        match self {
            Self::Polling => Some(
                "each loop keeps a processor busy while a connection is open, whether requests come or not",
            ),
            Self::Select => Some("connections whose descriptor would be 1024 or above are refused"),
            Self::Aio => Some("the C library has 20 helper threads for all reads of this process"),
            _ => None,
        }
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

/// A name that is no model of this build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no concurrency model `{given}`; choose one of: {}", names())]
pub struct UnknownModel {
    /// What was asked for.
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
