//! The names in folders: what programs see, what was synced, and what a power cut may leave of the difference.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsString,
};

/// The number of a file or folder.
pub(super) type Number = u64;
/// The names in one folder.
pub(super) type Names = BTreeMap<OsString, Number>;
/// A place for a name: the folder and the name.
type Place = (Number, OsString);

/// A change of names that happens as a whole or not at all: one name, or both of a rename.
#[derive(Debug, Clone)]
pub(super) struct Change(pub(super) Vec<(Place, Option<Number>)>);

impl Change {
    /// One name comes to stand for this, or for nothing.
    pub(super) fn one(folder: Number, name: OsString, stands_for: Option<Number>) -> Self {
        Self(vec![((folder, name), stands_for)])
    }

    fn touches(&self, folder: Number) -> bool {
        self.0.iter().any(|((changed, _), _)| *changed == folder)
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.0.iter().map(|(place, _)| place)
    }
}

/// The names on the disk, and the changes that are not there yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Synced {
    names: HashMap<Number, Names>,
    /// Changes since, oldest first.
    since: Vec<Change>,
}

impl Synced {
    /// Names that are on the disk.
    pub(super) fn with(names: HashMap<Number, Names>) -> Self {
        Self { names, since: Vec::new() }
    }

    pub(super) fn note(&mut self, change: Change) {
        self.since.push(change);
    }

    /// Puts the changes of a folder on the disk.
    pub(super) fn sync(&mut self, folder: Number) {
        self.settle(|change| change.touches(folder));
    }

    /// The names on the disk after a cut, which leaves any of the changes.
    pub(super) fn cut(mut self, random: &mut fastrand::Rng) -> HashMap<Number, Names> {
        let share = [0, 50, 100][random.usize(..3)];
        self.settle(|_| random.u8(..100) < share);
        self.names
    }

    /// Puts the chosen changes on the disk, with the earlier ones of the same places: those are overwritten there, and
    /// nothing else could have been.
    fn settle(&mut self, mut is_chosen: impl FnMut(&Change) -> bool) {
        let mut needed: HashSet<Place> = HashSet::new();
        let mut settled = vec![false; self.since.len()];
        for (change, settled) in self.since.iter().zip(&mut settled).rev() {
            *settled = is_chosen(change) || change.places().any(|place| needed.contains(place));
            if *settled {
                needed.extend(change.places().cloned());
            }
        }
        let mut settled = settled.into_iter();
        let (now, later) = self.since.drain(..).partition(|_| settled.next().unwrap_or(false));
        self.since = later;
        let now: Vec<Change> = now;
        now.into_iter().for_each(|change| self.apply(change));
    }

    fn apply(&mut self, change: Change) {
        for ((folder, name), stands_for) in change.0 {
            let names = self.names.entry(folder).or_default();
            match stands_for {
                Some(number) => names.insert(name, number),
                None => names.remove(&name),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Number = 1;
    const B: Number = 2;

    fn made(folder: Number, name: &str, number: Number) -> Change {
        Change::one(folder, name.into(), Some(number))
    }

    fn moved(from: (Number, &str), to: (Number, &str), number: Number) -> Change {
        Change(vec![((from.0, from.1.into()), None), ((to.0, to.1.into()), Some(number))])
    }

    fn outcomes(
        names: &Synced,
        see: impl Fn(&HashMap<Number, Names>) -> String,
    ) -> std::collections::BTreeSet<String> {
        (0..200).map(|seed| see(&names.clone().cut(&mut fastrand::Rng::with_seed(seed)))).collect()
    }

    /// All names in a folder and what they stand for, such as `x1 y2`.
    fn list(names: &HashMap<Number, Names>, folder: Number) -> String {
        let names = names.get(&folder).into_iter().flatten();
        let shown: Vec<String> = names.map(|(name, number)| format!("{}{number}", name.display())).collect();
        shown.join(" ")
    }

    #[test]
    fn names_survive_one_without_the_other_until_their_folder_is_synced() {
        let mut names = Synced::default();
        names.note(made(A, "x", 1));
        names.note(made(A, "y", 2));
        names.note(made(B, "z", 3));
        let of_a = |names: &Synced| outcomes(names, |left| list(left, A));
        assert_eq!(of_a(&names), ["", "x1", "x1 y2", "y2"].map(String::from).into());
        names.sync(A);
        assert_eq!(of_a(&names), ["x1 y2".to_owned()].into());
        assert_eq!(outcomes(&names, |left| list(left, B)), ["", "z3"].map(String::from).into());
    }

    #[test]
    fn a_rename_is_atomic_even_between_folders() {
        let mut names = Synced::default();
        names.note(made(A, "x", 1));
        names.sync(A);
        names.note(moved((A, "x"), (B, "y"), 1));
        let both = |left: &HashMap<Number, Names>| format!("{}|{}", list(left, A), list(left, B));
        assert_eq!(outcomes(&names, both), ["x1|", "|y1"].map(String::from).into());
        names.sync(B);
        assert_eq!(outcomes(&names, both), ["|y1".to_owned()].into());
    }

    #[test]
    fn a_replaced_name_stands_for_the_old_file_or_the_new_one() {
        let mut names = Synced::default();
        names.note(made(A, "x", 1));
        names.sync(A);
        names.note(made(A, "new", 2));
        names.note(moved((A, "new"), (A, "x"), 2));
        let expected = ["new2 x1", "x1", "x2"].map(String::from).into();
        assert_eq!(outcomes(&names, |left| list(left, A)), expected);
    }
}
