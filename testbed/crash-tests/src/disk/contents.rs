//! The bytes of a file: what programs read, what was synced, and what a power cut may leave of the difference.

use std::collections::BTreeMap;

/// The unit in which a kernel writes to a disk, bytes.
pub(super) const PAGE: usize = 4096;
/// The unit that a disk writes whole, bytes.
const SECTOR: usize = 512;

/// The bytes of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// What changed since the last sync, oldest first.
    since: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize { from: usize, to: usize },
}

/// How much of what was not synced a cut leaves of one file.
#[derive(Debug, Clone, Copy)]
enum Luck {
    Nothing,
    Everything,
    Some,
}

impl Contents {
    /// Contents that are on the disk.
    fn synced(bytes: Vec<u8>) -> Self {
        Self { now: bytes.clone(), synced: bytes, since: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.now.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.now
    }

    pub(super) fn read(&self, at: usize, len: usize) -> &[u8] {
        let end = at.saturating_add(len).min(self.now.len());
        self.now.get(at..end).unwrap_or_default()
    }

    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let change = Change::Write { at, bytes: bytes.to_vec() };
        change.apply(&mut self.now);
        self.since.push(change);
    }

    pub(super) fn resize(&mut self, to: usize) {
        let from = self.now.len();
        self.now.resize(to, 0);
        self.since.push(Change::Resize { from, to });
    }

    /// Puts everything on the disk.
    pub(super) fn sync(&mut self) {
        for change in self.since.drain(..) {
            change.apply(&mut self.synced);
        }
    }

    /// What is on the disk after a cut. The length and each page are as they were at the last sync or after any later
    /// change, each by itself; a page that was being written may have old and new sectors. What was cut off by a change of
    /// the length stays away if that length is there.
    pub(super) fn cut(&self, random: &mut fastrand::Rng) -> Self {
        if self.since.is_empty() {
            return Self::synced(self.synced.clone());
        }
        let luck = [Luck::Nothing, Luck::Everything, Luck::Some, Luck::Some][random.usize(..4)];
        let resized = luck.draw(0, self.since.len(), random);
        let mut left = self.synced.clone();
        left.resize(self.len_after(resized), 0);
        for (page, changes) in self.changes_by_page() {
            let start = page * PAGE;
            let (low, high) = self.bounds(&changes, start, resized);
            let torn = luck.is_some() && random.u8(..8) == 0;
            let unit = if torn { SECTOR } else { PAGE };
            for at in (start..start + PAGE).step_by(unit) {
                let applied = luck.draw(low, high, random);
                self.rebuild(&changes[..applied], at, unit, &mut left);
            }
        }
        Self::synced(left)
    }

    /// The length after the first `count` changes.
    fn len_after(&self, count: usize) -> usize {
        self.since[..count].iter().fold(self.synced.len(), |len, change| match change {
            Change::Write { at, bytes } => len.max(at + bytes.len()),
            Change::Resize { to, .. } => *to,
        })
    }

    /// The changes that touch each page, by their numbers.
    fn changes_by_page(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut pages: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, change) in self.since.iter().enumerate() {
            let (start, end) = change.extent();
            for page in start / PAGE..end.div_ceil(PAGE) {
                pages.entry(page).or_default().push(number);
            }
        }
        pages
    }

    /// How many of a page's changes are there at least and at most, if the length is that after `resized` changes: bytes
    /// are cut off together with the length, neither before nor after it.
    fn bounds(&self, changes: &[usize], start: usize, resized: usize) -> (usize, usize) {
        let cuts_off = |number: &usize| match self.since[*number] {
            Change::Resize { from, to } => to < from && to < start + PAGE,
            Change::Write { .. } => false,
        };
        let before = changes.partition_point(|number| *number < resized);
        let low = changes[..before].iter().rposition(cuts_off).map_or(0, |place| place + 1);
        let high = changes[before..].iter().position(cuts_off).map_or(changes.len(), |place| before + place);
        (low, high)
    }

    /// Puts what `unit` bytes at `at` were after these changes into `left`, as far as it reaches.
    fn rebuild(&self, changes: &[usize], at: usize, unit: usize, left: &mut [u8]) {
        let mut bytes = vec![0; unit];
        let old = self.synced.get(at..self.synced.len().min(at + unit)).unwrap_or_default();
        bytes[..old.len()].copy_from_slice(old);
        for number in changes {
            self.since[*number].apply_within(at, &mut bytes);
        }
        if let Some(room) = left.get_mut(at..) {
            let len = room.len().min(unit);
            room[..len].copy_from_slice(&bytes[..len]);
        }
    }
}

impl Change {
    fn apply(&self, whole: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                whole.resize(whole.len().max(at + bytes.len()), 0);
                whole[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            Self::Resize { to, .. } => whole.resize(*to, 0),
        }
    }

    /// Where it changes bytes.
    fn extent(&self) -> (usize, usize) {
        match self {
            Self::Write { at, bytes } => (*at, at + bytes.len()),
            Self::Resize { from, to } => (*to, (*from).max(*to)),
        }
    }

    /// Applies it to a piece of the file that starts at `start`.
    fn apply_within(&self, start: usize, piece: &mut [u8]) {
        let (from, to) = self.extent();
        let clip = |at: usize| at.clamp(start, start + piece.len()) - start;
        let (within, skipped) = (clip(from)..clip(to), start.saturating_sub(from));
        let len = within.len();
        match self {
            Self::Write { bytes, .. } if len > 0 => {
                piece[within].copy_from_slice(&bytes[skipped..skipped + len]);
            }
            Self::Write { .. } => {}
            Self::Resize { .. } => piece[within].fill(0),
        }
    }
}

