//! `nstar-lab serve files`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use accounts::Registration;
use clap::{Args, Parser};
use serve::{
    Exit, Failure, HostNames, ServerFiles, ServerFlags, ServerProcess, System, TrustedProxies,
    values::{Limit, duration, duration_or_zero, listen, size},
    warn_of_openness,
};

use crate::{
    access::permissions::Permissions,
    error::FilesError,
    options::{AccountsBackend, Options, UploadOptions, Uploaders, check, open_to_others},
    service::factory,
};

/// The file server, for users that an accounts server knows
#[derive(Debug, Parser)]
#[command(name = "files")]
pub struct FilesFlags {
    /// Folder to serve
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Where users are known: URL of an accounts server (http or https), sqlite:PATH for both tiers in one process, or none
    #[arg(long, value_name = "URL|sqlite:PATH|none")]
    accounts: String,
    /// Authorities (PEM) to trust for an accounts server over https [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    accounts_ca: Option<PathBuf>,
    /// File with the accounts server's service token, if it requires one
    #[arg(long, value_name = "FILE")]
    accounts_token_file: Option<PathBuf>,
    /// Who may create accounts besides administrators, with --accounts sqlite:PATH
    /// [default: open; closed where others can reach the server]
    #[arg(long, value_enum)]
    registration: Option<Registration>,
    /// How long to remember verified credentials; 0 checks them every time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration_or_zero)]
    auth_cache: Duration,
    /// Memory for files of up to 256 KiB; with 0 each worker keeps only the few that it sent last
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    file_cache: u64,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = listen)]
    listen: SocketAddr,
    /// Serve without accounts even on an address that others can reach
    #[arg(long)]
    open_to_all: bool,
    #[command(flatten)]
    uploads: UploadFlags,
    /// Rules (TOML) for who may read and write what [default: users write in users/NAME, which only they can read,
    /// and read everything else]
    #[arg(long, value_name = "FILE")]
    permissions: Option<PathBuf>,
    /// Append a line of JSON to this file for every upload, deletion and refusal
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    #[command(flatten)]
    proxies: TrustedProxies,
    #[command(flatten)]
    names: HostNames,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Args)]
struct UploadFlags {
    /// Accept no uploads
    #[arg(long, conflicts_with = "open_uploads")]
    read_only: bool,
    /// Without accounts, accept uploads from everybody
    #[arg(long)]
    open_uploads: bool,
    /// Largest upload [default: 10GiB; 1GiB where others can reach the server]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_upload: Option<u64>,
    /// How long an interrupted upload can be resumed
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = duration)]
    upload_life: Duration,
    /// Quota in users/NAME for users whose account sets none [default: none; 1GiB where others can reach the server]
    #[arg(long, value_name = "SIZE|none")]
    quota: Option<Limit>,
    /// Space on the disk below which uploads are refused [default: 1GiB, or 5 % of the disk if that is less]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    keep_free: Option<u64>,
    /// Most files and folders in users/NAME
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_files: u64,
}

impl System for FilesFlags {
    fn serve(&self) -> Result<Exit, Failure> {
        let mut process = ServerProcess::new("files", self.listen, &self.server);
        process.secrets = (self.accounts != "none").then_some("passwords");
        let exposed = self.proxies.exposes(self.listen);
        process.is_exposed = exposed;
        let mut options = Options::new(&self.root, self.accounts.parse().map_err(Failure::usage)?);
        self.check_root(&options.accounts)?;
        self.name_files(&options.accounts, &mut process.files);
        process.prepare()?;
        options.auth_cache_ttl = self.auth_cache;
        options.file_cache_bytes = self.file_cache;
        options.open_to_all = self.open_to_all;
        options.uploads = self.uploads.options(&options.accounts, exposed)?;
        options.registration = Registration::or_default(self.registration, exposed);
        if let Some(path) = &self.permissions {
            options.permissions = Permissions::load(path).map_err(Failure::usage)?;
        }
        options.audit = self.audit.clone();
        options.reloads = process.reloads();
        options.encrypted = process.is_encrypted();
        options.proxies = self.proxies.proxies();
        options.host_names = self.names.host_names.clone();
        options.connections = process.counters();
        options.open_metrics = process.open_metrics();
        self.reach_accounts(&mut options)?;
        check(self.listen, &options).map_err(Failure::usage)?;
        if exposed {
            warn_of_openness(self.listen, &open_to_others(&options));
        }
        process.serve(factory(options).map_err(failure)?)
    }
}

