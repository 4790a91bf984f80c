//! `nstar-lab await-peers`: waits until peers find each other's files, and prints what a load may ask for.
//!
//! It prints lists for the scenario, as the runner of experiments reads them:
//!
//! | name | what a user gets, in turn |
//! |---|---|
//! | `others` | names of files that other peers share |
//! | `content` | hashes of the files of the peer that it asks |
//!
//! User u asks peer u modulo P, the number of peers. Every P-th item of a list, starting with item u, is for peer u.

use std::{
    net::SocketAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use nstar::{
    exit::{Exit, Failure},
    output,
};
use serde_json::json;
use share::{
    client::{Client, ListedFile, RequestError},
    entry::Query,
};

use super::AwaitPeers;

/// How long it may take until one more file is found.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two attempts to find it.
const RETRY: Duration = Duration::from_millis(20);
/// The most items in a list: enough that nothing is asked for again soon.
const ITEMS_MAX: usize = 10_000;

pub(crate) fn run(flags: &AwaitPeers) -> Result<Exit, Failure> {
    let addresses: Vec<SocketAddr> = flags.peers.iter().map(|url| address(url)).collect::<Result<_, _>>()?;
    let shared = wait_until_found(&addresses, flags.files)?;
    let lists = json!({ "values": { "others": others(&shared), "content": content(&shared) } });
    output::print(&format!("{lists}\n"))?;
    Ok(Exit::Done)
}

fn address(url: &str) -> Result<SocketAddr, Failure> {
    let address = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
    address.parse().map_err(|_| {
        Failure::usage(format!("'{url}' is not the address of a peer, such as http://127.0.0.1:8085"))
    })
}

/// Waits until each peer shares so many files, and the next one finds all of them. Returns what each of them shares.
fn wait_until_found(addresses: &[SocketAddr], files: usize) -> Result<Vec<Vec<ListedFile>>, Failure> {
    let clients = addresses.iter().map(|address| Client::new(*address, None)).collect::<Result<Vec<_>, _>>();
    let mut clients = clients.map_err(Failure::failed)?;
    let count = clients.len();
    let mut shared = Vec::new();
    for (number, holder) in addresses.iter().enumerate() {
        let here = until(|| {
            let listed = clients.get_mut(number).map(Client::list).transpose()?.unwrap_or_default();
            Ok((listed.len() >= files).then_some(listed))
        })?;
        for file in &here {
            let Some(other) = clients.get_mut((number + 1) % count) else { continue };
            until(|| found(other, file, *holder))?;
        }
        shared.push(here);
    }
    Ok(shared)
}

/// Asks a peer for a file. Something, if `holder` is among those who have it.
fn found(asked: &mut Client, file: &ListedFile, holder: SocketAddr) -> Result<Option<()>, RequestError> {
    let name = Path::new(&file.path).file_name().and_then(|name| name.to_str());
    let Some(name) = name.and_then(|name| name.parse().ok()) else { return Ok(Some(())) };
    let found = asked.search(&Query::Name(name))?;
    Ok(found.into_iter().any(|found| found.peers.contains(&holder)).then_some(()))
}

/// Asks until there is an answer.
fn until<T>(mut ask: impl FnMut() -> Result<Option<T>, RequestError>) -> Result<T, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = match ask() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => "some files are not found by other peers".to_owned(),
            Err(error) => error.to_string(),
        };
        if Instant::now() >= deadline {
            return Err(Failure::failed(said));
        }
        thread::sleep(RETRY);
    }
}

fn content(shared: &[Vec<ListedFile>]) -> Vec<String> {
    let files = shared.iter().map(Vec::len).min().unwrap_or(0);
    interleaved(shared, files, &|peer, turn| Some(shared.get(peer)?.get(turn)?.hash.to_string()))
}

fn others(shared: &[Vec<ListedFile>]) -> Vec<String> {
    let files = shared.iter().map(Vec::len).min().unwrap_or(0);
    // A single peer searches for its own files.
    let others = shared.len().saturating_sub(1).max(1);
    interleaved(shared, files * others, &|peer, turn| {
        let other = (peer + 1 + turn % others) % shared.len().max(1);
        shared.get(other)?.get(turn / others).map(name)
    })
}

/// The items of all peers: the first of each, then the second of each, and so on.
fn interleaved(
    shared: &[Vec<ListedFile>],
    most: usize,
    item: &dyn Fn(usize, usize) -> Option<String>,
) -> Vec<String> {
    let turns = most.min(ITEMS_MAX / shared.len().max(1));
    (0..turns).flat_map(|turn| (0..shared.len()).filter_map(move |peer| item(peer, turn))).collect()
}

fn name(file: &ListedFile) -> String {
    file.path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(path: &str) -> ListedFile {
        ListedFile { path: path.into(), hash: share::Content::of(path.as_bytes()), size: 1 }
    }

    fn three() -> Vec<Vec<ListedFile>> {
        let peer = |peer: char| (0..2).map(|file| listed(&format!("sub/{peer}{file}"))).collect();
        ['a', 'b', 'c'].map(peer).to_vec()
    }

    #[test]
    fn every_peer_is_asked_for_its_own_files() {
        let hash = |path: &str| share::Content::of(path.as_bytes()).to_string();
        let wanted = ["a0", "b0", "c0", "a1", "b1", "c1"].map(|name| hash(&format!("sub/{name}")));
        assert_eq!(content(&three()), wanted);
    }

    #[test]
    fn every_peer_searches_for_all_files_of_all_others() {
        let items = others(&three());
        let of_peer =
            |peer: usize| -> Vec<&str> { items.iter().skip(peer).step_by(3).map(String::as_str).collect() };
        assert_eq!(of_peer(0), ["b0", "c0", "b1", "c1"]);
        assert_eq!(of_peer(2), ["a0", "b0", "a1", "b1"]);
    }

    #[test]
    fn one_peer_alone_searches_for_its_own() {
        assert_eq!(others(&three()[..1]), ["a0", "a1"]);
        assert!(others(&[]).is_empty());
    }

    #[test]
    fn lists_are_bounded_and_still_fair() {
        let many: Vec<Vec<ListedFile>> =
            (0..7).map(|p| (0..1000).map(|f| listed(&format!("{p}-{f}"))).collect()).collect();
        let items = others(&many);
        assert!(items.len() <= ITEMS_MAX && items.len().is_multiple_of(7), "{}", items.len());
    }
}
