//! The accounts server as a service of an engine.

use std::sync::Arc;

use api_server::ApiFactory;
use store::{Secret, Store};

use crate::{
    admission::ServiceTokenCheck, api::AccountsApi, common::Common, options::AccountsError, options::Options,
    tables::SCHEMA,
};

/// Makes the accounts server's services.
pub type AccountsFactory = ApiFactory<AccountsApi, AccountsError>;

/// Makes the accounts server. Opens the database once, so that problems with it show before the server starts.
///
/// # Errors
/// When the database cannot be opened for writing, is not one of accounts, or passwords cannot be hashed.
pub fn factory(options: Options) -> Result<AccountsFactory, AccountsError> {
    // Before the database is created: a start that fails leaves none behind.
    Secret::check(&options.admin_token).map_err(AccountsError::AdminToken)?;
    options.service_token.as_deref().map_or(Ok(()), Secret::check).map_err(AccountsError::ServiceToken)?;
    drop(Store::prepare(&options.server.database, &SCHEMA)?);
    let tokens = Arc::new(ServiceTokenCheck::open(&options).map_err(AccountsError::ServiceToken)?);
    // All processes share these.
    let common = Arc::new(Common::new(&options)?);
    let server = options.server.clone();
    Ok(ApiFactory::new(&server, move || {
        AccountsApi::open(&options, Arc::clone(&common), Arc::clone(&tokens))
    }))
}
