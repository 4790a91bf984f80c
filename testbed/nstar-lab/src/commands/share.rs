//! `nstar share`: requests to a peer from the command line.

mod get;
mod shown;

use std::{fmt::Write, path::Path};

use http_io::client::Insecurity;
use share::{
    Content, IDENTITY, InvalidName, Key, Name,
    client::{Client, RequestError},
    entry::Query,
    peer::PeerError,
};

use self::shown::{quoted, table};
use super::reach;
use nstar::{
    exit::{Exit, Failure},
    output,
};

use crate::{
    flags::{AskPeer, Share, ShareKey},
    values::Scheme,
};

pub(crate) fn run(flags: &Share) -> Result<Exit, Failure> {
    match flags {
        Share::Search(flags) => search(&mut client(&flags.peer)?, &flags.words.join(" ")),
        Share::Get(flags) => get::run(&mut client(&flags.peer)?, flags),
        Share::List(flags) => list(&mut client(&flags.peer)?),
        Share::Remove(flags) => remove(&mut client(&flags.peer)?, &flags.name, flags.hash),
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

fn client(flags: &AskPeer) -> Result<Client, Failure> {
    let secure = flags.ca.is_some() || flags.key_file.is_some();
    let usual = if secure { Scheme::Https } else { Scheme::Http };
    let peer = reach::server("--peer", &flags.peer, usual, || match &flags.key_file {
        Some(key) => reach::owner(key),
        None => reach::authorities(flags.ca.as_deref()),
    })?;
    if secure && !peer.is_secure() {
        return Err(Failure::usage("--ca and --key-file go with --peer https://HOST:PORT"));
    }
    if let Some(secret) = flags.secret_file.as_ref().filter(|path| !path.exists()) {
        return Err(Failure::usage(format!("there is no secret in {}", secret.display())));
    }
    Client::new(peer, flags.secret_file.as_deref()).map_err(Failure::usage)
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

fn failure(error: RequestError) -> Failure {
    match error {
        RequestError::Unreachable { .. } => {
            Failure::failed(format!("{error}; start one with `nstar serve peer`, or name it with --peer"))
        }
        RequestError::Insecure { ref why, .. } => {
            let hint = match why {
                Insecurity::UnknownKey(_) => "; --key-file must be the key of the peer that you ask",
                Insecurity::NoKey => "; it was not started with --allow: give --ca instead of --key-file",
                Insecurity::NotTls => "; give --peer http://..",
                _ => "; give --ca FILE with its authority, or --key-file DIR/.nstar/identity with its key",
            };
            Failure::failed(format!("{error}{hint}"))
        }
        RequestError::WantsTls(peer) => Failure::usage(format!(
            "{error}: give --peer https://{peer}, and --key-file DIR/.nstar/identity if its group is closed by keys"
        )),
        RequestError::Refused { status: 401, .. } => Failure::usage(
            "the peer is in a closed group: give its secret with --secret-file, or the peer's own key with --key-file",
        ),
        other => Failure::failed(other),
    }
}
