//! What a peer remembers of its files over a restart: the content of each state of each file, so that nothing is hashed
//! twice, and which files were taken out of sharing.
//!
//! A file of lines that is only appended to, and written anew when most of it is out of date. A line that was cut off
//! is as good as none: the file is hashed again.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use folder::FileState;
use serde::{Deserialize, Serialize};

use crate::content::Content;

/// Lines out of date from which on the file is written anew.
const STALE_MIN: usize = 10_000;

/// What is remembered, and the file it is kept in.
#[derive(Debug)]
pub(crate) struct Memory {
    path: PathBuf,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    file: File,
    lines: usize,
    known: Known,
}

#[derive(Debug, Default)]
struct Known {
    contents: HashMap<String, (String, Content)>,
    removed: HashSet<String>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// A file in this state has this content.
    Content { path: String, state: String, hash: String },
    /// A file is not to be shared.
    Removed { path: String },
    /// Nothing is known of a file.
    Gone { path: String },
}

impl Memory {
    /// Reads what was remembered.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut known = Known::default();
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.for_each(|line| known.learn(line));
        let (file, lines) = (rewrite(path, &known)?, known.len());
        Ok(Self { path: path.to_owned(), kept: Mutex::new(Kept { file, lines, known }) })
    }

    /// The content of a file, if it was hashed in this state.
    pub(crate) fn content(&self, path: &str, identity: &FileState) -> Option<Content> {
        let kept = self.lock();
        let (state, content) = kept.known.contents.get(path)?;
        (*state == identity.text()).then_some(*content)
    }

    /// All content that is known of.
    pub(crate) fn contents(&self) -> HashSet<Content> {
        self.lock().known.contents.values().map(|(_, content)| *content).collect()
    }

    /// Whether a file was taken out of sharing.
    pub(crate) fn is_removed(&self, path: &str) -> bool {
        self.lock().known.removed.contains(path)
    }

    /// Remembers the content of files in the state they are in.
    pub(crate) fn learn<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a str, &'a FileState, Content)>,
    ) -> io::Result<()> {
        self.keep(files.into_iter().map(|(path, identity, content)| Line::Content {
            path: path.to_owned(),
            state: identity.text(),
            hash: content.to_string(),
        }))
    }

    /// Remembers that a file is not to be shared.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        self.keep([Line::Removed { path: path.to_owned() }])
    }

    /// Forgets what a file holds.
    pub(crate) fn forget(&self, path: &str) -> io::Result<()> {
        self.keep([Line::Gone { path: path.to_owned() }])
    }

    /// Forgets the files that are no longer there, so that one that comes back is shared again.
    pub(crate) fn forget_all_but(&self, there: &HashSet<String>) -> io::Result<()> {
        let gone: Vec<_> = {
            let kept = self.lock();
            let known = kept.known.contents.keys().chain(&kept.known.removed);
            known.filter(|path| !there.contains(*path)).cloned().collect()
        };
        self.keep(gone.into_iter().map(|path| Line::Gone { path }))
    }

    /// Keeps lines, all by one write.
    fn keep(&self, lines: impl IntoIterator<Item = Line>) -> io::Result<()> {
        let (lines, mut text): (Vec<_>, _) = (lines.into_iter().collect(), Vec::new());
        if lines.is_empty() {
            return Ok(());
        }
        for line in &lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        let mut kept = self.lock();
        let before = kept.file.metadata()?.len();
        kept.file.write_all(&text).inspect_err(|_| {
            // Half a line would take the next one with it. What cannot be cut off is hashed again.
            let _ = kept.file.set_len(before);
        })?;
        kept.lines += lines.len();
        lines.into_iter().for_each(|line| kept.known.learn(line));
        if kept.lines > STALE_MIN + 2 * kept.known.len() {
            kept.file = rewrite(&self.path, &kept.known)?;
            kept.lines = kept.known.len();
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
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

/// Writes it aside and puts it in place, so that a crash leaves one or the other whole.
fn rewrite(path: &Path, known: &Known) -> io::Result<File> {
    let aside = path.with_extension("new");
    let mut writer = BufWriter::new(File::create(&aside)?);
    for line in known.lines() {
        serde_json::to_writer(&mut writer, &line)?;
        writer.write_all(b"\n")?;
    }
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
    fs::rename(&aside, path)?;
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
        let identity = |name: &str| FileState::of(&fs::metadata(folder.path().join(name)).unwrap());
        fs::write(folder.path().join("a"), "1").unwrap();
        let before = identity("a");
        let memory = Memory::open(&path).unwrap();
        memory.learn(["a", "b"].map(|path| (path, &before, Content::of(b"1")))).unwrap();
        memory.remove("c").unwrap();
        fs::write(folder.path().join("a"), "12").unwrap();

        let again = Memory::open(&path).unwrap();
        assert_eq!(again.content("a", &before), Some(Content::of(b"1")));
        assert_eq!(again.content("a", &identity("a")), None);
        assert!(again.is_removed("c") && !again.is_removed("a"));
        again.forget_all_but(&["a".to_owned()].into()).unwrap();

        let third = Memory::open(&path).unwrap();
        assert_eq!(third.content("b", &before), None);
        assert!(!third.is_removed("c"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_file_of_anything_is_opened(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("memory");
            fs::write(&path, bytes).unwrap();
            prop_assert!(Memory::open(&path).is_ok());
        }
    }
}
