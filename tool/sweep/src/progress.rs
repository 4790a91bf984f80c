//! What happens during a run, as it happens.

use std::net::SocketAddr;

use analysis::run::{DatabaseTrouble, Processes, SocketsUnread, Step};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A server answered the first request with a status that counts as an error.
    UnexpectedStatus {
        /// Its address, where there are several.
        server: Option<SocketAddr>,
        /// The status.
        status: u16,
    },
    /// The response of a server to the first request has no value for the scenario's `keep`.
    NothingToKeep {
        /// Its address, where there are several.
        server: Option<SocketAddr>,
    },
    /// Less is known of the sockets of a network namespace than of others.
    SocketsUnread {
        /// The namespace, and the reason.
        reason: SocketsUnread,
        /// How many more namespaces there are of which less is known.
        others: u64,
    },
    /// The database does not report all of its locks.
    DatabaseUnwatched {
        /// Its name in reports, without credentials.
        database: String,
        /// The reason.
        reason: DatabaseTrouble,
    },
    /// A number of users is being measured.
    StepBegun {
        /// How many.
        users: u32,
    },
    /// A number of users has been measured.
    StepDone(Box<Step>),
    /// An experiment tells one explanation from another.
    TellingApart {
        /// How many users pause for random times, compared with one.
        users: u32,
    },
    /// The processor time of the server is being sampled.
    Profiling {
        /// With how many users.
        users: u32,
    },
    /// A tier is being slowed, to test the verdict.
    Slowing {
        /// Its processes.
        processes: Processes,
    },
}

/// Receives what happens.
pub trait Listener {
    /// Called for each event, between measurements and never during one.
    fn on(&mut self, event: &Event);
}
