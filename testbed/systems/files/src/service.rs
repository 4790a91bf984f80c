//! The file server as a service of an engine.

use std::{io, path::Path, sync::Arc};

use engine::{
    service::{Connection, Factory},
    shared::Atomics,
};
use folder::Root;
use http_io::server::{Hosts, Http, HttpOptions};

use crate::{
    access::{
        accounts_server::{AccountsServer, Link},
        authority::Authority,
        credential_cache::CredentialCache,
        fingerprint::Key,
        permissions::OpenFiles,
    },
    audit::Audit,
    error::FilesError,
    metrics::Metrics,
    options::{AccountsBackend, Options},
    reading::listing::Lister,
    routes::{FilesHandler, Shared},
    writing::uploads::Uploads,
};

/// Makes the file server. Opens the folder, and any accounts in this process, so that their problems show before the server
/// starts. An accounts server may still be down.
///
/// # Errors
/// When the folder is missing, is not a folder or cannot be read; when accounts in this process cannot be opened.
pub fn factory(options: Options) -> Result<FilesFactory, FilesError> {
    let root = Root::open(&options.root)?;
    let accounts = match &options.accounts {
        AccountsBackend::Local(database) => {
            let mut accounts = accounts::Options::new(database);
            accounts.registration = options.registration;
            Some(accounts::factory(accounts)?)
        }
        _ => None,
    };
    let open = |path: &Path| {
        let opened = Audit::open(path, options.reloads.clone());
        opened.map_err(|source| FilesError::Audit { path: path.to_owned(), source })
    };
    let audit = options.audit.as_deref().map(open);
    let link = Link::of(&options)?;
    let credentials =
        CredentialCache::new(Key::random()?, options.auth_cache_ttl, options.auth_cache_entries);
    let permissions = options.permissions.clone();
    let files =
        Arc::new(OpenFiles::new(root, permissions, options.file_check_every, options.file_cache_bytes));
    let uploads = Uploads::new(options.uploads.clone(), &files)
        .map_err(|error| FilesError::Randomness(error.to_string()))?;
    let shared = Arc::new(Shared {
        files,
        credentials,
        metrics: Metrics::new(Arc::clone(&options.connections)),
        uploads: Arc::new(uploads),
        audit: audit.transpose()?,
        lister: Lister::default(),
    });
    Ok(FilesFactory { options, shared, link, accounts, accounts_away: Arc::new(Atomics::new(1)) })
}

/// Makes the file server's services. Those of one process share the caches of files and credentials.
pub struct FilesFactory {
    options: Options,
    shared: Arc<Shared>,
    link: Option<Link>,
    accounts: Option<accounts::AccountsFactory>,
    accounts_away: Arc<Atomics>,
}

impl Factory for FilesFactory {
    type Service<C: Connection> = Http<FilesHandler<C>>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let authority = match (&self.link, &self.accounts) {
            (Some(link), _) => {
                let away = Arc::clone(&self.accounts_away);
                let timeout = self.options.accounts_timeout;
                Authority::Remote(Box::new(AccountsServer::new(link.clone(), timeout, away)))
            }
            (_, Some(accounts)) => Authority::Local(accounts.api().map_err(io::Error::other)?),
            (_, None) => Authority::Open,
        };
        let handler = FilesHandler::new(Arc::clone(&self.shared), authority);
        let hosts = match self.options.accounts {
            AccountsBackend::Open => Hosts::only(
                self.options.host_names.clone(),
                "--host-name NAME lets it answer to a name as well",
            ),
            _ => Hosts::default(),
        };
        let encrypted = self.options.encrypted;
        let open_metrics = self.options.open_metrics;
        let options =
            HttpOptions { hosts, encrypted, open_metrics, ..HttpOptions::behind(&self.options.proxies) };
        Ok(Http::new(handler, options))
    }
}
