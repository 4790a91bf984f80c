//! Reads directories away from the loops: a large one takes long.

use std::{io, sync::Arc};

use engine::offload::Pool;
use folder::{FindError, OpenError};

use crate::{
    access::caller::Caller,
    reading::{OpenFiles, listing::Listing},
};

/// Most directories that wait to be read.
const WAITING_MAX: usize = 256;

/// The thread that reads directories.
#[derive(Debug)]
pub(crate) struct Lister(Pool);

impl Default for Lister {
    fn default() -> Self {
        Self(Pool::new("files-list", 1, WAITING_MAX))
    }
}

impl Lister {
    /// Reads the directory of this decoded path, as it is shown to this reader.
    pub(crate) async fn list(
        &self,
        files: &Arc<OpenFiles>,
        path: String,
        reader: &Caller,
    ) -> Result<Listing, FindError> {
        let (files, reader) = (Arc::clone(files), reader.user().cloned());
        let listed = self.0.run(move || Listing::read(&files, &path, &reader.into())).await;
        listed.map_err(|error| system(io::Error::other(error)))?.map_err(FindError::Open)
    }
}

fn system(error: io::Error) -> FindError {
    FindError::Open(OpenError::System(error))
}
