//! Flags of what shows a sweep while it goes on.

use clap::Args;
#[cfg(feature = "live")]
use live::Address;

#[cfg(feature = "live")]
use crate::exit::Failure;

/// Where a sweep is shown while it goes on.
#[derive(Debug, Args)]
pub struct Live {
    /// Show the sweep as a page too, which can end it and opens its report; for browsers on this host alone [without ADDR:
    /// 127.0.0.1:7070; port 0 is any free one]
    #[cfg(feature = "live")]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "7070", conflicts_with = "repeats")]
    ui: Option<Address>,
    /// Let --ui listen where other hosts can reach it; whoever has the page's whole address may end the sweep
    #[cfg(feature = "live")]
    #[arg(long, requires = "ui")]
    ui_network: bool,
}

#[cfg(feature = "live")]
impl Live {
    /// Where to serve the page, if that is asked for.
    pub fn plan(&self) -> Result<Option<Address>, Failure> {
        let allowed = |address: Address| address.allowed(self.ui_network).map_err(Failure::usage);
        self.ui.map(allowed).transpose()
    }
}
