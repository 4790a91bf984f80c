//! Commands that `nstar-lab` carries out.

use std::ffi::OsString;

use clap::Args;

/// What is passed on as it is.
#[derive(Debug, Args)]
pub struct External {
    /// Arguments for nstar-lab; --help shows its own help
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}
