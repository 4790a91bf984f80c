//! What shows a sweep in a program that was built without the view: plain progress.

use analysis::run::Run;
use sweep::progress::{Event, Listener};

use crate::{exit::Failure, flags, interrupt::Interrupt, progress::Progress};

/// Shows a sweep.
pub struct View(Progress);

impl View {
    /// Chooses by what stderr is. Signals are listened for from now on.
    pub fn of_sweep(flags: &flags::Sweep, _: &str) -> Result<(Self, Interrupt), Failure> {
        let interrupt = Interrupt::listen_at_terminal().map_err(Failure::failed)?;
        Ok((Self(Progress::new(flags.show.no_progress)), interrupt))
    }

    /// Takes it away, so that what follows stands alone.
    pub fn finish(&mut self) {
        self.0.finish();
    }

    /// Ends it.
    pub fn end_with(self, _: &Run) -> Result<(), Failure> {
        Ok(())
    }

    /// Ends it where there is no result.
    pub fn end_without(self, _: &Failure) {}
}

impl Listener for View {
    fn on(&mut self, event: &Event) {
        self.0.on(event);
    }
}