impl FilesFlags {
    /// Names the files that the server uses.
    fn name_files(&self, accounts: &AccountsBackend, files: &mut ServerFiles) {
        if self.uploads.read_only {
            files.reads(&self.root)
        } else {
            files.writes(&self.root)
        }
        let database = match accounts {
            AccountsBackend::Local(path) => Some(path),
            _ => None,
        };
        [database, self.audit.as_ref()].into_iter().flatten().for_each(|path| files.writes_beside(path));
        let read = [&self.permissions, &self.accounts_ca, &self.accounts_token_file];
        read.into_iter().flatten().for_each(|path| files.reads(path));
    }

    /// Refuses files of the server itself in the folder that it serves. The database stands for all that is kept beside
    /// it: the administrator's token, the service token, the journal.
    fn check_root(&self, accounts: &AccountsBackend) -> Result<(), Failure> {
        let database = match accounts {
            AccountsBackend::Local(path) => Some(path),
            _ => None,
        };
        let own = [
            ("the accounts' database (--accounts)", database),
            ("the audit trail (--audit)", self.audit.as_ref()),
            ("the log (--log-file)", self.server.log_file.as_ref()),
            ("the certificate's key (--tls-key)", self.server.encryption.tls_key.as_ref()),
            ("the service token (--accounts-token-file)", self.accounts_token_file.as_ref()),
            ("the rules (--permissions)", self.permissions.as_ref()),
        ];
        match serve::first_inside(&self.root, &own, |_| true) {
            Some((what, path)) => Err(Failure::usage(format!(
                "{what} at {} would be served with the files in {}; keep it outside that folder",
                path.display(),
                self.root.display()
            ))),
            None => Ok(()),
        }
    }

    /// Sets how the accounts are reached, and how this server proves itself there.
    fn reach_accounts(&self, options: &mut Options) -> Result<(), Failure> {
        let remote = matches!(options.accounts, AccountsBackend::Remote(_) | AccountsBackend::Secure(..));
        if let AccountsBackend::Remote(to) = options.accounts
            && !to.ip().to_canonical().is_loopback()
        {
            serve::warn(format_args!(
                "passwords cross the network unencrypted on their way to {to}; use --accounts https://.."
            ));
        }
        if self.accounts_ca.is_some() && !matches!(options.accounts, AccountsBackend::Secure(..)) {
            return Err(Failure::usage("--accounts-ca goes with --accounts https://HOST:PORT"));
        }
        if self.accounts_token_file.is_some() && !remote {
            return Err(Failure::usage("--accounts-token-file goes with the URL of an accounts server"));
        }
        if self.registration.is_some() && !matches!(options.accounts, AccountsBackend::Local(_)) {
            return Err(Failure::usage(
                "--registration goes with --accounts sqlite:PATH; otherwise give it to `nstar serve accounts`",
            ));
        }
        options.accounts_ca = self.accounts_ca.clone();
        options.accounts_token = self.accounts_token_file.clone();
        Ok(())
    }
}

impl UploadFlags {
    fn options(&self, accounts: &AccountsBackend, exposed: bool) -> Result<UploadOptions, Failure> {
        if self.open_uploads && *accounts != AccountsBackend::Open {
            return Err(Failure::usage(
                "--open-uploads goes with --accounts none: users with accounts can upload anyway",
            ));
        }
        if self.quota.is_some() && *accounts == AccountsBackend::Open {
            return Err(Failure::usage(
                "--quota limits each user, but --accounts none has no users; name an accounts server, or leave it out",
            ));
        }
        let usual = if exposed { UploadOptions::exposed() } else { UploadOptions::default() };
        Ok(UploadOptions {
            of: match self {
                Self { read_only: true, .. } => Uploaders::Nobody,
                Self { open_uploads: true, .. } => Uploaders::Everybody,
                _ => Uploaders::Users,
            },
            max_bytes: self.max_upload.unwrap_or(usual.max_bytes),
            life: self.upload_life,
            quota_bytes: self.quota.map_or(usual.quota_bytes, Limit::bytes),
            keep_free_bytes: self.keep_free,
            entries_max: self.max_files,
        })
    }
}

/// Tells mistakes on the command line from other failures.
fn failure(error: FilesError) -> Failure {
    match error {
        FilesError::Trust(_) | FilesError::Token { .. } | FilesError::SharedToken(_) => Failure::usage(error),
        error => Failure::failed(error),
    }
}
