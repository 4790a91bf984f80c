//! How the processes of a server learn that it was asked to open its files anew.

use std::sync::{Arc, atomic::Ordering::SeqCst};

use engine::shared::Atomics;

/// Counts how often a server was asked to open its files anew. Clones count together, in processes forked later too.
#[derive(Debug, Clone)]
pub struct Reloads(Arc<Atomics>);

impl Default for Reloads {
    fn default() -> Self {
        Self(Arc::new(Atomics::new(1)))
    }
}

impl Reloads {
    /// Asks for it once more.
    pub fn ask(&self) {
        self.0[0].fetch_add(1, SeqCst);
    }

    /// How often it was asked for so far.
    pub fn count(&self) -> u64 {
        self.0[0].load(SeqCst)
    }
}
