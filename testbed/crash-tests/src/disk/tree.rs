//! Files and folders in memory, as programs see them and as a power cut leaves them.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs, io,
    path::Path,
    time::SystemTime,
};

use fuser::Errno;

use super::{
    contents::Contents,
    names::{Change, Names, Number, Synced},
};

/// The number of the topmost folder.
pub(super) const ROOT: Number = 1;

/// Files and folders.
#[derive(Debug, Clone)]
pub struct Tree {
    nodes: HashMap<Number, Node>,
    synced: Synced,
    next: Number,
}

/// A file or a folder.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) changed: SystemTime,
    pub(super) links: u32,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    File(Contents),
    Folder(Names),
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node::new(Kind::Folder(Names::new()), 0o755);
        Self { nodes: [(ROOT, root)].into(), synced: Synced::default(), next: ROOT + 1 }
    }
}

impl Tree {
    pub(super) fn node(&self, number: Number) -> Result<&Node, Errno> {
        self.nodes.get(&number).ok_or(Errno::ENOENT)
    }

    pub(super) fn node_mut(&mut self, number: Number) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number).ok_or(Errno::ENOENT)
    }

    pub(super) fn names(&self, folder: Number) -> Result<&Names, Errno> {
        match &self.node(folder)?.kind {
            Kind::Folder(names) => Ok(names),
            Kind::File(_) => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn file(&self, number: Number) -> Result<&Contents, Errno> {
        match &self.node(number)?.kind {
            Kind::File(contents) => Ok(contents),
            Kind::Folder(_) => Err(Errno::EISDIR),
        }
    }

    fn file_mut(&mut self, number: Number) -> Result<&mut Contents, Errno> {
        let node = self.node_mut(number)?;
        match &mut node.kind {
            Kind::File(contents) => {
                node.changed = SystemTime::now();
                Ok(contents)
            }
            Kind::Folder(_) => Err(Errno::EISDIR),
        }
    }

    pub(super) fn look_up(&self, folder: Number, name: &OsStr) -> Result<Number, Errno> {
        self.names(folder)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    pub(super) fn write(&mut self, file: Number, at: usize, bytes: &[u8]) -> Result<(), Errno> {
        self.file_mut(file)?.write(at, bytes);
        Ok(())
    }

    pub(super) fn resize(&mut self, file: Number, to: usize) -> Result<(), Errno> {
        self.file_mut(file)?.resize(to);
        Ok(())
    }

    /// Creates an empty file or folder.
    pub(super) fn create(
        &mut self,
        folder: Number,
        name: &OsStr,
        kind: Kind,
        mode: u32,
    ) -> Result<Number, Errno> {
        if self.names(folder)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, Node::new(kind, mode));
        self.change(Change::one(folder, name.to_owned(), Some(number)))?;
        Ok(number)
    }

    /// Gives a file another name.
    pub(super) fn link(&mut self, file: Number, folder: Number, name: &OsStr) -> Result<(), Errno> {
        self.file(file)?;
        if self.names(folder)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        self.change(Change::one(folder, name.to_owned(), Some(file)))
    }

    /// Removes the name of a file, or of an empty folder.
    pub(super) fn remove(&mut self, folder: Number, name: &OsStr, is_folder: bool) -> Result<(), Errno> {
        let number = self.look_up(folder, name)?;
        match (&self.node(number)?.kind, is_folder) {
            (Kind::Folder(_), false) => return Err(Errno::EISDIR),
            (Kind::File(_), true) => return Err(Errno::ENOTDIR),
            (Kind::Folder(names), true) if !names.is_empty() => return Err(Errno::ENOTEMPTY),
            _ => {}
        }
        self.change(Change::one(folder, name.to_owned(), None))
    }

    /// Moves a name, over a file of the new one.
    pub(super) fn rename(&mut self, from: (Number, &OsStr), to: (Number, &OsStr)) -> Result<(), Errno> {
        let number = self.look_up(from.0, from.1)?;
        let replaced = self.names(to.0)?.get(to.1).copied();
        if replaced == Some(number) {
            return Ok(());
        }
        if let Some(replaced) = replaced {
            self.file(replaced)?;
            self.file(number)?;
        }
        let place = |place: (Number, &OsStr)| (place.0, place.1.to_owned());
        self.change(Change(vec![(place(from), None), (place(to), Some(number))]))
    }

    fn change(&mut self, change: Change) -> Result<(), Errno> {
        for ((folder, name), stands_for) in &change.0 {
            self.stand(*folder, name, *stands_for)?;
        }
        self.synced.note(change);
        Ok(())
    }

    /// Makes a name stand for a file or folder, or for nothing.
    fn stand(&mut self, folder: Number, name: &OsString, stands_for: Option<Number>) -> Result<(), Errno> {
        let node = self.node_mut(folder)?;
        node.changed = SystemTime::now();
        let Kind::Folder(names) = &mut node.kind else { return Err(Errno::ENOTDIR) };
        let before = match stands_for {
            Some(number) => names.insert(name.clone(), number),
            None => names.remove(name),
        };
        if let Some(node) = before.and_then(|number| self.nodes.get_mut(&number)) {
            node.links -= 1;
        }
        if let Some(node) = stands_for.and_then(|number| self.nodes.get_mut(&number)) {
            node.links += 1;
        }
        Ok(())
    }

    /// Puts the bytes and the length of a file on the disk, and no name of it; or the names in a folder, and nothing of
    /// what they stand for.
    pub(super) fn sync(&mut self, number: Number) -> Result<(), Errno> {
        match &mut self.node_mut(number)?.kind {
            Kind::File(contents) => contents.sync(),
            Kind::Folder(_) => self.synced.sync(number),
        }
        Ok(())
    }

    /// What a power cut leaves.
    pub fn cut(self, random: &mut fastrand::Rng) -> Self {
        let names = self.synced.cut(random);
        let mut reached: HashSet<Number> = [ROOT].into();
        let mut queue = vec![ROOT];
        while let Some(folder) = queue.pop() {
            let within = names.get(&folder).into_iter().flat_map(Names::values);
            queue.extend(within.filter(|number| reached.insert(**number)));
        }
        let mut reached: Vec<Number> = reached.into_iter().collect();
        // In the same order for the same seed.
        reached.sort_unstable();
        let mut nodes = HashMap::new();
        for number in reached {
            let Some(node) = self.nodes.get(&number) else { continue };
            let kind = match &node.kind {
                Kind::File(contents) => Kind::File(contents.cut(random)),
                Kind::Folder(_) => Kind::Folder(names.get(&number).cloned().unwrap_or_default()),
            };
            nodes.insert(number, Node { kind, links: 0, ..node.clone() });
        }
        Self::of(nodes, self.next)
    }

    /// A tree that is on the disk.
    fn of(mut nodes: HashMap<Number, Node>, next: Number) -> Self {
        let folders = nodes.iter().filter_map(|(number, node)| match &node.kind {
            Kind::Folder(names) => Some((*number, names.clone())),
            Kind::File(_) => None,
        });
        let names: HashMap<Number, Names> = folders.collect();
        for number in names.values().flat_map(Names::values) {
            nodes.entry(*number).and_modify(|node| node.links += 1);
        }
        Self { nodes, synced: Synced::with(names), next }
    }

    /// Copies everything into a folder of another file system.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn copy_to(&self, path: &Path) -> io::Result<()> {
        self.copy_folder(ROOT, path)
    }

    fn copy_folder(&self, folder: Number, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)?;
        for (name, number) in self.names(folder).map_err(broken)? {
            match &self.node(*number).map_err(broken)?.kind {
                Kind::File(contents) => fs::write(path.join(name), contents.bytes())?,
                Kind::Folder(_) => self.copy_folder(*number, &path.join(name))?,
            }
        }
        Ok(())
    }
}

