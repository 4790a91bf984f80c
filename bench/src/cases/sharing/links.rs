//! Obtaining from two sources, each behind a slow link of its own, against one. Needs root.

use std::{fs, net::TcpListener};

use experiment::link::{self, Link};
use share::{client::Client, seam::Query};

use super::{
    obtaining::{new_file, obtain},
    peer, wait_until,
};
use crate::{
    Effort, Outcome,
    place::{Place, Server},
    table::{Against, Row},
};

const MBIT: u32 = 100;
/// Takes one link some seconds.
const BYTES: usize = 40_000_000;
/// The sources' own, in namespaces of their own.
const PORT: u16 = 8085;

/// Waits until the namespace has its address; then this and that of the other end are filled in.
const WAIT: &str = r#"
until me=$(ip -4 -o addr show scope global | grep -o '198\.18\.[0-9]*\.2'); do sleep 0.02; done
exec "$@" --listen "$me:8085" --index "${me%2}1:$INDEX""#;

/// A peer behind a link.
struct Source {
    folder: &'static str,
    // Ends before its link does.
    _server: Server,
    _link: Link,
}

/// How many bytes a second come from two, and from one.
pub(in super::super) fn measure(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    link::check()?;
    let secret = place.path("group");
    let member = ["--secret-file".to_owned(), secret.display().to_string()];
    let index = index_for_all(place, &member)?;
    let sources = [source(place, "left", &member, &index)?, source(place, "right", &member, &index)?];
    let flags = [&member[..], &["--index".into(), index.address.to_string()]].concat();
    let receiver = peer(place, "taking", &flags)?;
    let mut client = Client::new(receiver.address, Some(&secret))?;
    let (mut two, mut one) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        two.push(rate(place, &mut client, &sources)?);
        one.push(rate(place, &mut client, &sources[..1])?);
    }
    let against = Against::Program { name: "one source".into(), theirs: one, reach: Some(1.8) };
    let work = format!("obtain, 40 MB, two sources, each behind {MBIT} Mb/s");
    Ok(vec![Row { work, unit: "B/s", ours: two, against }])
}

/// An index that is reached over every link.
fn index_for_all(place: &Place, member: &[String]) -> Outcome<Server> {
    let database = place.path("linked.db").display().to_string();
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let words = [place.ours("nstar-lab"), "serve".into(), "index".into(), "--database".into(), database];
    let listen = ["--listen".to_owned(), format!("0.0.0.0:{}", address.port())];
    place.serve_at(&[&words[..], &listen, member].concat(), |_| Ok(address))
}

fn source(place: &Place, folder: &'static str, member: &[String], index: &Server) -> Outcome<Source> {
    fs::create_dir_all(place.path(folder))?;
    let wait =
        ["unshare", "--net", "env", &format!("INDEX={}", index.address.port()), "sh", "-c", WAIT, "sh"];
    let words = [&place.ours("nstar-lab"), "serve", "peer", "--share", folder];
    let words = wait.into_iter().chain(words).map(String::from).chain(member.iter().cloned());
    let mut link = None;
    let server = place.serve_at(&words.collect::<Vec<_>>(), |pid| {
        wait_until(|| has_own_network(pid))?;
        let made = link.insert(Link::to_process(pid, MBIT)?);
        Ok((made.server_address(), PORT).into())
    })?;
    Ok(Source { folder, _server: server, _link: link.ok_or("no link")? })
}

/// Whether a process is in a network namespace that is not ours.
fn has_own_network(pid: u32) -> bool {
    let namespace = |whose: &str| fs::read_link(format!("/proc/{whose}/ns/net")).ok();
    namespace(&pid.to_string()).is_some_and(|its| Some(its) != namespace("self"))
}

/// Bytes a second of a new file that these sources have.
fn rate(place: &Place, client: &mut Client, sources: &[Source]) -> Outcome<f64> {
    let (bytes, content) = new_file(BYTES);
    for source in sources {
        fs::write(place.path(&format!("{}/{content}", source.folder)), &bytes)?;
    }
    wait_until(|| {
        let found = client.search(&Query::Content(content)).unwrap_or_default();
        found.first().is_some_and(|found| found.peers.len() == sources.len())
    })?;
    Ok(BYTES as f64 / obtain(client, &[content])?)
}
