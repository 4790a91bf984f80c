//! `nstar share`: requests to a peer from the command line.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use nstar::{
    exit::{Exit, Failure},
    output,
};
use share::{
    Content, IDENTITY, InvalidName, Key, Name,
    client::{Client, RequestError},
    entry::Query,
    peer::PeerError,
};

use self::{
    client::{AskPeer, failure},
    get::ShareGet,
    names::{quoted, table},
};

mod client;
mod get;
mod names;

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

#[derive(Debug, Args)]
pub(crate) struct ShareSearch {
    /// A name, or up to 4 words in one
    #[arg(value_name = "NAME", required = true)]
    pub words: Vec<String>,
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
    pub hash: Option<Content>,
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

pub(crate) fn run(flags: &Share) -> Result<Exit, Failure> {
    match flags {
        Share::Search(flags) => search(&mut flags.peer.client()?, &flags.words.join(" ")),
        Share::Get(flags) => get::run(&mut flags.peer.client()?, flags),
        Share::List(flags) => list(&mut flags.peer.client()?),
        Share::Remove(flags) => remove(&mut flags.peer.client()?, &flags.name, flags.hash),
        Share::Key(flags) => key(flags),
    }
}

fn key(flags: &ShareKey) -> Result<Exit, Failure> {
    let key = match (&flags.share, &flags.state, &flags.key_file) {
        (Some(share), ..) => share::peer::own_key(share, &share.join(".nstar")),
        (_, Some(state), _) => Key::open(&state.join(IDENTITY)).map_err(PeerError::from),
        (.., Some(file)) => Key::open(file).map_err(PeerError::from),
        (None, None, None) => return Err(Failure::usage("say whose key: --share, --state or --key-file")),
    };
    output::print(&format!("{}\n", key.map_err(Failure::usage)?.public()))?;
    Ok(Exit::Done)
}

fn search(client: &mut Client, text: &str) -> Result<Exit, Failure> {
    let mut found = Vec::new();
    if let Ok(name) = text.parse() {
        found = client.search(&Query::Name(name)).map_err(failure)?;
    }
    if let Ok(words) = Query::words(text) {
        let known: Vec<_> = found.iter().map(|file| file.entry.clone()).collect();
        let others = client.search(&words).map_err(failure)?;
        found.extend(others.into_iter().filter(|file| !known.contains(&file.entry)));
    } else if found.is_empty() {
        return Err(Failure::usage("search for a name, or for up to 4 words of one"));
    }
    if found.is_empty() {
        return Err(Failure::failed("nobody shares a file of that name, or with those words in its name"));
    }
    output::print(&table(&found))?;
    Ok(Exit::Done)
}

fn list(client: &mut Client) -> Result<Exit, Failure> {
    let mut shown = String::new();
    for file in client.list().map_err(failure)? {
        // Writing to a string does not fail.
        let _ = writeln!(shown, "{}  {:>12}  {}", file.hash, file.size, quoted(&file.path));
    }
    output::print(&shown)?;
    Ok(Exit::Done)
}

fn remove(client: &mut Client, name: &str, hash: Option<Content>) -> Result<Exit, Failure> {
    let name: Name = name.parse().map_err(|error| not_removed(name, error))?;
    match client.remove(&name, hash) {
        Err(RequestError::Refused { status: 409, reason }) => {
            Err(Failure::usage(format!("{reason}; say which with --hash, as `nstar share list` shows it")))
        }
        other => other.map_err(failure).map(|()| Exit::Done),
    }
}

/// Explains which name to give: `nstar share list` shows paths, but a file's name is only the last part of its path.
fn not_removed(name: &str, error: InvalidName) -> Failure {
    let last = Path::new(name).file_name().and_then(|last| last.to_str());
    match last.filter(|last| error == InvalidName::Slash && last.parse::<Name>().is_ok()) {
        Some(last) => Failure::usage(format!(
            "a name {error}; give {}, and --hash if several files have that name",
            quoted(last)
        )),
        None => Failure::usage(format!("a name {error}")),
    }
}
