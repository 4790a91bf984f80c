//! Files that are read again and again: kept open, into one buffer.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Larger than any file read this way; the growth stops here.
const SIZE_MAX: usize = 4 << 20;

/// A file that is read from its start at every look, without opening it each time.
#[derive(Debug)]
pub(crate) struct Reread {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl Reread {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, buffer: vec![0; 4096] }
    }

    /// The text now; empty where it cannot be read. A file that fails is opened anew the next time.
    pub(crate) fn text(&mut self) -> String {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        match self.fill() {
            Some(length) => {
                String::from_utf8_lossy(self.buffer.get(..length).unwrap_or_default()).into_owned()
            }
            None => {
                self.file = None;
                String::new()
            }
        }
    }

    fn fill(&mut self) -> Option<usize> {
        let file = self.file.as_ref()?;
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= SIZE_MAX {
                    return Some(length);
                }
                self.buffer.resize(length * 2, 0);
            }
            match file.read_at(self.buffer.get_mut(length..)?, length as u64) {
                Ok(0) => return Some(length),
                Ok(more) => length += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_the_file_as_it_is_now() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counter");
        let mut counter = Reread::new(path.clone());
        assert_eq!(counter.text(), "");
        std::fs::write(&path, "1").unwrap();
        assert_eq!(counter.text(), "1");
        let long = "x".repeat(10_000);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(counter.text(), long);
        std::fs::write(&path, "3").unwrap();
        assert_eq!(counter.text(), "3");
    }
}
