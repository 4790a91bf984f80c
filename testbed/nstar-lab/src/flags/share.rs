//! Flags of `nstar-lab share`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Requests to a peer.
#[derive(Debug, Subcommand)]
pub(crate) enum Share {
    /// Find files by name, or by words in it
    Search(ShareSearch),
    /// Get files by name or by hash
    Get(ShareGet),
    /// List what the peer shares
    List(ShareList),
    /// Stop sharing a file, which stays where it is
    Remove(ShareRemove),
    /// Print the public key of a peer or an index, for others to --allow; creates it if missing
    Key(ShareKey),
}

/// Which peer to ask.
#[derive(Debug, Args)]
pub(crate) struct AskPeer {
    /// The peer to ask; https:// if it speaks TLS
    #[arg(long, value_name = "URL", default_value = "127.0.0.1:8085")]
    pub peer: String,
    /// Authorities (PEM) to trust for a peer over TLS [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// File with the peer's own key, `identity` in its data folder (usually DIR/.nstar), if the group is closed by keys
    #[arg(long, value_name = "FILE", conflicts_with = "ca")]
    pub key_file: Option<PathBuf>,
    /// File with the group's secret, if the group is closed by one
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShareSearch {
    /// A name, or up to 4 words in one
    #[arg(value_name = "NAME", required = true)]
    pub words: Vec<String>,
    #[command(flatten)]
    pub peer: AskPeer,
}

#[derive(Debug, Args)]
pub(crate) struct ShareGet {
    /// Names of files, or BLAKE3 hashes of their contents
    #[arg(value_name = "NAME|HASH", required = true)]
    pub what: Vec<String>,
    /// File to write, which must not exist; for one file only [default: the peer's shared folder alone]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    pub no_progress: bool,
    #[command(flatten)]
    pub peer: AskPeer,
}

#[derive(Debug, Args)]
pub(crate) struct ShareList {
    #[command(flatten)]
    pub peer: AskPeer,
}

#[derive(Debug, Args)]
pub(crate) struct ShareRemove {
    /// The name of the file
    pub name: String,
    /// Hash of the file, if several have this name
    #[arg(long, value_name = "HASH")]
    pub hash: Option<share::Content>,
    #[command(flatten)]
    pub peer: AskPeer,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ShareKey {
    /// The key of the peer that shares this folder
    #[arg(long, value_name = "DIR")]
    pub share: Option<PathBuf>,
    /// The key of the peer with this data folder
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The key in this file, such as an index's DATABASE.identity
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}
