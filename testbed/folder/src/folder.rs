//! A folder for systems that only send its files.

use std::{
    fs::File,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use engine::service::Connection;
use http_io::server::{Error, Exchange};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use crate::{
    error::FolderError,
    file_state::FileState,
    open_files::{Found, OpenFiles},
    representation::Representation,
    root::{Opened, Root},
    sending,
};

/// How often a cached file is compared with the disk: until then a small one is sent whole as it was.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Memory for small files, bytes.
const MEMORY_BYTES: u64 = 64 * 1024 * 1024;

/// A folder whose files can be sent. No path leads out of it.
#[derive(Debug)]
pub struct Folder(OpenFiles<()>);

impl Folder {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it does not exist, is not a folder or cannot be read.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let root = Root::open(path)?;
        Ok(Self(OpenFiles::new(root, (), CHECK_EVERY, MEMORY_BYTES)))
    }

    /// Opens a regular file for reading and returns its state; `None` if there is no such file or it cannot be read.
    pub fn file(&self, path: &str) -> Option<(File, FileState)> {
        match self.0.root().open_beneath(path) {
            Ok(Opened::File(file, state)) => Some((file, state)),
            _ => None,
        }
    }

    /// Sends what the request asks for of a file: all of it, a range, or 304. Returns `false` without a response if the
    /// file does not exist or is not in the `expected` state.
    ///
    /// # Errors
    /// When the connection fails, and 412 or 416 when the file does not meet the request's conditions.
    pub async fn send<C: Connection>(
        &self,
        exchange: &mut Exchange<'_, C>,
        path: &str,
        expected: Option<FileState>,
    ) -> Result<bool, Error> {
        let encoded: Vec<_> = path
            .split('/')
            .map(|part| percent_encode(part.as_bytes(), NON_ALPHANUMERIC).to_string())
            .collect();
        let encoded = encoded.join("/");
        let Some(file) = self.in_state(&encoded, expected) else { return Ok(false) };
        if !sending::is_current(&file) {
            return Ok(false);
        }
        sending::send(exchange, &file).await.map(|()| true)
    }

    /// A file in the expected state. Where the cached one is in another, the file is opened again.
    fn in_state(&self, encoded: &str, expected: Option<FileState>) -> Option<Arc<Representation<()>>> {
        let find = || match self.0.find(encoded, Instant::now()) {
            Ok(Found::File(file)) => Some(file),
            _ => None,
        };
        let is_expected =
            |file: &Arc<Representation<()>>| expected.is_none_or(|expected| expected == file.state);
        find().filter(is_expected).or_else(|| {
            self.0.forget(encoded);
            find().filter(is_expected)
        })
    }
}
