//! Targets for fuzzing: everything that reads what others wrote, and what must hold of it.
//!
//! A target is a function of bytes that panics where a promise is broken: that what was read and written again is the
//! same, that it does not matter in which pieces bytes come, that no more is taken than was given, that a client does not
//! choose the address that a proxy names, that no secret is written to a file. What is to be kept of the inputs lies in
//! `corpus/TARGET/`. `cargo test -p fuzz` replays it with mutations of it; `make fuzz` searches for hours, with the program of
//! this crate.
//!
//! The messages between peers of the distributed index are not here: they would bring libp2p. `share-dht` has property tests
//! of its own.

mod agents;
mod documents;
mod header_fields;
mod imports;
mod kept_files;
mod messages;
mod peers;
mod requesters;
#[path = "../../tool/wire/tests/support/mod.rs"]
mod streams;

/// What one kind of input must keep to.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in the corpus.
    pub name: &'static str,
    /// What the input is.
    pub input: &'static str,
    /// Tries one input. Panics if a promise is broken.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "requests", input: "requests of one connection", run: messages::requests },
    Target { name: "responses", input: "responses on one connection", run: messages::responses },
    Target { name: "chunked-bodies", input: "a body in chunks", run: messages::chunked_body },
    Target { name: "ranges", input: "a length, and a Range in the next line", run: header_fields::range },
    Target { name: "conditions", input: "If-Match and its like", run: header_fields::conditions },
    Target { name: "credentials", input: "Authorization", run: header_fields::credentials },
    Target { name: "cookies", input: "fields Cookie, one in each line", run: header_fields::cookies },
    Target { name: "uploads", input: "fields of an upload, one in each line", run: header_fields::upload },
    Target { name: "targets", input: "a path or a query, percent-encoded", run: header_fields::target },
    Target { name: "forwarded", input: "fields Forwarded, one in each line", run: requesters::forwarded },
    Target {
        name: "x-forwarded-for",
        input: "fields X-Forwarded-For, one in each line",
        run: requesters::x_forwarded_for,
    },
    Target { name: "scenarios", input: "a scenario", run: documents::scenario },
    Target { name: "imports", input: "curl, HAR or OpenAPI", run: imports::import },
    Target { name: "experiments", input: "an experiment", run: documents::experiment },
    Target { name: "run-files", input: "a run file or a comparison", run: documents::run_file },
    Target { name: "json-bodies", input: "the body of a request to an API", run: documents::json_body },
    Target { name: "agent-greetings", input: "the start of an agent's stream", run: agents::greeting },
    Target { name: "agent-reports", input: "what an agent sends", run: agents::reports },
    Target { name: "agent-commands", input: "what is sent to an agent", run: agents::commands },
    Target { name: "peer-messages", input: "a file, a search or what it found", run: peers::messages },
    Target { name: "upload-records", input: "the record of an upload", run: kept_files::upload_record },
    Target { name: "usage-files", input: "how much a user takes", run: kept_files::usage_file },
    Target { name: "share-journals", input: "the journal of a folder", run: kept_files::share_journal },
    Target {
        name: "experiment-journals",
        input: "the journal of an experiment",
        run: kept_files::experiment_journal,
    },
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
