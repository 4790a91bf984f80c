//! `nstar-lab serve accounts`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;
use serve::{
    DatabaseLogin, Exit, Failure, HostNames, ServerFlags, ServerProcess, System, TrustedProxies,
    values::{Unshown, listen},
    warn_of_openness, with_password,
};
use store::Database;

use crate::{
    options::{Options, Registration},
    service::factory,
};

/// The accounts server: keeps users durably and checks their passwords
#[derive(Debug, Parser)]
#[command(name = "accounts")]
pub struct AccountsFlags {
    /// The database: an SQLite file (created if missing), mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<Database>::default(), default_value = "accounts.db")]
    database: Database,
    #[command(flatten)]
    login: DatabaseLogin,
    /// File with the administrator's token, created at the first start
    /// [default: DATABASE.admin; accounts.admin where the database is a server's]
    #[arg(long, value_name = "FILE")]
    admin_token: Option<PathBuf>,
    /// Answer only clients that present the service token in this file, created at the first start. Without this flag the
    /// token is in DATABASE.service, and is required only if other machines can reach the server
    #[arg(long, value_name = "FILE")]
    service_token_file: Option<PathBuf>,
    /// Who may create accounts besides administrators [default: open; closed where others can reach the server]
    #[arg(long, value_enum)]
    registration: Option<Registration>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081", value_parser = listen)]
    listen: SocketAddr,
    #[command(flatten)]
    proxies: TrustedProxies,
    #[command(flatten)]
    names: HostNames,
    #[command(flatten)]
    server: ServerFlags,
}

impl System for AccountsFlags {
    fn serve(&self) -> Result<Exit, Failure> {
        let mut process = ServerProcess::new("accounts", self.listen, &self.server);
        process.secrets = Some("passwords");
        let exposed = self.proxies.exposes(self.listen);
        process.is_exposed = exposed;
        let mut options = Options::new(with_password(&self.database, &self.login)?);
        options.admin_token = self.admin_token.clone().unwrap_or(options.admin_token);
        let service_token = self.service_token_file.clone().unwrap_or_else(|| options.usual_service_token());
        process.files.uses(&self.database);
        process.files.writes_beside(&options.admin_token);
        process.files.writes_beside(&service_token);
        process.prepare()?;
        options.registration = Registration::or_default(self.registration, exposed);
        if exposed && options.registration == Registration::Open {
            let open = "anybody whom a file server lets in may create an account (--registration open)";
            warn_of_openness(self.listen, &[open]);
        }
        self.require_service_token(service_token, &mut options);
        options.server.proxies = self.proxies.proxies();
        options.server.connections = process.counters();
        options.server.open_metrics = process.open_metrics();
        options.server.encrypted = process.is_encrypted();
        if !options.service_token_required {
            options.server.hosts = self.names.hosts(self.listen, process.is_encrypted());
        }
        process.serve(factory(options).map_err(Failure::failed)?)
    }
}

impl AccountsFlags {
    /// Requires the service token of file servers if it was asked for, or if other machines can reach the server.
    fn require_service_token(&self, token: PathBuf, options: &mut Options) {
        let exposed = !self.listen.ip().to_canonical().is_loopback();
        if exposed && self.service_token_file.is_none() {
            serve::warn(format_args!(
                "others can reach {}, so only file servers that know the token in {} are answered: give each a copy \
                 with --accounts-token-file",
                self.listen,
                token.display()
            ));
        }
        options.service_token_required = exposed || self.service_token_file.is_some();
        options.service_token = Some(token);
    }
}
