//! Reads directories away from the loops: a large one takes long.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use engine::offload::Pool;

use crate::{
    listing::Listing,
    open_files::{FindError, OpenFiles},
    root::OpenError,
};

/// Most directories that wait to be read.
const WAITING_MAX: usize = 256;

/// The thread that reads directories, started when it is first needed: a process forked before has its own.
#[derive(Debug, Default)]
pub(crate) struct Lister(OnceLock<io::Result<Pool>>);

impl Lister {
    /// Reads the directory of this decoded path.
    pub(crate) async fn list(&self, files: &Arc<OpenFiles>, path: String) -> Result<Listing, FindError> {
        let pool = self.0.get_or_init(|| Pool::new("files-list", 1, WAITING_MAX));
        let pool = pool.as_ref().map_err(|error| system(io::Error::new(error.kind(), error.to_string())))?;
        let files = Arc::clone(files);
        let listed = pool.run(move || Listing::read(files.root(), &path)).await;
        listed.map_err(|error| system(io::Error::other(error)))?.map_err(FindError::Open)
    }
}

fn system(error: io::Error) -> FindError {
    FindError::Open(OpenError::System(error))
}
