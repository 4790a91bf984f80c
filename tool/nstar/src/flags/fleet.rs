//! Flags of fleets that meet on a NATS server.

use std::path::PathBuf;

use bus::{Address, Identity, Login};
use clap::{Args, Subcommand};
use load::fleet::MEMBERS_MAX;

use super::database::read_password_file;
use crate::{
    exit::{self, Failure},
    values::Unshown,
};

/// A fleet to make the load with.
#[derive(Debug, Clone, Args)]
pub struct Fleet {
    /// Make the load with the machines that joined a fleet: URL of the NATS server that they gave to `nstar agent --join`,
    /// nats://[USER[:PASSWORD]@]HOST[:PORT] or tls://..
    #[arg(long, value_name = "URL", value_parser = Unshown::<Address>::default())]
    pub fleet: Option<Address>,
    /// With --fleet: use this many generators, and wait until they have joined [default: all that have]
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u16).range(1..=MEMBERS_MAX as i64))]
    pub members: Option<u16>,
    /// How to log in to the NATS server.
    #[command(flatten)]
    pub login: BusLogin,
}

/// How to log in to a NATS server.
#[derive(Debug, Clone, Args)]
pub struct BusLogin {
    /// File with the credentials of a user of the NATS server, as `nsc` writes it
    #[arg(long, value_name = "FILE")]
    pub nats_creds: Option<PathBuf>,
    /// File with the password of the URL's user, or with a token where the URL has no user; others on this machine can see
    /// one in the URL
    #[arg(long, value_name = "FILE")]
    pub nats_password_file: Option<PathBuf>,
    /// Certificate of the authority that signed the NATS server's, if the system does not know it: a file in PEM
    #[arg(long, value_name = "FILE")]
    pub nats_ca: Option<PathBuf>,
    /// Client certificate, if the NATS server asks for one: a file in PEM
    #[arg(long, value_name = "FILE", requires = "nats_key")]
    pub nats_cert: Option<PathBuf>,
    /// Key of the certificate in --nats-cert: a file in PEM
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    pub nats_key: Option<PathBuf>,
}

impl BusLogin {
    /// The address with its password from wherever that is, and what else is shown to the server.
    ///
    /// # Errors
    /// If the password cannot be read, or there are two.
    pub fn plan(&self, flag: &str, address: &Address) -> Result<(Address, Login), Failure> {
        let address = match &self.nats_password_file {
            Some(_) if address.has_password() => {
                return Err(Failure::usage(format!(
                    "--nats-password-file: {flag} holds a password already; leave out one of them"
                )));
            }
            Some(path) => address.clone().with_secret(read_password_file(path)?),
            None => address.clone(),
        };
        if self.nats_password_file.is_none() && address.has_secret() {
            exit::warn(format_args!(
                "others on this machine can see the password in {flag}; --nats-password-file hides it"
            ));
        }
        let pair = self.nats_cert.clone().zip(self.nats_key.clone());
        let login = Login {
            credentials: self.nats_creds.clone(),
            authorities: self.nats_ca.clone(),
            identity: pair.map(|(certificate, key)| Identity { certificate, key }),
        };
        Ok((address, login))
    }

    /// Checks that there is a server to log in to.
    ///
    /// # Errors
    /// If there is none.
    pub fn check_unused(&self, flag: &str) -> Result<(), Failure> {
        let given = [
            ("--nats-creds", &self.nats_creds),
            ("--nats-password-file", &self.nats_password_file),
            ("--nats-ca", &self.nats_ca),
            ("--nats-cert", &self.nats_cert),
        ];
        match given.iter().find(|(_, file)| file.is_some()) {
            Some((name, _)) => Err(Failure::usage(format!("{name} goes with {flag}"))),
            None => Ok(()),
        }
    }
}

/// What starts the machines of a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Print manifests for Kubernetes: a Job of generators, a DaemonSet of observers, and who may talk to whom
    Kubernetes(Kubernetes),
}

/// Flags of `nstar fleet kubernetes`.
#[derive(Debug, Args)]
pub struct Kubernetes {
    /// Machines that make load
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MEMBERS_MAX as i64))]
    pub generators: u16,
    /// An image that has this version of nstar on its PATH
    #[arg(long, value_name = "IMAGE")]
    pub image: String,
    /// The namespace for all of it
    #[arg(long, value_name = "NAME", default_value = "nstar")]
    pub namespace: String,
    /// The NATS server, as pods call it [default: the service `nats` of the namespace, with TLS if --nats-tls-secret is given]
    #[arg(long, value_name = "URL", value_parser = Unshown::<Address>::default())]
    pub nats: Option<Address>,
    /// A secret of the namespace that holds credentials of a user of the NATS server under `nats.creds`
    #[arg(long, value_name = "NAME")]
    pub nats_secret: Option<String>,
    /// A secret of the namespace for a NATS server that asks for certificates: `ca.crt`, `tls.crt` and `tls.key`, as cert-manager
    /// writes them
    #[arg(long, value_name = "NAME")]
    pub nats_tls_secret: Option<String>,
}
