//! The two tiers of the file server: how each recognises the other.

use std::net::SocketAddr;

use files::{AccountsBackend, FilesError};

use nstar::exit::Failure;

use crate::flags::{Accounts, Files};

/// Sets how this server recognises the accounts server, and how it proves itself there.
pub(super) fn link(flags: &Files, options: &mut files::Options) -> Result<(), Failure> {
    let remote = matches!(options.accounts, AccountsBackend::Remote(_) | AccountsBackend::Secure(..));
    if let AccountsBackend::Remote(to) = options.accounts
        && !is_loopback(to)
    {
        nstar::exit::warn(format_args!(
            "passwords cross the network unencrypted on their way to {to}; use --accounts https://.."
        ));
    }
    if flags.accounts_ca.is_some() && !matches!(options.accounts, AccountsBackend::Secure(..)) {
        return Err(Failure::usage("--accounts-ca goes with --accounts https://HOST:PORT"));
    }
    if flags.accounts_token_file.is_some() && !remote {
        return Err(Failure::usage("--accounts-token-file goes with the URL of an accounts server"));
    }
    if let Some(registration) = flags.registration {
        if !matches!(options.accounts, AccountsBackend::Local(_)) {
            return Err(Failure::usage(
                "--registration goes with --accounts sqlite:PATH; otherwise give it to `nstar serve accounts`",
            ));
        }
        options.registration = registration.into();
    }
    options.accounts_ca = flags.accounts_ca.clone();
    options.accounts_token = flags.accounts_token_file.clone();
    Ok(())
}

/// Tells mistakes on the command line from other failures.
pub(super) fn failure(error: FilesError) -> Failure {
    match error {
        FilesError::Trust(_) | FilesError::Token { .. } => Failure::usage(error),
        error => Failure::failed(error),
    }
}

/// Whom an accounts server answers: only file servers, if other machines can reach it.
pub(super) fn door(flags: &Accounts, options: &mut accounts::Options) {
    let token = flags.service_token_file.clone().unwrap_or_else(|| options.usual_service_token());
    let exposed = !is_loopback(flags.listen);
    if exposed && flags.service_token_file.is_none() {
        nstar::exit::warn(format_args!(
            "others can reach {}, so only file servers that know the token in {} are answered: give each a copy \
             with --accounts-token-file",
            flags.listen,
            token.display()
        ));
    }
    options.service_token_required = exposed || flags.service_token_file.is_some();
    options.service_token = Some(token);
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
