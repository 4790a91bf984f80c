//! What happens during a run, as it happens.

use std::{net::SocketAddr, path::PathBuf};

use analysis::{
    doctor::Fault,
    run::{DatabaseTrouble, HostName, Resource, Slowable, SocketsUnread, Step},
    search::outlook::{Purpose, Settling, SoFar, TimeOf},
};

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
    /// A server answered the first request with a redirect, which counts as success and is not followed.
    Redirected {
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
    /// A setting of a host changes the figures. Told before the load, of what matters most.
    Advice {
        /// The host.
        on: HostName,
        /// What it is.
        fault: Fault,
    },
    /// Less is known of the sockets of a network namespace than of others.
    SocketsUnread {
        /// The host that it is of.
        on: HostName,
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
        /// What that decides; `None` in a load, which decides nothing.
        purpose: Option<Purpose>,
        /// The time of the search; `None` in a load.
        time: Option<TimeOf>,
    },
    /// How a measurement comes along. Told to listeners that follow closely.
    UnderWay(Box<UnderWay>),
    /// A number of users has been measured.
    StepDone(Box<Step>),
    /// What all complete measurements come to. Told after each, to listeners that follow closely.
    SoFar(Box<SoFar>),
    /// What the resources did. Told to listeners that follow closely.
    Resources {
        /// The users of the measurement that is complete now; `None` while it is under way.
        complete: Option<u32>,
        /// By falling utilisation.
        resources: Vec<Resource>,
    },
    /// The search is over. What follows, if anything, takes no part in its time.
    Searched,
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
        /// The tier.
        tier: Slowable,
    },
    /// A limit that was lowered to slow a tier is still lower. Only whoever runs nstar can mend that.
    NotPutBack(NotPutBack),
}

/// A limit that was lowered and could not be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPutBack {
    /// A CPU quota.
    Quota {
        /// The file that holds it.
        file: PathBuf,
        /// What it held.
        held: String,
    },
    /// The rate at which a link sends.
    Rate {
        /// Its interface.
        interface: String,
        /// The command of a shell that puts it back.
        command: String,
    },
}

/// How the measurement under way comes along.
#[derive(Debug, Clone, Copy)]
pub struct UnderWay {
    /// How far it has settled.
    pub settling: Settling,
    /// The time of the search.
    pub time: TimeOf,
}

/// Receives what happens.
pub trait Listener {
    /// Called for each event, in the thread that measures: between measurements, and for a listener that follows closely
    /// during them too. Load goes on meanwhile, so this must not take long.
    fn on(&mut self, event: &Event);

    /// Whether to tell also how measurements come along, which takes a little processor time.
    fn follows_closely(&self) -> bool {
        false
    }
}
