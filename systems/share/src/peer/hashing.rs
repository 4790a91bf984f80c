//! Naming content: its hash, and the hashes between that and its 16 KiB groups, by which each group can be told to be
//! right by itself (Bao; O'Connor et al., BLAKE3, section 6.4).

use std::io::{self, Read};

use bao_tree::{BaoTree, BlockSize, io::sync::outboard_post_order, iter::BaoChunk};
use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

use crate::content::Content;

/// Length of a group, bytes: what is told right or wrong as one.
pub(crate) const GROUP_LEN: u64 = 16 * 1024;
const BLOCK_SIZE: BlockSize = BlockSize::from_chunk_log(4);
/// Length of a pair of hashes in an outboard, bytes.
const PAIR_LEN: u64 = 64;

/// How many groups content of this size has.
pub(crate) fn group_count(size: u64) -> u64 {
    size.div_ceil(GROUP_LEN).max(1)
}

/// Length of the outboard of content of this size, bytes.
pub(crate) fn outboard_len(size: u64) -> u64 {
    (group_count(size) - 1) * PAIR_LEN
}

/// Names content of this size, and tells its outboard: the pairs of hashes in post-order, without the size.
///
/// # Errors
/// When it cannot be read, or is shorter.
pub(crate) fn name(data: impl Read, size: u64) -> io::Result<(Content, Vec<u8>)> {
    let mut outboard = Vec::new();
    let hash = outboard_post_order(data, BaoTree::new(size, BLOCK_SIZE), &mut outboard)?;
    Ok((hash.into(), outboard))
}

/// What each group of some content must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Groups {
    size: u64,
    /// The chaining value of each; of a single one the root's.
    hashes: Vec<[u8; 32]>,
}

/// A node of the tree whose hash is known, or is the hash of this group, which its parent tells.
enum Node {
    Known(ChainingValue),
    Group(usize),
}

impl Groups {
    /// Learns them from an outboard, unless it is not that of the content: then it is of no use at all.
    pub(crate) fn learn(content: &Content, size: u64, outboard: &[u8]) -> Option<Self> {
        if group_count(size) == 1 {
            return outboard.is_empty().then(|| Self { size, hashes: vec![*content.as_bytes()] });
        }
        let mut pairs = outboard.chunks_exact(PAIR_LEN as usize);
        let mut hashes = vec![[0; 32]; usize::try_from(group_count(size)).ok()?];
        let (mut stack, mut groups) = (Vec::new(), 0);
        for chunk in BaoTree::new(size, BLOCK_SIZE).post_order_chunks_iter() {
            let BaoChunk::Parent { is_root, .. } = chunk else {
                stack.push(Node::Group(groups));
                groups += 1;
                continue;
            };
            let (left, right) = pairs.next()?.split_first_chunk::<32>()?;
            let right = right.first_chunk::<32>()?;
            settle(stack.pop()?, right, &mut hashes)?;
            settle(stack.pop()?, left, &mut hashes)?;
            if is_root {
                let root = Content::from(merge_subtrees_root(left, right, Mode::Hash));
                return (root == *content && pairs.next().is_none()).then_some(Self { size, hashes });
            }
            stack.push(Node::Known(merge_subtrees_non_root(left, right, Mode::Hash)));
        }
        None
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// Length of this one, bytes.
    pub(crate) fn len(&self, group: u64) -> u64 {
        self.size.saturating_sub(group.saturating_mul(GROUP_LEN)).min(GROUP_LEN)
    }

    /// Whether these bytes are the group's.
    pub(crate) fn holds(&self, group: u64, bytes: &[u8]) -> bool {
        let Some(expected) = usize::try_from(group).ok().and_then(|group| self.hashes.get(group)) else {
            return false;
        };
        if bytes.len() as u64 != self.len(group) {
            return false;
        }
        if self.count() == 1 {
            return blake3::hash(bytes).as_bytes() == expected;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(group * GROUP_LEN).update(bytes);
        hasher.finalize_non_root() == *expected
    }
}

/// What the parent says of a child must be what is known of it.
fn settle(node: Node, said: &ChainingValue, hashes: &mut [[u8; 32]]) -> Option<()> {
    match node {
        Node::Known(hash) => (hash == *said).then_some(()),
        Node::Group(group) => {
            *hashes.get_mut(group)? = *said;
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at / 7 + at / 4099) as u8).collect()
    }

    #[test]
    fn content_is_named_as_blake3_has_it_and_every_group_is_told_right() {
        for size in [0, 1, 1024, 16_383, 16_384, 16_385, 32_768, 49_153, 100_000, 1_000_000] {
            let data = bytes(size);
            let (content, outboard) = name(&data[..], size as u64).unwrap();
            assert_eq!(content, Content::of(&data), "{size}");
            assert_eq!(outboard.len() as u64, outboard_len(size as u64));
            let groups = Groups::learn(&content, size as u64, &outboard).unwrap();
            assert_eq!(groups.count(), group_count(size as u64));
            for group in 0..groups.count() {
                let from = (group * GROUP_LEN) as usize;
                let part = &data[from..from + groups.len(group) as usize];
                assert!(groups.holds(group, part), "{size}, group {group}");
                assert!(!groups.holds(group + 1, part));
            }
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_it_was_is_an_error() {
        assert!(name(&bytes(20_000)[..], 40_000).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_changed_byte_of_a_group_shows(size in 1usize..100_000, at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut data = bytes(size);
            let (content, outboard) = name(&data[..], size as u64).unwrap();
            let groups = Groups::learn(&content, size as u64, &outboard).unwrap();
            let at = at.index(size);
            data[at] ^= 1 << bit;
            for (group, part) in data.chunks(GROUP_LEN as usize).enumerate() {
                prop_assert_eq!(groups.holds(group as u64, part), group != at / GROUP_LEN as usize);
            }
        }

        #[test]
        fn a_changed_byte_of_an_outboard_shows(size in 16_385usize..200_000, at in any::<prop::sample::Index>()) {
            let data = bytes(size);
            let (content, mut outboard) = name(&data[..], size as u64).unwrap();
            let at = at.index(outboard.len());
            outboard[at] ^= 1;
            prop_assert_eq!(Groups::learn(&content, size as u64, &outboard), None);
        }

        #[test]
        fn another_number_of_groups_or_anything_else_is_no_outboard(
            size in 0u64..200_000, other in 0u64..300_000, junk in prop::collection::vec(any::<u8>(), 0..300)
        ) {
            let (content, outboard) = name(&bytes(size as usize)[..], size).unwrap();
            let learnt = Groups::learn(&content, other, &outboard).is_some();
            prop_assert_eq!(learnt, group_count(size) == group_count(other));
            prop_assert!(Groups::learn(&content, 100_000, &junk).is_none());
        }
    }
}
