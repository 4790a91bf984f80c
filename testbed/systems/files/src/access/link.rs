//! How an accounts server is reached: where, as whom it must show itself, and by what it knows this server.

use std::{fmt, fs, io, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use engine::service::Connection;
use http_io::client::{Client, ClientOptions, Trust, Upstream};

use crate::{
    error::FilesError,
    options::{AccountsBackend, Options},
};

/// Longest wait for a connection.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(1);
/// The longest token read, bytes.
const TOKEN_MAX: usize = 1024;

/// How an accounts server is reached.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    to: Upstream,
    token: Option<Token>,
}

/// What tells the accounts server that a file server asks. `Debug` hides it.
#[derive(Clone)]
struct Token(String);

impl Link {
    /// As the options say. `None` where there is no accounts server.
    ///
    /// # Errors
    /// When nobody is there to be trusted, or the token cannot be read.
    pub(crate) fn of(options: &Options) -> Result<Option<Self>, FilesError> {
        let (to, name) = match &options.accounts {
            AccountsBackend::Remote(to) => (*to, None),
            AccountsBackend::Secure(to, name) => (*to, Some(name)),
            AccountsBackend::Local(_) | AccountsBackend::Open => return Ok(None),
        };
        let trust = || options.accounts_ca.as_deref().map_or_else(Trust::of_system, Trust::of_file);
        let peer = name.map(|name| trust()?.peer(name)).transpose()?;
        let to = peer.map_or_else(|| to.into(), |peer| Upstream::secure(to, peer));
        let token = options.accounts_token.as_deref().map(Token::read).transpose()?;
        Ok(Some(Self { to, token }))
    }

    /// A client for one worker; an answer may take this long.
    pub(crate) fn client<C: Connection>(&self, timeout: Duration) -> Client<C> {
        self.client_with(timeout, ClientOptions::default())
    }

    /// The same for one that asks seldom: it keeps no connection.
    pub(crate) fn seldom<C: Connection>(&self, timeout: Duration) -> Client<C> {
        self.client_with(timeout, ClientOptions { idle_max: 0, ..ClientOptions::default() })
    }

    fn client_with<C: Connection>(&self, timeout: Duration, options: ClientOptions) -> Client<C> {
        let connect_timeout = timeout.min(CONNECT_TIMEOUT_MAX);
        Client::new(self.to.clone(), ClientOptions { timeout, connect_timeout, ..options })
    }

    /// The token, if there is one.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.0.as_str())
    }
}

impl Token {
    /// Reads the token in a file, as the accounts server has made it.
    fn read(path: &Path) -> Result<Self, FilesError> {
        let failed = |source| FilesError::Token { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(failed)?;
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let path = path.display();
            tracing::warn!(
                "others may read the service token in {path} (mode {mode:03o}): `chmod 600 {path}`"
            );
        }
        let token = text.trim();
        if token.is_empty() || token.len() > TOKEN_MAX || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(failed(io::Error::other("it holds no token")));
        }
        Ok(Self(token.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}
