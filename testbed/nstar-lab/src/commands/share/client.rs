//! The peer that a command asks, and what to tell when it does not do what was asked.

use std::path::PathBuf;

use clap::Args;
use http_io::client::{Insecurity, Scheme};
use nstar::exit::Failure;
use share::{
    client::{Client, RequestError},
    command,
};

/// Which peer to ask.
#[derive(Debug, Args)]
pub(crate) struct AskPeer {
    /// The peer to ask; https:// if it speaks TLS
    #[arg(long, value_name = "URL", default_value = "127.0.0.1:8085")]
    pub peer: String,
    /// Authorities (PEM) to trust for a peer over TLS [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// File with the peer's own key, `identity` in its data folder (usually DIR/.nstar), if the group is closed by keys
    #[arg(long, value_name = "FILE", conflicts_with = "ca")]
    pub key_file: Option<PathBuf>,
    /// File with the group's secret, if the group is closed by one
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

impl AskPeer {
    /// A client of the peer.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let secure = self.ca.is_some() || self.key_file.is_some();
        let usual = if secure { Scheme::Https } else { Scheme::Http };
        let peer = command::upstream("--peer", &self.peer, usual, || match &self.key_file {
            Some(key) => command::owner(key),
            None => command::authorities(self.ca.as_deref()),
        })?;
        if secure && !peer.is_secure() {
            return Err(Failure::usage("--ca and --key-file go with --peer https://HOST:PORT"));
        }
        if let Some(secret) = self.secret_file.as_ref().filter(|path| !path.exists()) {
            return Err(Failure::usage(format!("there is no secret in {}", secret.display())));
        }
        Client::new(peer, self.secret_file.as_deref()).map_err(Failure::usage)
    }
}

/// The failure of a request, with what to do about it.
pub(super) fn failure(error: RequestError) -> Failure {
    match error {
        RequestError::Unreachable { .. } => {
            Failure::failed(format!("{error}; start one with `nstar serve peer`, or name it with --peer"))
        }
        RequestError::Insecure { ref why, .. } => {
            let hint = match why {
                Insecurity::UnknownKey(_) => "; --key-file must be the key of the peer that you ask",
                Insecurity::NoKey => "; it was not started with --allow: give --ca instead of --key-file",
                Insecurity::NotTls => "; give --peer http://..",
                _ => "; give --ca FILE with its authority, or --key-file DIR/.nstar/identity with its key",
            };
            Failure::failed(format!("{error}{hint}"))
        }
        RequestError::WantsTls(peer) => Failure::usage(format!(
            "{error}: give --peer https://{peer}, and --key-file DIR/.nstar/identity if its group is closed by keys"
        )),
        RequestError::Refused { status: 401, .. } => Failure::usage(
            "the peer is in a closed group: give its secret with --secret-file, or the peer's own key with --key-file",
        ),
        other => Failure::failed(other),
    }
}
