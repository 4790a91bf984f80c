//! What others say of some content, which may be false.

use std::cmp::Reverse;

use crate::seam::Found;

/// What is said of some content, by size: that of most peers first, for somebody may lie about it. What nobody can have is
/// passed over.
pub(super) fn claims(found: &[Found]) -> Vec<Found> {
    let mut claims: Vec<Found> = Vec::new();
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
