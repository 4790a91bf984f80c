//! A process that runs beside what is measured.

use std::process::{Child, Command, Stdio};

use crate::tools::effort::Result;

/// A process that is ended with the value.
pub(crate) struct Beside(pub Child);

impl Beside {
    /// Starts a program that reads nothing from here, and whose words nobody sees.
    pub(crate) fn quiet(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Beside(command.spawn()?))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
