//! The file server's way to a file and out of it, for other systems that send the files of a folder.

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
    access::permissions::Permissions,
    error::FilesError,
    reading::{
        open_files::{Found, OpenFiles},
        representation::Representation,
        sending,
    },
    tree::{
        identity::Identity,
        root::{Opened, Root},
    },
};

/// How often a file that is kept is looked at again: until then a small one is sent as it was, as a whole.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Memory for small files, bytes.
const MEMORY_BYTES: u64 = 64 * 1024 * 1024;

/// A folder, and the only way into it: nothing outside of it is ever found, as the file server has it.
#[derive(Debug)]
pub struct Folder(OpenFiles);

impl Folder {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it is missing, is none or cannot be read.
    pub fn open(path: &Path) -> Result<Self, FilesError> {
        let root = Root::open(path)?;
        Ok(Self(OpenFiles::new(root, Permissions::default(), CHECK_EVERY, MEMORY_BYTES)))
    }

    /// Opens a regular file to be read, and tells its state; none where there is no such file or it cannot be read.
    pub fn file(&self, path: &str) -> Option<(File, Identity)> {
        match self.0.root().open_beneath(path) {
            Ok(Opened::File(file, identity)) => Some((file, identity)),
            _ => None,
        }
    }

    /// Answers with what the request wants of a file: all of it, a range, or word that nothing has changed. `false`, and
    /// no answer, where it is not there or not in the state that is expected.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn send<C: Connection>(
        &self,
        exchange: &mut Exchange<'_, C>,
        path: &str,
        expected: Option<Identity>,
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
        sending::file(exchange, &file).await.map(|()| true)
    }

    /// A file, if it is in the state that is expected: looked at again where what was kept is in another.
    fn in_state(&self, encoded: &str, expected: Option<Identity>) -> Option<Arc<Representation>> {
        let find = || match self.0.find(encoded, Instant::now()) {
            Ok(Found::File(file)) => Some(file),
            _ => None,
        };
        let is_expected =
            |file: &Arc<Representation>| expected.is_none_or(|expected| expected == file.identity);
        find().filter(is_expected).or_else(|| {
            self.0.forget(encoded);
            find().filter(is_expected)
        })
    }
}
