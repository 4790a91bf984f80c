//! The peers of an experiment on file sharing: a process with a folder each, and the index that they ask.

mod index;
mod values;

use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::Path,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use load::Scenario;
use share::{
    client::{Client, ListedFile, RequestError},
    entry::Query,
};
use tempfile::TempDir;

use super::{
    launch::{LaunchContext, Setting, Swarm},
    process::{System, SystemError},
};
use crate::data;

/// How long it may take until one more file is found.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two attempts to find it.
const RETRY: Duration = Duration::from_millis(20);

/// Running peers. Their files are removed with them.
#[derive(Debug)]
pub(crate) struct Peers {
    nodes: Vec<System>,
    /// What each of them shares.
    shared: Vec<Vec<ListedFile>>,
    /// The index server, if there is one.
    index: Option<System>,
    folder: TempDir,
}

impl Peers {
    /// Starts peers, each with files of its own, and waits until another peer finds each file.
    pub(crate) fn start(
        swarm: Swarm,
        setting: &Setting,
        context: LaunchContext<'_>,
    ) -> Result<Self, SystemError> {
        let folder = TempDir::new_in(context.folder).map_err(SystemError::Files)?;
        let mut peers = Peers { nodes: Vec::new(), shared: Vec::new(), index: None, folder };
        peers.index =
            index::serve(swarm.index, setting, LaunchContext { folder: peers.folder.path(), ..context })?;
        for number in 0..swarm.peers {
            if context.interrupt.load(Ordering::Relaxed) {
                return Ok(peers);
            }
            peers.add(number, swarm, setting, context)?;
        }
        peers.wait_until_found(swarm.files.count, context)?;
        Ok(peers)
    }

    /// Aims a scenario at these peers: user u asks peer u modulo their number.
    pub(crate) fn aim(&self, scenario: &Scenario) -> Scenario {
        let bases = self.nodes.iter().filter_map(|node| node.url().parse().ok()).collect();
        values::fill(scenario, &self.shared).with_bases(bases)
    }

    /// Adds the peer of this number, with files of its own.
    fn add(
        &mut self,
        number: u32,
        swarm: Swarm,
        setting: &Setting,
        context: LaunchContext<'_>,
    ) -> Result<(), SystemError> {
        let folder = self.folder.path().join(number.to_string());
        let shared = folder.join("shared");
        let first = u64::from(number) * swarm.files.count;
        data::make_files(&shared, first..first + swarm.files.count, swarm.files.size)
            .map_err(SystemError::Files)?;
        let flags = [OsString::from("--share"), shared.into()].into_iter().chain(index::flags(
            swarm.index,
            self.index.as_ref(),
            &self.nodes,
        ));
        let context = LaunchContext { folder: &folder, ..context };
        self.nodes.push(System::start(&setting.driven("peer", flags, context))?);
        Ok(())
    }

    fn wait_until_found(&mut self, files: u64, context: LaunchContext<'_>) -> Result<(), SystemError> {
        let mut clients: Vec<Client> =
            self.nodes.iter().map(|node| Client::new(node.address, None)).collect::<Result<_, _>>()?;
        let count = clients.len();
        for number in 0..count {
            let here = until(context, || {
                let listed = clients.get_mut(number).map(Client::list).transpose()?.unwrap_or_default();
                Ok((listed.len() as u64 >= files).then_some(listed))
            })?;
            let holder = self.nodes.get(number).map(|node| node.address);
            for file in &here {
                let other = clients.get_mut((number + 1) % count);
                let Some((other, holder)) = other.zip(holder) else { continue };
                if until(context, || found(other, file, holder))?.is_empty() {
                    return Ok(());
                }
            }
            self.shared.push(here);
        }
        Ok(())
    }
}

impl Drop for Peers {
    /// Tells all peers to stop before waiting for any of them.
    fn drop(&mut self) {
        self.nodes.iter().for_each(System::tell_to_stop);
        self.nodes.clear();
        self.index = None;
        // What cannot be removed now is removed with the folder that contains this one.
        let _ = fs::remove_dir_all(self.folder.path());
    }
}

/// Asks a peer for a file. Returns who has it, if `holder` is among them.
fn found(
    asked: &mut Client,
    file: &ListedFile,
    holder: SocketAddr,
) -> Result<Option<Vec<SocketAddr>>, RequestError> {
    let name = Path::new(&file.path).file_name().and_then(|name| name.to_str());
    let Some(name) = name.and_then(|name| name.parse().ok()) else { return Ok(None) };
    let found = asked.search(&Query::Name(name))?;
    Ok(found.into_iter().map(|found| found.peers).find(|peers| peers.contains(&holder)))
}

/// Asks until there is an answer. Returns an empty one when interrupted.
fn until<T>(
    context: LaunchContext<'_>,
    mut ask: impl FnMut() -> Result<Option<Vec<T>>, RequestError>,
) -> Result<Vec<T>, SystemError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = match ask() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => "some of its files are not found by other peers".to_owned(),
            Err(error) => error.to_string(),
        };
        if context.interrupt.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        if Instant::now() >= deadline {
            return Err(SystemError::NotListening { name: "peer".into(), said });
        }
        thread::sleep(RETRY);
    }
}
