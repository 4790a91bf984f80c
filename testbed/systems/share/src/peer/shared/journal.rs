//! The journal of the shared folder, which survives restarts: the hash of each file in its last known state, so that no
//! file is hashed twice, and the files that were removed from sharing.
//!
//! Lines are appended to a file, which is rewritten when most of them are obsolete. A truncated line is ignored: its file
//! is hashed again. So a power failure may lose the lines about hashes, but none about a removal: its file would be shared
//! again.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use folder::FileState;
use serde::{Deserialize, Serialize};

use crate::entry::Content;

/// Obsolete lines that cause a rewrite, at least.
const OBSOLETE_MIN: usize = 10_000;

/// The journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    inner: Mutex<Contents>,
}

#[derive(Debug)]
struct Contents {
    file: File,
    lines: usize,
    known: Known,
}

#[derive(Debug, Default)]
struct Known {
    contents: HashMap<String, (String, Content)>,
    removed: HashSet<String>,
}

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// A file in this state has this content.
    Content { path: String, state: String, hash: String },
    /// A file is not to be shared.
    Removed { path: String },
    /// Nothing is known about a file any more.
    Gone { path: String },
}

impl Journal {
    /// Opens a journal and reads it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let known = match fs::read(path) {
            Ok(bytes) => Known::read(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Known::default(),
            Err(error) => return Err(error),
        };
        let (file, lines) = (rewrite(path, &known)?, known.len());
        Ok(Self { path: path.to_owned(), inner: Mutex::new(Contents { file, lines, known }) })
    }

    /// The content of a file, if it was hashed in this state.
    pub(crate) fn content(&self, path: &str, state: &FileState) -> Option<Content> {
        let inner = self.lock();
        let (known, content) = inner.known.contents.get(path)?;
        (*known == state.text()).then_some(*content)
    }

    /// The content of all known files.
    pub(crate) fn contents(&self) -> HashSet<Content> {
        self.lock().known.contents.values().map(|(_, content)| *content).collect()
    }

    /// Whether a file was removed from sharing.
    pub(crate) fn is_removed(&self, path: &str) -> bool {
        self.lock().known.removed.contains(path)
    }

    /// Records the content of files in their current state.
    pub(crate) fn learn<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a str, &'a FileState, Content)>,
    ) -> io::Result<()> {
        self.append(files.into_iter().map(|(path, state, content)| Line::Content {
            path: path.to_owned(),
            state: state.text(),
            hash: content.to_string(),
        }))
    }

    /// Records that a file is not to be shared, durably.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        self.append_and(File::sync_data, [Line::Removed { path: path.to_owned() }])
    }

    /// Forgets the content of a file.
    pub(crate) fn forget(&self, path: &str) -> io::Result<()> {
        self.append([Line::Gone { path: path.to_owned() }])
    }

    /// Forgets a file that was removed from sharing, if it no longer exists in the folder `root`.
    pub(crate) fn forget_removed(&self, path: &str, root: &Path) -> io::Result<()> {
        if self.is_removed(path) && is_gone(&root.join(path)) { self.forget(path) } else { Ok(()) }
    }

    /// Forgets files that no longer exist in the folder `root`, so that one that comes back is shared again. A walk found
    /// those that are `there`; it may have missed one that came meanwhile, or a folder that could not be read just then.
    pub(crate) fn forget_all_but(&self, there: &HashSet<String>, root: &Path) -> io::Result<()> {
        let missed: Vec<_> = {
            let inner = self.lock();
            let known = inner.known.contents.keys().chain(&inner.known.removed);
            known.filter(|path| !there.contains(*path)).cloned().collect()
        };
        let gone = missed.into_iter().filter(|path| is_gone(&root.join(path)));
        self.append(gone.map(|path| Line::Gone { path }))
    }

    /// Appends lines, which a power failure may lose.
    fn append(&self, lines: impl IntoIterator<Item = Line>) -> io::Result<()> {
        self.append_and(|_| Ok(()), lines)
    }

    /// Appends lines with one write, and knows what they say once `keep` has kept it.
    fn append_and(
        &self,
        keep: impl FnOnce(&File) -> io::Result<()>,
        lines: impl IntoIterator<Item = Line>,
    ) -> io::Result<()> {
        let (lines, mut text): (Vec<_>, _) = (lines.into_iter().collect(), Vec::new());
        if lines.is_empty() {
            return Ok(());
        }
        for line in &lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        let mut inner = self.lock();
        let before = inner.file.metadata()?.len();
        let written = inner.file.write_all(&text).and_then(|()| keep(&inner.file));
        written.inspect_err(|_| {
            // Half a line would corrupt the next one. If it cannot be cut off, its file is hashed again.
            let _ = inner.file.set_len(before);
        })?;
        inner.lines += lines.len();
        lines.into_iter().for_each(|line| inner.known.learn(line));
        if inner.lines > OBSOLETE_MIN + 2 * inner.known.len() {
            inner.file = rewrite(&self.path, &inner.known)?;
            inner.lines = inner.known.len();
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        // No code panics while holding the lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn read(bytes: &[u8]) -> Self {
        let (mut known, text) = (Self::default(), String::from_utf8_lossy(bytes));
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(|line| known.learn(line));
        known
    }

    fn learn(&mut self, line: Line) {
        match line {
            Line::Content { path, state, hash } => {
                if let Ok(content) = hash.parse() {
                    self.contents.insert(path, (state, content));
                }
            }
            Line::Removed { path } => {
                self.removed.insert(path);
            }
            Line::Gone { path } => {
                self.contents.remove(&path);
                self.removed.remove(&path);
            }
        }
    }

    fn len(&self) -> usize {
        self.contents.len() + self.removed.len()
    }

    fn lines(&self) -> impl Iterator<Item = Line> {
        let content = |(path, (state, hash)): (&String, &(String, Content))| Line::Content {
            path: path.clone(),
            state: state.clone(),
            hash: hash.to_string(),
        };
        let removed = self.removed.iter().map(|path| Line::Removed { path: path.clone() });
        self.contents.iter().map(content).chain(removed)
    }
}

