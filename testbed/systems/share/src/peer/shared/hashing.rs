//! Hashes content, and verifies its 16 KiB groups one by one with the hashes between them and the root (Bao; O'Connor et
//! al., BLAKE3, section 6.4).

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use bao_tree::{BaoTree, BlockSize, iter::BaoChunk};
use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

use crate::entry::Content;

/// Length of a group, bytes. A group is verified as a whole.
pub(crate) const GROUP_LEN: u64 = 16 * 1024;
const BLOCK_SIZE: BlockSize = BlockSize::from_chunk_log(4);
/// Length of a pair of hashes in an outboard, bytes.
const PAIR_LEN: u64 = 64;
/// Length that is read and hashed at a time, bytes: a multiple of the group length.
const PIECE_LEN: u64 = 64 * GROUP_LEN;
/// Length of a file per additional hashing thread, bytes.
const PER_THREAD: u64 = 16 * 1024 * 1024;

/// Number of groups in content of this size.
pub(crate) fn group_count(size: u64) -> u64 {
    size.div_ceil(GROUP_LEN).max(1)
}

/// Length of the outboard of content of this size, bytes.
pub(crate) fn outboard_len(size: u64) -> u64 {
    (group_count(size) - 1) * PAIR_LEN
}

/// Hashes a file of this size and returns its outboard: the pairs of hashes in post-order, without the size. Several
/// threads hash a large file.
///
/// # Errors
/// When it cannot be read, or is shorter than `size`.
pub(crate) fn hash_file(file: &File, size: u64) -> io::Result<(Content, Vec<u8>)> {
    if size <= PIECE_LEN {
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        return Ok(hash_bytes(&bytes));
    }
    let pieces: Vec<Mutex<Vec<ChainingValue>>> =
        (0..size.div_ceil(PIECE_LEN)).map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let threads = (size / PER_THREAD).clamp(1, thread::available_parallelism().map_or(1, usize::from) as u64);
    thread::scope(|scope| {
        let hash = || hash_pieces(file, size, &next, &pieces);
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(hash)).collect();
        let panicked = |_| io::Error::other("a thread that hashes panicked");
        others.into_iter().fold(hash(), |so_far, other| so_far.and(other.join().map_err(panicked)?))
    })?;
    let groups =
        pieces.into_iter().flat_map(|piece| piece.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(root(&groups.collect::<Vec<_>>()))
}

/// Hashes bytes in memory and returns their outboard.
pub(crate) fn hash_bytes(bytes: &[u8]) -> (Content, Vec<u8>) {
    if bytes.len() as u64 <= GROUP_LEN {
        return (Content::of(bytes), Vec::new());
    }
    root(&group_hashes(bytes, 0))
}

/// Hashes pieces that no other thread has started.
fn hash_pieces(
    file: &File,
    size: u64,
    next: &AtomicUsize,
    pieces: &[Mutex<Vec<ChainingValue>>],
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_LEN as usize];
    loop {
        let number = next.fetch_add(1, Relaxed);
        let Some(piece) = pieces.get(number) else { return Ok(()) };
        let at = number as u64 * PIECE_LEN;
        let length = usize::try_from((size - at).min(PIECE_LEN)).unwrap_or(0);
        let bytes = buffer.get_mut(..length).unwrap_or_default();
        file.read_exact_at(bytes, at)?;
        *piece.lock().unwrap_or_else(PoisonError::into_inner) = group_hashes(bytes, at);
    }
}

/// The hashes of the groups in `bytes`, which start at offset `at` of content longer than one group.
fn group_hashes(bytes: &[u8], at: u64) -> Vec<ChainingValue> {
    let offsets = (at..).step_by(GROUP_LEN as usize);
    bytes.chunks(GROUP_LEN as usize).zip(offsets).map(|(group, at)| group_hash(group, at)).collect()
}

fn group_hash(group: &[u8], at: u64) -> ChainingValue {
    blake3::Hasher::new().set_input_offset(at).update(group).finalize_non_root()
}

/// The hash and the outboard of content whose groups, at least two, have these hashes.
fn root(groups: &[ChainingValue]) -> (Content, Vec<u8>) {
    let mut outboard = Vec::with_capacity(groups.len() * PAIR_LEN as usize);
    let (left, right) = children(groups, &mut outboard);
    (merge_subtrees_root(&left, &right, Mode::Hash).into(), outboard)
}

/// The hashes of a node's two subtrees. The left one has the largest power of two of groups that leaves some for the right
/// (BLAKE3, section 2.1).
fn children(groups: &[ChainingValue], outboard: &mut Vec<u8>) -> (ChainingValue, ChainingValue) {
    let (left, right) = groups.split_at(groups.len().next_power_of_two() / 2);
    let mut subtree = |groups: &[ChainingValue]| match groups {
        [group] => *group,
        groups => {
            let (left, right) = children(groups, outboard);
            merge_subtrees_non_root(&left, &right, Mode::Hash)
        }
    };
    let (left, right) = (subtree(left), subtree(right));
    outboard.extend_from_slice(&left);
    outboard.extend_from_slice(&right);
    (left, right)
}

