//! The cases: what is measured, and what it is compared with.

mod bookings;
mod file_server;
mod fleet;
mod generator;
mod hostile;
mod live;
mod many_connections;
mod models;
mod profiling;
mod registrations;
mod sharing;
mod slower_build;
mod start_up;
mod tiers;
mod uploads;
mod waiting;
mod watching;
mod why;

use crate::tools::{
    effort::{Effort, Result},
    table::{Grid, Row},
    workspace::Workspace,
};

/// Something to measure.
pub(crate) struct Case {
    pub name: &'static str,
    pub title: &'static str,
    pub measure: Measure,
}

impl Case {
    /// Whether it takes so long that it is left out unless it is named.
    pub(crate) fn is_long(&self) -> bool {
        LONG.contains(&self.name)
    }
}

const HOSTILE: &str = "hostile";
const SLOWER_BUILD: &str = "slower-build";
const PROFILING: &str = "profiling";
const LONG: [&str; 3] = [HOSTILE, SLOWER_BUILD, PROFILING];

/// How a case is measured, and what comes of it.
pub(crate) enum Measure {
    /// One comparison, or several that share servers.
    Ratios(fn(&Workspace, Effort) -> Result<Vec<Row>>),
    /// A table of its own.
    Figures(fn(&Workspace, Effort) -> Result<Grid>),
}

use Measure::{Figures, Ratios};

pub(crate) const ALL: [Case; 35] = [
    Case {
        name: "client-1k",
        title: "generator, 1 KB, 32 users, kept connections",
        measure: Ratios(generator::small_bodies),
    },
    Case {
        name: "client-waiting",
        title: "generator that mostly waits for its server, 1 KB, 32 users",
        measure: Ratios(waiting::measure),
    },
    Case {
        name: "client-100m",
        title: "generator, 100 MB, 4 users",
        measure: Ratios(generator::large_bodies),
    },
    Case {
        name: "client-connect",
        title: "generator, one connection per request, 32 users",
        measure: Ratios(generator::one_connection_per_request),
    },
    Case { name: "client-tls", title: "generator, TLS, 1 KB, 32 users", measure: Ratios(generator::tls) },
    Case {
        name: "client-10k",
        title: "generator, 10 000 users against 100",
        measure: Ratios(generator::many_users),
    },
    Case {
        name: "fleet",
        title: "generators through agents: what they cost, what they measure, and how closely 50 begin",
        measure: Ratios(fleet::measure),
    },
    Case {
        name: "server-1k",
        title: "file server, 1 KB, 32 users, kept connections",
        measure: Ratios(file_server::small_file),
    },
    Case {
        name: "server-models",
        title: "file server by model, 1 KB, 32 users",
        measure: Ratios(file_server::by_model),
    },
    Case {
        name: "server-sizes",
        title: "file server by file size, 8 users",
        measure: Ratios(file_server::sizes),
    },
    Case {
        name: "tls-server",
        title: "file server over TLS, kept and new connections, 1 KB and 1 MB",
        measure: Ratios(file_server::tls),
    },
    Case {
        name: "tiers",
        title: "both tiers, cached credentials, 1 KB, 32 users",
        measure: Ratios(tiers::measure),
    },
    Case {
        name: "registrations",
        title: "accounts registered, against the hashes two processors can compute",
        measure: Ratios(registrations::measure),
    },
    Case { name: "sink", title: "upload sink by model, 1 MB, 8 users", measure: Ratios(uploads::measure) },
    Case {
        name: "server-uring",
        title: "file server on uring against itself on epoll, by file size, 8 users",
        measure: Ratios(file_server::uring),
    },
    Case {
        name: "server-10k",
        title: "file server by model, 10 000 connections against 100, 1 KB",
        measure: Ratios(many_connections::measure),
    },
    Case {
        name: "model-costs",
        title: "what a request costs by model, file server, 1 KB, 1 and 32 users",
        measure: Figures(models::costs),
    },
    Case {
        name: "model-profile",
        title: "where the processor time goes by model, file server, 1 KB, 32 users",
        measure: Figures(models::profiles),
    },
    Case {
        name: HOSTILE,
        title: "service beside hostile clients by model, shipped limits and time-outs",
        measure: Figures(hostile::measure),
    },
    Case {
        name: "bookings",
        title: "bookings on SQLite against bare inserts",
        measure: Ratios(bookings::sqlite),
    },
    Case {
        name: "bookings-servers",
        title: "bookings on MariaDB and PostgreSQL against their own load programs",
        measure: Ratios(bookings::servers),
    },
    Case {
        name: "bookings-600",
        title: "bookings by 600 users, against fewer",
        measure: Ratios(bookings::many_users),
    },
    Case {
        name: "share-register",
        title: "a peer registers its files with an index server",
        measure: Ratios(sharing::indexing::central),
    },
    Case {
        name: "share-register-dht",
        title: "a peer registers its files with 8 peers that keep the index",
        measure: Ratios(sharing::indexing::among_peers),
    },
    Case {
        name: "share-search",
        title: "a search among 8 peers without an index server, against a round trip",
        measure: Ratios(sharing::indexing::response_time),
    },
    Case {
        name: "share-searches",
        title: "searches among 1 and 8 peers, with an index server and without",
        measure: Ratios(sharing::indexing::throughput),
    },
    Case {
        name: "share-large",
        title: "a peer obtains from one source, against curl from nginx",
        measure: Ratios(sharing::obtaining::large),
    },
    Case {
        name: "share-sendme",
        title: "a peer obtains a large file from one source, against sendme",
        measure: Ratios(sharing::obtaining::against_sendme),
    },
    Case {
        name: "share-links",
        title: "a peer obtains from two sources behind slow links, against one",
        measure: Ratios(sharing::links::measure),
    },
    Case { name: "start-up", title: "start-up", measure: Ratios(start_up::measure) },
    Case { name: "watching", title: "what watching a server costs", measure: Ratios(watching::measure) },
    Case {
        name: "live",
        title: "what showing a sweep costs its generator, as a page and on a terminal",
        measure: Ratios(live::measure),
    },
    Case {
        name: PROFILING,
        title: "what --profile costs a server at N*",
        measure: Ratios(profiling::measure),
    },
    Case {
        name: "why",
        title: "whether the sentence of --profile names the function that perf names",
        measure: Figures(why::measure),
    },
    Case {
        name: SLOWER_BUILD,
        title: "whether a build that is 3 % slower is found, by repeats of each",
        measure: Figures(slower_build::measure),
    },
];
