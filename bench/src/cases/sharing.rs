//! File sharing: peers that register, search and obtain.

pub(super) mod indexing;
pub(super) mod links;
pub(super) mod obtaining;

use std::{
    fs,
    io::{self, Read},
    net::{SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use share::{Content, client::Client, entry::Query};

use crate::tools::{
    effort::Result,
    workspace::{ServerProcess, Workspace},
};

/// The time limit of everything here.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where peers keep the index of what others share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndexKind {
    /// On a server.
    Central,
    /// Among themselves.
    Dht,
}

/// Running peers, and the index server that they ask, if there is one.
struct PeerGroup {
    peers: Vec<ServerProcess>,
    index: Option<ServerProcess>,
}

impl PeerGroup {
    /// Starts a peer on each of these folders of the workspace.
    fn start(workspace: &Workspace, way: IndexKind, folders: &[String]) -> Result<Self> {
        let (mut peers, mut known) = (Vec::new(), None);
        let index = (way == IndexKind::Central).then(|| index(workspace)).transpose()?;
        for folder in folders {
            let flags = match &index {
                Some(index) => vec!["--index".into(), index.address.to_string()],
                None => dht_flags(&mut known)?,
            };
            peers.push(peer(workspace, folder, &flags)?);
        }
        Ok(Self { peers, index })
    }

    /// CPU time of all processes so far, in seconds.
    fn cpu_s(&self) -> f64 {
        self.peers.iter().chain(&self.index).map(ServerProcess::cpu_s).sum()
    }
}

/// The flags of one more peer without a server. Later peers join through the first, which is kept in `known`.
fn dht_flags(known: &mut Option<SocketAddr>) -> Result<Vec<String>> {
    let own = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let join = known.map(|known| ["--bootstrap".to_owned(), known.to_string()]);
    known.get_or_insert(own);
    let alone = ["--dht".to_owned(), "--dht-listen".to_owned(), own.to_string()];
    Ok(alone.into_iter().chain(join.into_iter().flatten()).collect())
}

/// Starts a peer on a folder of the workspace, on all processors.
fn peer(workspace: &Workspace, folder: &str, flags: &[String]) -> Result<ServerProcess> {
    fs::create_dir_all(workspace.path(folder))?;
    let folder = workspace.path(folder).display().to_string();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    workspace.serve_ours_shared(&[&["peer", "--share", &folder][..], &flags].concat())
}

/// Starts an empty index server.
fn index(workspace: &Workspace) -> Result<ServerProcess> {
    let number = fs::read_dir(workspace.path(""))?.count();
    let database = workspace.path(&format!("index{number}.db")).display().to_string();
    workspace.serve_ours_shared(&["index", "--database", &database])
}

/// Waits until a peer finds a content that some peer has.
fn until_found(client: &mut Client, content: Content) -> Result<()> {
    wait_until(|| client.search(&Query::Content(content)).is_ok_and(|found| !found.is_empty()))
}

/// Waits until the metrics of a server contain a text.
fn until_shown(server: &ServerProcess, wanted: &str) -> Result<()> {
    wait_until(|| metrics(server.address).is_ok_and(|shown| shown.contains(wanted)))
}

fn metrics(of: SocketAddr) -> io::Result<String> {
    let (stream, _, length) = bench::ask(of, &bench::request(of, "/metrics", ""))?;
    io::read_to_string(stream.take(length))
}

fn wait_until(mut holds: impl FnMut() -> bool) -> Result<()> {
    let patience = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > patience {
            return Err("a peer or an index did not reach the expected state in time".into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
