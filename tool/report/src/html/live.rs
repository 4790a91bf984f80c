//! A sweep that goes on, as a page: whole, and in the parts of it that change.

use minijinja::Environment;
use serde::Serialize;

use super::figures::{self, Figure};
use super::{RenderError, environment, render_in};
use crate::live::{Frame, Known};
use crate::sentences::live as sentences;

/// A part of the page that changes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// What was found so far.
    Headline,
    /// What is being done, how far it has settled, and the time.
    Now,
    /// The busiest resources.
    Busiest,
    /// What was said besides.
    Notes,
    /// The charts.
    Figures,
}

impl Part {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 5] = [Self::Headline, Self::Now, Self::Busiest, Self::Notes, Self::Figures];

    /// Its name: the id of its element on the page, and the name of the event that brings it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Headline => "headline",
            Self::Now => "now",
            Self::Busiest => "busiest",
            Self::Notes => "notes",
            Self::Figures => "figures",
        }
    }
}

/// Renders the page again and again.
#[derive(Debug)]
pub struct Renderer {
    environment: Environment<'static>,
}

/// What the templates read.
#[derive(Debug, Serialize)]
struct View {
    title: String,
    /// Allows the page's one script to run, and no other.
    nonce: String,
    /// Has the style sheet of the page that goes on.
    live: bool,
    part: Option<Part>,
    frame: Frame,
    figures: Vec<Figure>,
}

impl Renderer {
    /// Compiles the templates.
    ///
    /// # Errors
    /// [`RenderError`] only where a template of this crate is broken.
    pub fn new() -> Result<Self, RenderError> {
        Ok(Self { environment: environment()? })
    }

    /// The whole page. Its script runs where the response's policy allows scripts with this nonce.
    ///
    /// # Errors
    /// [`RenderError`] only where a template of this crate is broken.
    pub fn page(&self, known: &Known, nonce: &str) -> Result<String, RenderError> {
        let title = format!("{} – nstar live", known.target);
        let view = View { title, nonce: nonce.to_owned(), ..View::of(known, None) };
        render_in(&self.environment, "live.html", view)
    }

    /// What is inside the element of a part.
    ///
    /// # Errors
    /// [`RenderError`] only where a template of this crate is broken.
    pub fn part(&self, known: &Known, part: Part) -> Result<String, RenderError> {
        render_in(&self.environment, "live-part.html", View::of(known, Some(part)))
    }

    /// What is inside the element of [`Part::Now`] once the sweep has ended without a result, for this reason.
    ///
    /// # Errors
    /// [`RenderError`] only where a template of this crate is broken.
    pub fn failed(&self, why: &str) -> Result<String, RenderError> {
        let frame = Frame { doing: sentences::failed(why), ..Frame::default() };
        let view = View { frame, ..View::of(&Known::default(), Some(Part::Now)) };
        render_in(&self.environment, "live-part.html", view)
    }
}

impl View {
    /// Charts are drawn only for what shows them.
    fn of(known: &Known, part: Option<Part>) -> Self {
        let frame = known.frame();
        let shows_charts = part.is_none_or(|part| part == Part::Figures);
        let figures = if shows_charts { figures::so_far(&known.run(), &frame.headline) } else { Vec::new() };
        Self { title: String::new(), nonce: String::new(), live: true, part, frame, figures }
    }
}
