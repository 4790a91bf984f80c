//! The peers of an experiment on file sharing: processes with a folder each, and whatever they find each other by.

mod check;
mod index;
mod work;

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
    client::{AskError, Client, Listed},
    seam::Query,
};
use tempfile::TempDir;

use crate::{
    data,
    experiment::Files,
    systems::{System, SystemError},
    tiers::{Ground, Setting},
};

pub use check::{PEERS_MAX, Unfit, check};
pub use index::IndexKind;

/// How long it may take until one more file is found.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks whether it is.
const LOOK: Duration = Duration::from_millis(20);

/// Which peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Swarm {
    /// How they find what others have.
    pub(crate) index: IndexKind,
    /// How many.
    pub(crate) peers: u32,
    /// What each of them shares.
    pub(crate) files: Files,
}

/// Running peers. Their files go with them.
#[derive(Debug)]
pub(crate) struct Peers {
    nodes: Vec<System>,
    /// What each of them shares.
    shared: Vec<Vec<Listed>>,
    /// What they ask who has what, if that is a server of its own.
    index: Option<System>,
    folder: TempDir,
}

impl Peers {
    /// Starts them on files that nobody else has, and waits until each file is found by another peer.
    pub(crate) fn start(swarm: Swarm, setting: &Setting, ground: Ground<'_>) -> Result<Self, SystemError> {
        let folder = TempDir::new_in(ground.folder).map_err(SystemError::Files)?;
        let mut peers = Peers { nodes: Vec::new(), shared: Vec::new(), index: None, folder };
        peers.index = swarm.index.serve(setting, Ground { folder: peers.folder.path(), ..ground })?;
        for number in 0..swarm.peers {
            if ground.interrupt.load(Ordering::Relaxed) {
                return Ok(peers);
            }
            peers.add(number, swarm, setting, ground)?;
        }
        peers.wait_until_found(swarm.files.count, ground)?;
        Ok(peers)
    }

    /// Gives a scenario to the users of these peers: user u asks peer u modulo their number.
    pub(crate) fn aim(&self, scenario: &Scenario) -> Scenario {
        let bases = self.nodes.iter().filter_map(|node| node.url().parse().ok()).collect();
        work::of(scenario, &self.shared).with_bases(bases)
    }

    /// Adds the peer of this number, with files of its own.
    fn add(
        &mut self,
        number: u32,
        swarm: Swarm,
        setting: &Setting,
        ground: Ground<'_>,
    ) -> Result<(), SystemError> {
        let folder = self.folder.path().join(number.to_string());
        let shared = folder.join("shared");
        let first = u64::from(number) * swarm.files.count;
        data::make_files(&shared, first..first + swarm.files.count, swarm.files.size)
            .map_err(SystemError::Files)?;
        let flags = [OsString::from("--share"), shared.into()]
            .into_iter()
            .chain(swarm.index.flags(self.index.as_ref(), &self.nodes));
        let ground = Ground { folder: &folder, ..ground };
        self.nodes.push(System::start(&setting.driven("peer", flags, ground))?);
        Ok(())
    }

    fn wait_until_found(&mut self, files: u64, ground: Ground<'_>) -> Result<(), SystemError> {
        let mut clients: Vec<Client> =
            self.nodes.iter().map(|node| Client::new(node.address, None)).collect::<Result<_, _>>()?;
        let count = clients.len();
        for number in 0..count {
            let here = until(ground, || {
                let listed = clients.get_mut(number).map(Client::list).transpose()?.unwrap_or_default();
                Ok((listed.len() as u64 >= files).then_some(listed))
            })?;
            let holder = self.nodes.get(number).map(|node| node.address);
            for file in &here {
                let other = clients.get_mut((number + 1) % count);
                let Some((other, holder)) = other.zip(holder) else { continue };
                if until(ground, || found(other, file, holder))?.is_empty() {
                    return Ok(());
                }
            }
            self.shared.push(here);
        }
        Ok(())
    }
}

impl Drop for Peers {
    /// All are told before any is waited for.
    fn drop(&mut self) {
        self.nodes.iter().for_each(System::tell_to_stop);
        self.nodes.clear();
        self.index = None;
        // What cannot be removed now goes with the folder that this one is in.
        let _ = fs::remove_dir_all(self.folder.path());
    }
}

/// Whether a peer finds a file with the one that shares it; then with whom.
fn found(asked: &mut Client, file: &Listed, holder: SocketAddr) -> Result<Option<Vec<SocketAddr>>, AskError> {
    let name = Path::new(&file.path).file_name().and_then(|name| name.to_str());
    let Some(name) = name.and_then(|name| name.parse().ok()) else { return Ok(None) };
    let found = asked.search(&Query::Name(name))?;
    Ok(found.into_iter().map(|found| found.peers).find(|peers| peers.contains(&holder)))
}

/// Asks again and again until there is an answer; an empty one when interrupted.
fn until<T>(
    ground: Ground<'_>,
    mut ask: impl FnMut() -> Result<Option<Vec<T>>, AskError>,
) -> Result<Vec<T>, SystemError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = match ask() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => "some of its files are not found by other peers".to_owned(),
            Err(error) => error.to_string(),
        };
        if ground.interrupt.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        if Instant::now() >= deadline {
            return Err(SystemError::NotListening { name: "peer".into(), said });
        }
        thread::sleep(LOOK);
    }
}
