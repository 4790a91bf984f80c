//! The command line as typed: every flag, its default, and its one line of help.

mod lab;
mod load;
mod processors;
mod report;
mod serve;
mod server;
mod share;

use clap::{Parser, Subcommand};

pub(crate) use self::{
    lab::Lab,
    load::{Connections, Drive, Load, Output, Sweep, Target},
    processors::Processors,
    report::{Format, Report},
    serve::{
        Accounts, Allowed, Booking, DatabaseLogin, Files, FilesUploads, Index, Peer, Serve, Sink, Verify,
    },
    server::{Concurrency, Encryption, Server},
    share::{AskPeer, Share, ShareGet, ShareKey},
};

/// Finds N*, the load at which a server saturates, and names the resource that stops it.
#[derive(Debug, Parser)]
#[command(name = "nstar", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the run failed or no request completed; 2 usage; 3 a --gate was breached;
4 inconclusive (generator-limited, not steady, never bounded); 130/143 interrupted, partial report written.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a system of this repository, sweep it, report; with no name: the authenticated file server
    Lab(Lab),
    /// Raise the number of users until the server stops growing, and say what stops it
    Sweep(Sweep),
    /// Make one load and measure it
    Load(Load),
    /// Run one of the systems
    #[command(subcommand)]
    Serve(Serve),
    /// Share files with other peers: search, get, list, remove, key
    #[command(subcommand)]
    Share(Share),
    /// Show a run file again: as text, HTML, CSV or JSON
    Report(Report),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        super::Flags::command().debug_assert();
    }
}
