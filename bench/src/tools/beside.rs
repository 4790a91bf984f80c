//! A process that runs beside what is measured.

use std::process::Child;

/// A process that is ended with the value.
pub(crate) struct Beside(pub Child);

impl Drop for Beside {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
