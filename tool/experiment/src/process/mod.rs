//! The programs of an experiment: started under a guard, known to be ready, stopped with all that they started.

pub(crate) mod command;
pub mod guard;
pub mod link;
mod memory;
pub(crate) mod program;
pub(crate) mod ready;
pub(crate) mod running;

pub use command::CommandError;
pub use guard::Ending;
pub use running::StartError;
