//! Flags of `nstar agent`.

use clap::Args;

#[cfg(feature = "fleet")]
use super::BusLogin;

/// Where an agent gets its orders.
#[derive(Debug, Args)]
pub struct Agent {
    /// Join the fleet that meets on a NATS server, nats://[USER[:PASSWORD]@]HOST[:PORT] or tls://.., and serve runs with --fleet,
    /// one at a time [default: serve stdin and stdout]
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "URL", value_parser = crate::values::Unshown::<bus::Address>::default())]
    pub join: Option<bus::Address>,
    /// Observe, and make no load
    #[arg(long)]
    pub observe: bool,
    /// How to log in to the NATS server.
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub login: BusLogin,
}
