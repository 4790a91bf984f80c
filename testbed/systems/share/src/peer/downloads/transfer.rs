//! One download: finds peers that have the content, and fetches it from them.

use std::{
    cmp::Reverse,
    fs::{self, File},
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use super::{
    download::Download,
    fetch::Fetch,
    install::{self, CompleteFile, SMALL_LEN_MAX},
};
use crate::{
    entry::{Content, Entry, Name, Query, SearchResult},
    interfaces::{ContentSource, Index, tell_wrong},
    peer::shared::{
        SharedFolder,
        hashing::{self, GroupHashes},
        partial::{self, PartialFile},
    },
};

/// How often the index is searched for more peers.
const SEARCH_INTERVAL: Duration = Duration::from_secs(2);
/// How long to continue without a peer to ask.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);
/// The same while the only known peers of the content sent wrong content.
const GIVE_UP_UNKNOWN_AFTER: Duration = Duration::from_secs(5);
/// Every peer is asked this often at least: silent ones may use up the time before another has had a second chance.
const ROUNDS_MIN: usize = 2;
/// Pause before peers are looked for again.
const PAUSE: Duration = Duration::from_millis(300);
/// How many peers are asked in turn for a small file, before it is fetched from several at once as a larger one.
const SMALL_PEERS_MAX: usize = 3;
/// Why a download was cancelled.
pub(super) const CANCELLED: &str =
    "it was cancelled; the part already downloaded is kept, and asking again continues";

const WRONG_BYTES: &str = "it sent bytes that are not those of the file";
const WRONG_HASHES: &str = "it sent hashes that are not those of the file";

/// Where downloads come from and go to.
pub(crate) struct Endpoints {
    pub(crate) index: Arc<dyn Index>,
    pub(crate) source: Arc<dyn ContentSource>,
    pub(crate) shared: Arc<SharedFolder>,
    /// Where this peer can be reached: it does not ask itself.
    pub(crate) own_address: OnceLock<SocketAddr>,
    /// The folder for content that is not complete.
    pub(crate) partials: PathBuf,
}

/// The transfer of one download.
pub(super) struct Transfer<'d> {
    pub(super) ends: &'d Endpoints,
    pub(super) download: &'d Arc<Download>,
    pub(super) content: Content,
    /// The name for the file, if the request gave one.
    pub(super) name: Option<&'d Name>,
}

