//! File sharing: peers that register, search, serve and obtain.

pub(super) mod links;
pub(super) mod obtaining;
pub(super) mod registering;
pub(super) mod searching;
pub(super) mod sendme;
pub(super) mod serving;

use std::{
    fs,
    io::{self, Read},
    net::{SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use share::{Content, client::Client, seam::Query};

use crate::{
    Outcome,
    place::{Place, Server},
};

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(120);

/// How peers find what others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A server tells them.
    Central,
    /// They keep the index themselves.
    Dht,
}

/// Peers that run, and the server that they ask, where they ask one.
struct Crowd {
    peers: Vec<Server>,
    index: Option<Server>,
}

impl Crowd {
    /// Starts a peer on each of these folders of the place.
    fn start(place: &Place, way: Way, folders: &[String]) -> Outcome<Self> {
        let (mut peers, mut known) = (Vec::new(), None);
        let index = (way == Way::Central).then(|| index(place)).transpose()?;
        for folder in folders {
            let flags = match &index {
                Some(index) => vec!["--index".into(), index.address.to_string()],
                None => dht_flags(&mut known)?,
            };
            peers.push(peer(place, folder, &flags)?);
        }
        Ok(Self { peers, index })
    }

    /// CPU time of all of it so far, seconds.
    fn cpu_s(&self) -> f64 {
        self.peers.iter().chain(&self.index).map(Server::cpu_s).sum()
    }
}

/// The flags of one more peer without a server; the first is known to those that come later.
fn dht_flags(known: &mut Option<SocketAddr>) -> Outcome<Vec<String>> {
    let own = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let join = known.map(|known| ["--bootstrap".to_owned(), known.to_string()]);
    known.get_or_insert(own);
    let alone = ["--dht".to_owned(), "--dht-listen".to_owned(), own.to_string()];
    Ok(alone.into_iter().chain(join.into_iter().flatten()).collect())
}

/// Starts a peer on a folder of the place, on all processors.
fn peer(place: &Place, folder: &str, flags: &[String]) -> Outcome<Server> {
    fs::create_dir_all(place.path(folder))?;
    let folder = place.path(folder).display().to_string();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    place.serve_ours_shared(&[&["peer", "--share", &folder][..], &flags].concat())
}

/// Starts an index that knows nothing yet.
fn index(place: &Place) -> Outcome<Server> {
    let number = fs::read_dir(place.path(""))?.count();
    let database = place.path(&format!("index{number}.db")).display().to_string();
    place.serve_ours_shared(&["index", "--database", &database])
}

/// Waits until a peer finds what some peer has.
fn until_found(client: &mut Client, content: Content) -> Outcome<()> {
    wait_until(|| client.search(&Query::Content(content)).is_ok_and(|found| !found.is_empty()))
}

/// Waits until the metrics of a server hold this.
fn until_shown(server: &Server, wanted: &str) -> Outcome<()> {
    wait_until(|| metrics(server.address).is_ok_and(|shown| shown.contains(wanted)))
}

fn metrics(of: SocketAddr) -> io::Result<String> {
    let (stream, _, length) = bench::ask(of, &bench::request(of, "/metrics", ""))?;
    io::read_to_string(stream.take(length))
}

fn wait_until(mut holds: impl FnMut() -> bool) -> Outcome<()> {
    let patience = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > patience {
            return Err("a peer or an index did not come to what was waited for".into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