/// Whether nothing is at a path, as opposed to something that cannot be looked at.
fn is_gone(path: &Path) -> bool {
    let kind = fs::symlink_metadata(path).map_err(|error| error.kind());
    matches!(kind, Err(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

/// The lines that a peer would write in place of a journal that holds this, sorted.
pub fn rewritten_journal(bytes: &[u8]) -> Vec<String> {
    let known = Known::read(bytes);
    let mut lines: Vec<_> = known.lines().filter_map(|line| serde_json::to_string(&line).ok()).collect();
    lines.sort_unstable();
    lines
}

/// Writes a new file and renames it, so that a crash leaves either the old or the new one intact.
fn rewrite(path: &Path, known: &Known) -> io::Result<File> {
    let aside = path.with_extension("new");
    let mut writer = BufWriter::new(File::create(&aside)?);
    for line in known.lines() {
        serde_json::to_writer(&mut writer, &line)?;
        writer.write_all(b"\n")?;
    }
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
    fs::rename(&aside, path)?;
    // Otherwise a power failure might bring the old file back, after lines were kept in the new one.
    File::open(path.parent().unwrap_or(path))?.sync_all()?;
    OpenOptions::new().append(true).open(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_learnt_is_known_after_a_restart_for_the_same_state_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let state = |name: &str| FileState::of(&fs::metadata(folder.path().join(name)).unwrap());
        fs::write(folder.path().join("a"), "1").unwrap();
        let before = state("a");
        let memory = Journal::open(&path).unwrap();
        memory.learn(["a", "b"].map(|path| (path, &before, Content::of(b"1")))).unwrap();
        memory.remove("c").unwrap();
        fs::write(folder.path().join("a"), "12").unwrap();

        let again = Journal::open(&path).unwrap();
        assert_eq!(again.content("a", &before), Some(Content::of(b"1")));
        assert_eq!(again.content("a", &state("a")), None);
        assert!(again.is_removed("c") && !again.is_removed("a"));
        again.forget_all_but(&["a".to_owned()].into(), folder.path()).unwrap();

        let third = Journal::open(&path).unwrap();
        assert_eq!(third.content("b", &before), None);
        assert!(!third.is_removed("c"));
    }

    #[test]
    fn a_file_that_a_walk_missed_stays_out_of_sharing() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("memory")).unwrap();
        fs::write(folder.path().join("came meanwhile"), "private").unwrap();
        for path in ["came meanwhile", "gone", "memory/gone"] {
            journal.remove(path).unwrap();
        }
        journal.forget_all_but(&HashSet::new(), folder.path()).unwrap();
        assert!(journal.is_removed("came meanwhile"));
        assert!(!journal.is_removed("gone") && !journal.is_removed("memory/gone"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_file_of_anything_is_opened(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("memory");
            fs::write(&path, bytes).unwrap();
            prop_assert!(Journal::open(&path).is_ok());
        }
    }
}