impl Transfer<'_> {
    /// Fetches the content. Fails with a message for people.
    pub(super) fn run(&self) -> Result<CompleteFile, String> {
        let (begun, mut patience, mut rounds) = (Instant::now(), GIVE_UP_UNKNOWN_AFTER, 0);
        while (begun.elapsed() < patience || rounds < ROUNDS_MIN) && !self.download.is_cancelled() {
            rounds += 1;
            for mut claim in self.search() {
                patience = self.patience(&claim).max(patience);
                if self.download.is_cancelled() {
                    break;
                }
                claim.entry.name = self.name.unwrap_or(&claim.entry.name).clone();
                self.download.lock().name = Some(claim.entry.name.clone());
                if let Some(complete) = self.fetch_claimed(&claim)? {
                    return Ok(complete);
                }
            }
            thread::sleep(PAUSE);
        }
        Err(self.explain_failure())
    }

    /// Searches for peers that claim to have the content, by the size that they claim.
    fn search(&self) -> Vec<SearchResult> {
        match self.ends.index.search(&Query::Content(self.content)) {
            Ok(found) => claims(&found),
            Err(error) => {
                tracing::debug!(%error, "no more peers are known while the index is unavailable");
                Vec::new()
            }
        }
    }

    /// Fetches the content if it has the claimed size. `None` if it does not, or is not available now.
    fn fetch_claimed(&self, claim: &SearchResult) -> Result<Option<CompleteFile>, String> {
        let explain = |error: &io::Error| install::explain(error, claim.entry.size, &self.ends.partials);
        if claim.entry.size <= SMALL_LEN_MAX
            && let Some(bytes) = self.fetch_small(claim)
        {
            let complete = self.write_small(claim.entry.clone(), &bytes);
            return complete.map(Some).map_err(|error| explain(&error));
        }
        let Some(groups) = self.group_hashes(claim) else { return Ok(None) };
        self.download.lock().size = claim.entry.size;
        self.fetch_groups(claim, groups).map_err(|error| explain(&error))
    }

    /// Fetches a small file in one piece from one peer after the other. It is verified as a whole, so that no outboard is
    /// needed and nothing is stored before it is complete.
    fn fetch_small(&self, claim: &SearchResult) -> Option<Vec<u8>> {
        let Entry { content, size, .. } = &claim.entry;
        for peer in self.others(claim).into_iter().take(SMALL_PEERS_MAX) {
            match self.ends.source.bytes(peer, content, *size, 0..*size) {
                Ok(bytes) if bytes.len() as u64 == *size && Content::of(&bytes) == *content => {
                    let mut progress = self.download.lock();
                    (progress.size, progress.bytes) = (*size, *size);
                    progress.source(peer).bytes = *size;
                    return Some(bytes);
                }
                Ok(_) => {
                    tracing::warn!(%peer, %content, "a peer sent bytes that are not those of the file");
                    self.download.lock().source(peer).lie(WRONG_BYTES);
                    tell_wrong(&self.ends.source, peer, *content);
                }
                Err(error) => self.download.lock().source(peer).trouble = Some(error.to_string()),
            }
        }
        None
    }

    /// Writes a small file to the folder for partial files, to be installed from there.
    fn write_small(&self, entry: Entry, bytes: &[u8]) -> io::Result<CompleteFile> {
        if hashing::outboard_len(entry.size) > 0 {
            let (_, outboard) = hashing::hash_bytes(bytes);
            self.ends.shared.keep_outboard(&entry.content, &outboard)?;
        }
        let path = partial::data_path(&self.ends.partials, &entry.content, entry.size);
        let mut file = File::create(&path)?;
        if let Err(error) = file.write_all(bytes) {
            // The file is useless now. If it cannot be removed, it is cleaned up later.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(CompleteFile { entry, path, unsynced: Some(file), download: Arc::clone(self.download) })
    }

    /// The hashes of the content's groups, from the first peer that has them.
    fn group_hashes(&self, claim: &SearchResult) -> Option<GroupHashes> {
        let Entry { content, size, .. } = &claim.entry;
        if let Some(groups) = GroupHashes::from_outboard(content, *size, &[]) {
            return Some(groups);
        }
        for peer in self.others(claim) {
            match self.ends.source.outboard(peer, content, *size) {
                Ok(outboard) => match GroupHashes::from_outboard(content, *size, &outboard) {
                    Some(groups) => {
                        if let Err(error) = self.ends.shared.keep_outboard(content, &outboard) {
                            tracing::warn!(%error, "the hashes of a file cannot be saved");
                        }
                        return Some(groups);
                    }
                    None => {
                        tracing::warn!(%peer, %content, "a peer sent hashes that are not those of the file");
                        self.download.lock().source(peer).lie(WRONG_HASHES);
                        tell_wrong(&self.ends.source, peer, *content);
                    }
                },
                Err(error) => self.download.lock().source(peer).trouble = Some(error.to_string()),
            }
        }
        None
    }

    /// Fetches all groups from all peers that have them. `None` if the peers could not send them all.
    fn fetch_groups(&self, claim: &SearchResult, groups: GroupHashes) -> io::Result<Option<CompleteFile>> {
        let entry = claim.entry.clone();
        let partial = PartialFile::open(&self.ends.partials, &entry.content, entry.size)?;
        let fetch = Arc::new(Fetch::new(
            (entry.content, groups),
            partial,
            Arc::clone(&self.ends.source),
            Arc::clone(self.download),
        ));
        let done = self.ask_all(claim, &fetch);
        let partial = fetch.stop()?;
        if !done? {
            return Ok(None);
        }
        let path = partial.finish()?.to_owned();
        Ok(Some(CompleteFile { entry, path, unsynced: None, download: Arc::clone(self.download) }))
    }

    /// Asks all peers that have the content, and those that come to have it, until it is complete or there has been nobody
    /// to ask for too long. If other peers claim another size, it stops as soon as there is nobody to ask.
    fn ask_all(&self, claim: &SearchResult, fetch: &Arc<Fetch>) -> io::Result<bool> {
        let (mut claim, mut alone_since, mut disputed) = (claim.clone(), Instant::now(), false);
        loop {
            fetch.ask(&self.others(&claim))?;
            if fetch.wait(SEARCH_INTERVAL)? {
                return Ok(true);
            }
            if self.download.is_cancelled() {
                return Ok(false);
            }
            match fetch.is_active() {
                false if disputed || alone_since.elapsed() >= self.patience(&claim) => return Ok(false),
                false => thread::sleep(PAUSE),
                true => alone_since = Instant::now(),
            }
            let claims = self.search();
            disputed = claims.len() > 1;
            if let Some(now) = claims.into_iter().find(|now| now.entry.size == claim.entry.size) {
                claim.peers = now.peers;
            }
        }
    }

    /// How long to continue without a peer to ask.
    fn patience(&self, claim: &SearchResult) -> Duration {
        if self.others(claim).is_empty() { GIVE_UP_UNKNOWN_AFTER } else { GIVE_UP_AFTER }
    }

    /// The peers of a claim except this one and those that sent wrong content, in random order.
    fn others(&self, claim: &SearchResult) -> Vec<SocketAddr> {
        let progress = self.download.lock();
        let lied = |peer: &SocketAddr| progress.sources.get(peer).is_some_and(|source| source.lied);
        let own_address = self.ends.own_address.get();
        let mut others: Vec<_> =
            claim.peers.iter().filter(|peer| Some(*peer) != own_address && !lied(peer)).copied().collect();
        fastrand::shuffle(&mut others);
        others
    }

    /// Why the content could not be fetched. If something is wrong with the index, peers may have it that are not known.
    fn explain_failure(&self) -> String {
        if self.download.is_cancelled() {
            return CANCELLED.into();
        }
        let (progress, index) = (self.download.lock(), self.ends.index.warning());
        let troubles = progress
            .sources
            .iter()
            .filter_map(|(peer, source)| source.trouble.as_ref().map(|trouble| format!("{peer}: {trouble}")));
        let troubles: Vec<_> =
            troubles.chain(index.clone().map(|warning| warning.replace('\n', "; "))).collect();
        match (&troubles[..], index) {
            ([], _) => "nobody has it now; search for it again later".into(),
            ([index], Some(_)) => format!("nobody is known to have it: {index}"),
            (troubles, _) => {
                format!(
                    "no peer could give all of it ({}); the part already downloaded is kept",
                    troubles.join("; ")
                )
            }
        }
    }
}

/// Groups search results by the size that they claim, the size with most peers first, because some peers may lie about it.
/// Leaves out impossible sizes.
fn claims(found: &[SearchResult]) -> Vec<SearchResult> {
    let mut claims: Vec<SearchResult> = Vec::new();
    for file in found.iter().filter(|file| file.entry.is_obtainable()) {
        match claims.iter_mut().find(|claim| claim.entry.size == file.entry.size) {
            Some(same) => {
                same.peers.extend(&file.peers);
                same.peers.sort_unstable();
                same.peers.dedup();
            }
            None => claims.push(file.clone()),
        }
    }
    claims.sort_by_key(|claim| Reverse(claim.peers.len()));
    claims
}