impl Luck {
    /// How many of the changes from `low` to `high` are there.
    fn draw(self, low: usize, high: usize, random: &mut fastrand::Rng) -> usize {
        match self {
            Self::Nothing => low,
            Self::Everything => high,
            Self::Some => random.usize(low..=high),
        }
    }

    fn is_some(self) -> bool {
        matches!(self, Self::Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Write(usize, usize, u8),
        Resize(usize),
        Sync,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..20_000_usize, 1..9_000_usize, 1..=255_u8)
                .prop_map(|(at, len, fill)| Step::Write(at, len, fill)),
            (0..20_000_usize).prop_map(Step::Resize),
            Just(Step::Sync),
        ]
    }

    fn take(contents: &mut Contents, step: &Step) {
        match step {
            Step::Write(at, len, fill) => contents.write(*at, &vec![*fill; *len]),
            Step::Resize(to) => contents.resize(*to),
            Step::Sync => contents.sync(),
        }
    }

    /// The states of the contents since the last sync.
    fn versions(steps: &[Step]) -> (Contents, Vec<Vec<u8>>) {
        let (mut contents, mut versions) = (Contents::default(), vec![Vec::new()]);
        for step in steps {
            take(&mut contents, step);
            if matches!(step, Step::Sync) {
                versions.clear();
            }
            versions.push(contents.bytes().to_vec());
        }
        (contents, versions)
    }

    fn sector(version: &[u8], at: usize) -> Vec<u8> {
        let mut bytes = version.get(at..version.len().min(at + SECTOR)).unwrap_or_default().to_vec();
        bytes.resize(SECTOR, 0);
        bytes
    }

    proptest! {
        #[test]
        fn a_cut_leaves_every_sector_and_the_length_as_they_were_at_some_time_since_the_sync(
            steps in prop::collection::vec(step(), 0..12), seed: u64,
        ) {
            let (contents, versions) = versions(&steps);
            let left = contents.cut(&mut fastrand::Rng::with_seed(seed));
            prop_assert!(versions.iter().any(|version| version.len() == left.len()));
            for at in (0..left.len()).step_by(SECTOR) {
                let there = left.read(at, SECTOR);
                let was = |version: &Vec<u8>| sector(version, at)[..there.len()] == *there;
                prop_assert!(versions.iter().any(was), "at {at}");
            }
        }

        #[test]
        fn what_was_synced_survives_whole(steps in prop::collection::vec(step(), 0..12), seed: u64) {
            let (mut contents, _) = versions(&steps);
            contents.sync();
            let left = contents.cut(&mut fastrand::Rng::with_seed(seed));
            prop_assert_eq!(left.bytes(), contents.bytes());
        }

        #[test]
        fn what_was_written_is_read(steps in prop::collection::vec(step(), 0..12)) {
            let mut plain = Vec::new();
            for step in &steps {
                match step {
                    Step::Write(at, len, fill) => {
                        plain.resize(plain.len().max(at + len), 0);
                        plain[*at..at + len].fill(*fill);
                    }
                    Step::Resize(to) => plain.resize(*to, 0),
                    Step::Sync => {}
                }
            }
            let (contents, _) = versions(&steps);
            prop_assert_eq!(contents.bytes(), &plain[..]);
        }
    }

    /// Which of these a cut leaves, over many seeds.
    fn seen(contents: &Contents, is: impl Fn(&[u8]) -> bool) -> bool {
        (0..500).any(|seed| is(contents.cut(&mut fastrand::Rng::with_seed(seed)).bytes()))
    }

    #[test]
    fn what_was_not_synced_may_be_lost_kept_reordered_and_torn() {
        let mut contents = Contents::default();
        contents.write(0, &[1; 2 * PAGE]);
        contents.sync();
        contents.write(0, &[2; 2 * PAGE]);
        contents.write(0, &[3; 2 * PAGE]);
        for wanted in [(1, 1), (1, 3), (3, 1), (3, 3), (2, 3), (2, 1)] {
            let halves = [[wanted.0; PAGE], [wanted.1; PAGE]].concat();
            assert!(seen(&contents, |left| left == halves), "{wanted:?}");
        }
        assert!(seen(&contents, |left| left[0] != left[SECTOR]), "torn");
    }

    #[test]
    fn a_longer_file_may_have_its_length_without_its_bytes() {
        let mut contents = Contents::default();
        contents.write(0, &[1; 3 * PAGE]);
        assert!(seen(&contents, |left| left == [0; 3 * PAGE]), "only the length");
        assert!(seen(&contents, |left| left.is_empty()), "nothing");
        assert!(seen(&contents, |left| left.len() == 3 * PAGE && left[0] == 0 && left[PAGE] == 1), "a hole");
    }

    #[test]
    fn what_was_cut_off_does_not_come_back_behind_a_newer_end() {
        let mut contents = Contents::default();
        contents.write(0, &[1; 2 * PAGE]);
        contents.sync();
        contents.resize(0);
        contents.write(PAGE, &[2; PAGE]);
        let old_and_new = |left: &[u8]| left.contains(&1) && left.contains(&2);
        assert!(!seen(&contents, old_and_new));
    }
}
