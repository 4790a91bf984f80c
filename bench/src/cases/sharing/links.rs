//! Obtaining from two sources, each behind a slow link of its own, against one source. Needs root.

use std::{fs, net::TcpListener};

use experiment::link::{self, Link, LinkPlan};
use share::{client::Client, entry::Query};

use super::{
    obtaining::{new_file, obtain},
    peer, wait_until,
};
use crate::tools::{
    effort::{Effort, Result},
    table::{Against, Row},
    workspace::{ServerProcess, Workspace},
};

const MBIT: u32 = 100;
/// Enough to take one link some seconds.
const BYTES: usize = 40_000_000;
/// The port of each source, in its own namespace.
const PORT: u16 = 8085;

/// Waits until the namespace has an address, then starts the peer with that and the address of the other end.
const WAIT: &str = r#"
until me=$(ip -4 -o addr show scope global | grep -o '198\.18\.[0-9]*\.2'); do sleep 0.02; done
exec "$@" --user root --listen "$me:8085" --index "${me%2}1:$INDEX""#;

/// A peer behind a link.
struct Source {
    folder: &'static str,
    // Dropped before its link.
    _server: ServerProcess,
    _link: Link,
}

/// Bytes per second from two sources against one.
pub(in super::super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    link::check()?;
    let secret = workspace.path("group");
    let member = ["--secret-file".to_owned(), secret.display().to_string()];
    let index = index_for_all(workspace, &member)?;
    let sources = [source(workspace, "left", &member, &index)?, source(workspace, "right", &member, &index)?];
    let flags = [&member[..], &["--index".into(), index.address.to_string()]].concat();
    let receiver = peer(workspace, "taking", &flags)?;
    let mut client = Client::new(receiver.address, Some(&secret))?;
    let (mut two, mut one) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        two.push(rate(workspace, &mut client, &sources)?);
        one.push(rate(workspace, &mut client, &sources[..1])?);
    }
    let against = Against::Program { name: "one source".into(), theirs: one, reach: Some(1.8) };
    let work = format!("obtain, 40 MB, two sources, each behind {MBIT} Mb/s");
    Ok(vec![Row { work, unit: "B/s", ours: two, against }])
}

/// Starts an index that can be reached over every link.
fn index_for_all(workspace: &Workspace, member: &[String]) -> Result<ServerProcess> {
    let database = workspace.path("linked.db").display().to_string();
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let words = [workspace.ours("nstar-lab"), "serve".into(), "index".into(), "--database".into(), database];
    let listen = ["--user", "root", "--listen"].map(str::to_owned);
    let listen = [&listen[..], &[format!("0.0.0.0:{}", address.port())]].concat();
    workspace.serve_at(&[&words[..], &listen, member].concat(), |_| Ok(address))
}

fn source(
    workspace: &Workspace,
    folder: &'static str,
    member: &[String],
    index: &ServerProcess,
) -> Result<Source> {
    fs::create_dir_all(workspace.path(folder))?;
    let wait =
        ["unshare", "--net", "env", &format!("INDEX={}", index.address.port()), "sh", "-c", WAIT, "sh"];
    let words = [&workspace.ours("nstar-lab"), "serve", "peer", "--share", folder];
    let words = wait.into_iter().chain(words).map(String::from).chain(member.iter().cloned());
    let mut link = None;
    let server = workspace.serve_at(&words.collect::<Vec<_>>(), |pid| {
        wait_until(|| has_own_network(pid))?;
        let made = link.insert(Link::to_process(pid, LinkPlan { mbit: MBIT, network: pid })?);
        Ok((made.server_address(), PORT).into())
    })?;
    Ok(Source { folder, _server: server, _link: link.ok_or("no link")? })
}

/// Whether a process is in a network namespace other than ours.
fn has_own_network(pid: u32) -> bool {
    let namespace = |whose: &str| fs::read_link(format!("/proc/{whose}/ns/net")).ok();
    namespace(&pid.to_string()).is_some_and(|its| Some(its) != namespace("self"))
}

/// Obtains a new file that these sources have. Returns the bytes per second.
fn rate(workspace: &Workspace, client: &mut Client, sources: &[Source]) -> Result<f64> {
    let (bytes, content) = new_file(BYTES);
    for source in sources {
        fs::write(workspace.path(&format!("{}/{content}", source.folder)), &bytes)?;
    }
    wait_until(|| {
        let found = client.search(&Query::Content(content)).unwrap_or_default();
        found.first().is_some_and(|found| found.peers.len() == sources.len())
    })?;
    Ok(BYTES as f64 / obtain(client, &[content])?)
}