impl Node {
    fn new(kind: Kind, mode: u32) -> Self {
        Self { kind, mode, changed: SystemTime::now(), links: 0 }
    }
}

fn broken(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Kind {
        Kind::File(Contents::default())
    }

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    /// What cuts with many seeds leave: the names in the topmost folder with the bytes that they stand for.
    fn outcomes(tree: &Tree) -> std::collections::BTreeSet<String> {
        let show = |tree: &Tree| {
            let names = tree.names(ROOT).unwrap().iter();
            let shown: Vec<String> = names
                .map(|(name, number)| match &tree.node(*number).unwrap().kind {
                    Kind::File(contents) => {
                        format!("{}={}", name.display(), String::from_utf8_lossy(contents.bytes()))
                    }
                    Kind::Folder(names) => format!("{}/{}", name.display(), names.len()),
                })
                .collect();
            shown.join(" ")
        };
        (0..300).map(|seed| show(&tree.clone().cut(&mut fastrand::Rng::with_seed(seed)))).collect()
    }

    #[test]
    fn a_synced_file_without_a_synced_name_may_be_gone() {
        let mut tree = Tree::default();
        let number = tree.create(ROOT, name("a"), file(), 0o600).unwrap();
        tree.write(number, 0, b"x").unwrap();
        assert_eq!(outcomes(&tree), ["", "a=", "a=\0", "a=x"].map(String::from).into());
        tree.sync(number).unwrap();
        assert_eq!(outcomes(&tree), ["", "a=x"].map(String::from).into());
        tree.sync(ROOT).unwrap();
        assert_eq!(outcomes(&tree), ["a=x".to_owned()].into());
    }

    #[test]
    fn a_synced_name_without_synced_bytes_may_stand_for_none() {
        let mut tree = Tree::default();
        let number = tree.create(ROOT, name("a"), file(), 0o600).unwrap();
        tree.write(number, 0, b"x").unwrap();
        tree.sync(ROOT).unwrap();
        assert_eq!(outcomes(&tree), ["a=", "a=\0", "a=x"].map(String::from).into());
    }

    #[test]
    fn a_file_written_beside_and_renamed_is_the_old_or_the_new_one() {
        let mut tree = Tree::default();
        for (text, to) in [(b"1", "a"), (b"2", "new")] {
            let number = tree.create(ROOT, name(to), file(), 0o600).unwrap();
            tree.write(number, 0, text).unwrap();
            tree.sync(number).unwrap();
        }
        tree.sync(ROOT).unwrap();
        tree.rename((ROOT, name("new")), (ROOT, name("a"))).unwrap();
        assert_eq!(outcomes(&tree), ["a=1 new=2", "a=2"].map(String::from).into());
        tree.sync(ROOT).unwrap();
        assert_eq!(outcomes(&tree), ["a=2".to_owned()].into());
    }

    #[test]
    fn what_lies_in_a_folder_goes_with_its_name() {
        let mut tree = Tree::default();
        let folder = tree.create(ROOT, name("d"), Kind::Folder(Names::new()), 0o700).unwrap();
        let number = tree.create(folder, name("a"), file(), 0o600).unwrap();
        tree.sync(number).unwrap();
        tree.sync(folder).unwrap();
        assert_eq!(outcomes(&tree), ["", "d/1"].map(String::from).into());
    }

    #[test]
    fn a_removed_file_may_come_back_until_its_folder_is_synced() {
        let mut tree = Tree::default();
        tree.create(ROOT, name("a"), file(), 0o600).unwrap();
        tree.sync(ROOT).unwrap();
        tree.remove(ROOT, name("a"), false).unwrap();
        assert_eq!(outcomes(&tree), ["", "a="].map(String::from).into());
        tree.sync(ROOT).unwrap();
        assert_eq!(outcomes(&tree), [String::new()].into());
    }

    #[test]
    fn the_same_seed_leaves_the_same() {
        let mut tree = Tree::default();
        for n in 0..20 {
            let number = tree.create(ROOT, name(&format!("f{n}")), file(), 0o600).unwrap();
            tree.write(number, 0, &[n; 9000]).unwrap();
        }
        let left = |seed| format!("{:?}", outcome(&tree, seed));
        assert_eq!(left(7), left(7));
        assert_ne!(left(7), left(8));
    }

    fn outcome(tree: &Tree, seed: u64) -> Vec<(OsString, Vec<u8>)> {
        let left = tree.clone().cut(&mut fastrand::Rng::with_seed(seed));
        let names = left.names(ROOT).unwrap().iter();
        names.map(|(name, number)| (name.clone(), left.file(*number).unwrap().bytes().to_vec())).collect()
    }
}