/// The hashes of all groups of some content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupHashes {
    size: u64,
    /// The chaining value of each group; the root hash if there is only one group.
    hashes: Vec<[u8; 32]>,
}

/// A node of the tree: either its hash is known, or it is a group whose hash its parent states.
enum Node {
    Known(ChainingValue),
    Group(usize),
}

impl GroupHashes {
    /// Takes the hashes from an outboard, or returns `None` if it is not the content's. `size` is only a claim, so nothing is
    /// allocated beyond the length of the outboard.
    pub(crate) fn from_outboard(content: &Content, size: u64, outboard: &[u8]) -> Option<Self> {
        if group_count(size) == 1 {
            return outboard.is_empty().then(|| Self { size, hashes: vec![*content.as_bytes()] });
        }
        if outboard.len() as u64 != outboard_len(size) {
            return None;
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
                return (root == *content).then_some(Self { size, hashes });
            }
            stack.push(Node::Known(merge_subtrees_non_root(left, right, Mode::Hash)));
        }
        None
    }

    /// Length of the content, bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Number of groups.
    pub(crate) fn count(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// Length of a group, bytes.
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
        group_hash(bytes, group * GROUP_LEN) == *expected
    }
}

/// Compares the hash that a parent states for a child with the known one, or records it for a group.
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
    use std::io::Write;

    use bao_tree::io::sync::outboard_post_order;
    use proptest::prelude::*;

    use super::*;

    fn bytes(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at / 7 + at / 4099) as u8).collect()
    }

    #[test]
    fn content_is_named_as_blake3_has_it_and_every_group_is_told_right() {
        for size in [0, 1, 1024, 16_383, 16_384, 16_385, 32_768, 49_153, 100_000, 1_000_000] {
            let data = bytes(size);
            let (content, outboard) = hash_bytes(&data);
            assert_eq!(content, Content::of(&data), "{size}");
            let mut published = Vec::new();
            outboard_post_order(&data[..], BaoTree::new(size as u64, BLOCK_SIZE), &mut published).unwrap();
            assert_eq!(outboard, published, "{size}");
            assert_eq!(outboard.len() as u64, outboard_len(size as u64));
            let groups = GroupHashes::from_outboard(&content, size as u64, &outboard).unwrap();
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
    fn a_file_hashed_by_several_threads_has_the_same_name() {
        for size in [1, PIECE_LEN - 1, PIECE_LEN + 1, 3 * PER_THREAD + 5 * GROUP_LEN + 1] {
            let data = bytes(size as usize);
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&data).unwrap();
            assert_eq!(hash_file(&file, size).unwrap(), hash_bytes(&data), "{size}");
            assert_eq!(hash_bytes(&data).0, Content::of(&data), "{size}");
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_it_was_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes(20_000)).unwrap();
        assert!(hash_file(&file, 40_000).is_err());
        assert!(hash_file(&file, 40_000_000).is_err());
    }

    #[test]
    fn a_size_that_somebody_made_up_takes_no_room() {
        let (content, outboard) = hash_bytes(&bytes(40_000));
        for size in [1_000_000_000_000_000, i64::MAX as u64, u64::MAX] {
            assert_eq!(GroupHashes::from_outboard(&content, size, &[]), None);
            assert_eq!(GroupHashes::from_outboard(&content, size, &outboard), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_changed_byte_of_a_group_shows(size in 1usize..100_000, at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut data = bytes(size);
            let (content, outboard) = hash_bytes(&data);
            let groups = GroupHashes::from_outboard(&content, size as u64, &outboard).unwrap();
            let at = at.index(size);
            data[at] ^= 1 << bit;
            for (group, part) in data.chunks(GROUP_LEN as usize).enumerate() {
                prop_assert_eq!(groups.holds(group as u64, part), group != at / GROUP_LEN as usize);
            }
        }

        #[test]
        fn a_changed_byte_of_an_outboard_shows(size in 16_385usize..200_000, at in any::<prop::sample::Index>()) {
            let data = bytes(size);
            let (content, mut outboard) = hash_bytes(&data);
            let at = at.index(outboard.len());
            outboard[at] ^= 1;
            prop_assert_eq!(GroupHashes::from_outboard(&content, size as u64, &outboard), None);
        }

        #[test]
        fn another_number_of_groups_or_anything_else_is_no_outboard(
            size in 0u64..200_000, other in 0u64..300_000, junk in prop::collection::vec(any::<u8>(), 0..300)
        ) {
            let (content, outboard) = hash_bytes(&bytes(size as usize));
            let learnt = GroupHashes::from_outboard(&content, other, &outboard).is_some();
            prop_assert_eq!(learnt, group_count(size) == group_count(other));
            prop_assert!(GroupHashes::from_outboard(&content, 100_000, &junk).is_none());
        }
    }
}
