//! What the systems share to run as servers.
//!
//! A system's crate has a module `command` with its flags, which implement [`System`]. `nstar-lab serve` lists the systems
//! as [`SystemCommand`]s and knows nothing else about them.
//!
//! ```
//! use clap::Parser;
//! use serve::{Exit, Failure, ServerFlags, ServerProcess, System};
//!
//! /// The echo server: returns what it receives
//! #[derive(Debug, Parser)]
//! #[command(name = "echo")]
//! struct EchoFlags {
//!     /// Address to listen on
//!     #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090", value_parser = serve::values::listen)]
//!     listen: std::net::SocketAddr,
//!     #[command(flatten)]
//!     server: ServerFlags,
//! }
//!
//! impl System for EchoFlags {
//!     fn serve(&self) -> Result<Exit, Failure> {
//!         let mut process = ServerProcess::new("echo", self.listen, &self.server);
//!         process.prepare()?;
//! #       struct Factory;
//! #       impl engine::service::Factory for Factory {
//! #           type Service<C: engine::service::Connection> = Nothing;
//! #           fn make<C: engine::service::Connection>(&self) -> std::io::Result<Nothing> { Ok(Nothing) }
//! #       }
//! #       struct Nothing;
//! #       impl<C: engine::service::Connection> engine::service::Service<C> for Nothing {
//! #           async fn serve(&self, _: C) {}
//! #       }
//!         process.serve(Factory)
//!     }
//! }
//! ```
//!
//! The concurrency model is chosen here, so that no system names one.

mod concurrency;
mod config;
mod confinement;
mod expiry;
mod flags;
mod free_space;
mod log_file;
mod reloads;
mod served_folder;
mod server_process;
mod service_manager;
mod system_calls;
mod upkeep;
pub mod values;

use std::fmt::Debug;

use clap::{ArgMatches, Command, Parser};

pub use nstar::{
    exit::{Exit, Failure, warn},
    flags::DatabaseLogin,
    output::print,
};

pub use self::{
    concurrency::ConcurrencyFlags,
    config::with_file,
    confinement::{Rights, ServerFiles, refuse_root},
    flags::{Configuration, Encryption, HostNames, ServerFlags, TrustedProxies, with_password},
    free_space::{Disk, has_space},
    reloads::Reloads,
    served_folder::first_inside,
    server_process::{ServerProcess, warn_of_openness},
};

/// The flags of a system, which run it.
pub trait System: Debug {
    /// Serves until a signal arrives, or stdin closes if the flags ask for that. Then finishes the requests in flight.
    ///
    /// # Errors
    /// When the flags contradict each other, or the server cannot start.
    fn serve(&self) -> Result<Exit, Failure>;
}

/// The flags in force, which are printed instead of serving.
#[derive(Debug)]
struct Printed(String);

impl System for Printed {
    fn serve(&self) -> Result<Exit, Failure> {
        print(&self.0)?;
        Ok(Exit::Done)
    }
}

/// The subcommand of a system: its name, its help, and how its flags are parsed.
#[derive(Debug, Clone, Copy)]
pub struct SystemCommand {
    command: fn() -> Command,
    parse: fn(&ArgMatches) -> Result<Box<dyn System>, clap::Error>,
}

impl SystemCommand {
    /// The subcommand of the system with these flags. Its name and its line of help are those of the parser.
    pub const fn of<S: System + Parser + 'static>() -> Self {
        Self {
            command: S::command,
            parse: |matches| {
                let system = S::from_arg_matches(matches)?;
                let prints = matches.try_get_one(config::PRINT_ID).ok().flatten() == Some(&true);
                Ok(if prints {
                    Box::new(Printed(config::shown(&S::command(), matches)))
                } else {
                    Box::new(system)
                })
            },
        }
    }

    /// The subcommand for clap.
    pub fn command(self) -> Command {
        (self.command)()
    }

    /// The system with the flags that clap found.
    ///
    /// # Errors
    /// When they are not those of this subcommand.
    pub fn parse(self, matches: &ArgMatches) -> Result<Box<dyn System>, clap::Error> {
        (self.parse)(matches)
    }
}
