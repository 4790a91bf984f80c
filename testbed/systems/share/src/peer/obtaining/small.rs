//! Content that fits one piece, from one peer after the other: checked as a whole, so that no hashes are asked for and
//! nothing is kept of it before it is all there.

use std::{
    fs::{self, File},
    io::{self, Write},
    sync::Arc,
};

use super::{Obtaining, placing::Whole, progress::Tracked};
use crate::{
    content::Content,
    peer::hashing,
    seam::{Entry, Found},
};

/// Longest content that is had in one piece, bytes.
pub(crate) const LEN_MAX: u64 = 1024 * 1024;
/// How many peers are asked in turn; then it is had as longer content is, from several at once.
const PEERS_MAX: usize = 3;

impl Obtaining {
    /// The right bytes of a small file, from one of the peers that say they have it.
    pub(super) fn ask_small(&self, claim: &Found, progress: &Tracked) -> Option<Vec<u8>> {
        let Entry { content, size, .. } = &claim.entry;
        for peer in self.others(claim, progress).into_iter().take(PEERS_MAX) {
            match self.obtain.bytes(peer, content, *size, 0..*size) {
                Ok(bytes) if bytes.len() as u64 == *size && Content::of(&bytes) == *content => {
                    let mut progress = progress.lock();
                    (progress.size, progress.bytes) = (*size, *size);
                    progress.source(peer).bytes = *size;
                    return Some(bytes);
                }
                Ok(_) => {
                    tracing::warn!(%peer, %content, "a peer sent bytes that are not those of the file");
                    progress.lock().source(peer).lie("it sent bytes that are not those of the file");
                }
                Err(error) => progress.lock().source(peer).trouble = Some(error.to_string()),
            }
        }
        None
    }

    /// Writes a small file aside, to be placed.
    pub(super) fn write_small(
        &self,
        entry: Entry,
        bytes: &[u8],
        progress: &Arc<Tracked>,
    ) -> io::Result<Whole> {
        if hashing::outboard_len(entry.size) > 0 {
            let (_, outboard) = hashing::name_bytes(bytes);
            self.sharing.keep_outboard(&entry.content, &outboard)?;
        }
        let path = self.parts.join(format!("{}.data", entry.content));
        let mut file = File::create(&path)?;
        if let Err(error) = file.write_all(bytes) {
            // Nothing of use; what cannot be removed is cleaned away later.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(Whole { entry, path, unsynced: Some(file), progress: Arc::clone(progress) })
    }
}
