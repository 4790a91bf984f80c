//! The index server as a service of an engine.

use api_server::ApiFactory;
use store::Store;

use super::{
    api::IndexApi,
    options::{IndexServerError, Options},
    tables::SCHEMA,
};
use crate::group::{Group, open_hosts};

/// Makes the index server's services.
pub type IndexFactory = ApiFactory<IndexApi, IndexServerError>;

/// Prepares an index server. Creates the database and the secret where they are missing, so that errors show before the
/// server starts.
///
/// # Errors
/// When the database or the secret cannot be opened.
pub fn factory(options: Options) -> Result<IndexFactory, IndexServerError> {
    Store::prepare(&options.server.database, &SCHEMA)?;
    Group::open(options.secret.as_deref(), None)?;
    let (mut server, metrics) = (options.server.clone(), IndexApi::new_metrics(&options));
    if options.secret.is_none() && options.members.is_none() {
        server.hosts = open_hosts();
    }
    Ok(ApiFactory::new(&server, move || IndexApi::open(&options, metrics.clone())))
}
