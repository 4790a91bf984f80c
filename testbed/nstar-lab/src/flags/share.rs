//! Flags of `nstar share`: what a person asks of a peer.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What a person asks of a peer.
#[derive(Debug, Subcommand)]
pub(crate) enum Share {
    /// Find files by name, or by words of it
    Search(ShareSearch),
    /// Obtain a file, by name or by hash
    Get(ShareGet),
    /// List what the peer shares
    List(ShareList),
    /// Take a file out of sharing; it stays where it is
    Remove(ShareRemove),
    /// Print the public key of a peer or an index, for the --allow of the others; the key is made if it is not there
    Key(ShareKey),
}

/// Which peer is asked.
#[derive(Debug, Args)]
pub(crate) struct AskPeer {
    /// The peer to ask; https:// where it speaks TLS
    #[arg(long, value_name = "URL", default_value = "127.0.0.1:8085")]
    pub peer: String,
    /// Certificates (PEM) that vouch for a peer over TLS [default: those this machine trusts]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// File of the peer's own key, `identity` in its own folder (as a rule DIR/.nstar), where the group is closed by keys
    #[arg(long, value_name = "FILE", conflicts_with = "ca")]
    pub key_file: Option<PathBuf>,
    /// File of the group's secret, where the group is closed
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShareSearch {
    /// A name, or up to 4 words of one
    #[arg(value_name = "NAME", required = true)]
    pub words: Vec<String>,
    #[command(flatten)]
    pub peer: AskPeer,
}

#[derive(Debug, Args)]
pub(crate) struct ShareGet {
    /// The names of files, or the BLAKE3 hashes of what is in them
    #[arg(value_name = "NAME|HASH", required = true)]
    pub what: Vec<String>,
    /// File to write, which must not be there yet; for one file [default: only into the peer's shared folder]
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
    /// Which, where several files have the name
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
    /// The key of the peer whose own folder this is
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The key in this file, as an index has it: DATABASE.identity
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}
