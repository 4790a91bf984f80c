//! A sweep as it goes on: on a terminal a view of its own, as a page where that is asked for, and plain progress otherwise.

use std::env;

use analysis::run::Run;
use live::{Page, Screen, ServeError, Shared, Style, restore_terminal, resume_terminal, suspend_terminal};
use report::printable;
use sweep::progress::{Event, Listener};

use crate::{
    exit::{self, Failure},
    flags,
    interrupt::{Interrupt, Pauses},
    output,
    progress::{self, Progress},
};

/// Shows a sweep.
pub struct View {
    /// What is shown without a view, or before it.
    plain: Progress,
    shared: Shared,
    /// What the terminal can show, where it is to have the view.
    style: Option<Style>,
    screen: Option<Screen>,
    page: Option<Page>,
    /// What was said while the screen had the terminal.
    said: Vec<String>,
}

impl View {
    /// Chooses by what stderr is, and serves the page where that is asked for. Signals are listened for from now on.
    pub fn of_sweep(flags: &flags::Sweep, target: &str) -> Result<(Self, Interrupt), Failure> {
        let address = flags.live.plan()?;
        let style = style().filter(|_| !flags.show.no_progress);
        let interrupt = match style {
            Some(_) => Interrupt::listen_with(PAUSES),
            None => Interrupt::listen_at_terminal(),
        };
        let interrupt = interrupt.map_err(Failure::failed)?;
        let shared = Shared::new(target, interrupt.asked.clone());
        let page = address.map(|address| Page::serve(&shared, &address)).transpose().map_err(refused)?;
        // A bar beside the view would draw over it.
        let plain = if style.is_some() { Progress::Lines } else { Progress::new(flags.show.no_progress) };
        let view = Self { plain, shared, style, screen: None, page, said: Vec::new() };
        if let Some(page) = &view.page {
            // Whoever wants no progress wants the page all the same.
            exit::say(&report::live::page_at(&page.url()));
            view.shared.page_at(&page.url());
        }
        Ok((view, interrupt))
    }

    /// Takes the view off the terminal, so that what follows stands alone.
    pub fn finish(&mut self) {
        if self.screen.take().is_some() {
            self.said.drain(..).for_each(|line| self.plain.say(&line));
        }
        self.plain.finish();
    }

    /// Shows the report on pages that are open, and waits until they have it.
    pub fn end_with(mut self, run: &Run) -> Result<(), Failure> {
        self.finish();
        if let Some(page) = self.page.take() {
            page.end_with(report::html(run).map_err(Failure::failed)?);
        }
        Ok(())
    }

    /// The same where there is no report.
    pub fn end_without(mut self, failure: &Failure) {
        self.finish();
        if let Some(page) = self.page.take() {
            page.end_without(&printable(&failure.to_string()));
        }
    }
}

impl View {
    /// Takes the terminal for the view once a measurement begins. Not before: programs that observe elsewhere may ask for a
    /// password until then.
    fn open_at(&mut self, event: &Event) {
        let Some(style) = self.style.filter(|_| self.screen.is_none()) else { return };
        if matches!(event, Event::StepBegun { .. }) {
            match Screen::open(&self.shared, style) {
                Ok(screen) => self.screen = Some(screen),
                Err(_) => self.style = None,
            }
        }
    }

    /// Whether an event is told in words that stay.
    fn is_kept(event: &Event) -> bool {
        matches!(
            event,
            Event::Advice { .. }
                | Event::UnexpectedStatus { .. }
                | Event::Redirected { .. }
                | Event::NothingToKeep { .. }
                | Event::DatabaseUnwatched { .. }
                | Event::NotPutBack(_)
        )
    }
}

impl Listener for View {
    fn on(&mut self, event: &Event) {
        if self.shared.on(event) {
            self.shared.say(&progress::words(event));
        }
        self.open_at(event);
        match &self.screen {
            Some(_) if View::is_kept(event) => self.said.push(progress::words(event)),
            Some(_) => {}
            None if self.style.is_none() || View::is_kept(event) => self.plain.on(event),
            None => {}
        }
    }

    fn follows_closely(&self) -> bool {
        self.style.is_some() || self.page.is_some()
    }
}

/// What a signal does to the terminal before it ends or stops the process.
const PAUSES: Pauses = Pauses { end: restore_terminal, stop: suspend_terminal, go_on: resume_terminal };

/// Why there is no page: a port that is taken is the caller's to change.
fn refused(error: ServeError) -> Failure {
    match error {
        ServeError::InUse(_) | ServeError::Listen(..) => Failure::usage(error),
        ServeError::Start(_) | ServeError::Render(_) => Failure::failed(error),
    }
}

/// What the terminal can show; `None` where stderr is none, or one that cannot move its cursor.
fn style() -> Option<Style> {
    output::stderr_moves_its_cursor()
        .then(|| Style { colour: env::var_os("NO_COLOR").is_none(), unicode: output::locale_is_utf8() })
}
