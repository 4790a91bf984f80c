//! Flags of `nstar doctor`.

use clap::Args;

use crate::values::Processors;

/// Flags of `nstar doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The server, if it runs on this host: its processes are looked at too
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Processors that the generator will be given, as in nstar sweep --cpus
    #[arg(long, value_name = "LIST", value_parser = Processors::parse)]
    pub cpus: Option<Processors>,
}
