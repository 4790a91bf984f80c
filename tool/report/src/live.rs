//! A sweep while it goes on: what is known so far, in words and figures, for a terminal and a page.

use analysis::run::{Resource, Run, Slowable};
use analysis::search::outlook::{Purpose, Settling, SoFar, TimeOf};
use serde::Serialize;

pub use crate::html::live::{Part, Renderer};
pub use crate::terminal::live::{curves, table};

use crate::number;
use crate::sentences::{holders, live as sentences};
use crate::terminal::style::{self, Style, breakable};
use crate::words;

/// The heading of the busiest resources.
pub const BUSIEST: &str = "Busiest";

/// How to end a sweep from the terminal.
pub const HOW_TO_END: &str = "Ctrl-C ends the sweep with what was measured.";

/// The most resources that are shown.
const RESOURCES_MAX: usize = 8;

/// What is known of a sweep while it goes on.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// What is driven, for people; without credentials.
    pub target: String,
    /// What is being done.
    pub doing: Doing,
    /// The time of the search.
    pub time: TimeOf,
    /// What the complete measurements come to, each with the resources seen meanwhile.
    pub so_far: SoFar,
    /// Resources by falling utilisation, as they were seen last.
    pub resources: Vec<Resource>,
    /// What was said besides, in the order of time.
    pub notes: Vec<String>,
    /// Whether the sweep was asked to end.
    pub ending: bool,
    /// The address of the page that shows it too, if one does.
    pub page: Option<String>,
}

/// What a sweep is doing.
#[derive(Debug, Clone, Default)]
pub enum Doing {
    /// It prepares the first measurement.
    #[default]
    Starting,
    /// It measures.
    Measuring {
        /// Users.
        users: u32,
        /// What that decides.
        purpose: Option<Purpose>,
        /// How far it has settled; `None` at its beginning.
        settling: Option<Settling>,
    },
    /// It samples the processor time of the server.
    Profiling {
        /// Users.
        users: u32,
    },
    /// It tells one explanation from another.
    TellingApart {
        /// Users.
        users: u32,
    },
    /// It slows a tier to test the verdict.
    Slowing(Slowable),
    /// It has measured all, and concludes.
    Concluding,
    /// It is over.
    Over,
}

/// What to show of it, ready to be drawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Frame {
    /// What is driven.
    pub target: String,
    /// What was found so far.
    pub headline: String,
    /// What is being done.
    pub doing: String,
    /// What that decides and what comes next, if it decides anything.
    pub decides: Option<String>,
    /// How far the measurement has settled.
    pub settled: Option<Gauge>,
    /// The time measured and left.
    pub time: Gauge,
    /// Resources by falling utilisation, one for each holder.
    pub busiest: Vec<Busy>,
    /// What was said besides.
    pub notes: Vec<String>,
}

/// A share that grows, and its words.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Gauge {
    /// 0 to 1, where it is known.
    pub share: Option<f64>,
    /// In words.
    pub text: String,
}

/// One resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Busy {
    /// Who holds it.
    pub holder: String,
    /// The kind of resource.
    pub kind: String,
    /// Busy share, 0 to 1.
    pub share: f64,
    /// The same in words.
    pub text: String,
}

impl Known {
    /// What to show.
    #[must_use]
    pub fn frame(&self) -> Frame {
        Frame {
            target: self.target.clone(),
            headline: sentences::found(&self.so_far),
            doing: sentences::doing(&self.doing, self.ending),
            decides: self.decides(),
            settled: self.settled(),
            time: Gauge { share: self.time.share(), text: sentences::time(&self.time, &self.doing) },
            busiest: busiest(&self.resources),
            notes: self.notes.clone(),
        }
    }

    /// The same as a run that ended here.
    pub(crate) fn run(&self) -> Run {
        self.so_far.as_run(&self.target)
    }

    fn decides(&self) -> Option<String> {
        match self.doing {
            Doing::Measuring { purpose: Some(purpose), .. } if !self.ending => sentences::decides(purpose),
            _ => None,
        }
    }

    fn settled(&self) -> Option<Gauge> {
        let Doing::Measuring { settling, .. } = &self.doing else { return None };
        let share = settling.as_ref().and_then(Settling::share);
        Some(Gauge { share, text: sentences::settled(settling.as_ref()) })
    }
}

impl Frame {
    /// The same with nothing that steers a terminal, or that it cannot show.
    #[must_use]
    pub fn for_terminal(self, unicode: bool) -> Self {
        // What is to be broken into lines keeps the spaces that do not break.
        let safe = |text: String| Style::new(false, unicode).text(&text);
        let line = |text: String| breakable(&safe(text));
        let gauge = |gauge: Gauge| Gauge { text: line(gauge.text), ..gauge };
        Self {
            target: line(self.target),
            headline: safe(self.headline),
            doing: safe(self.doing),
            decides: self.decides.map(safe),
            settled: self.settled.map(gauge),
            time: gauge(self.time),
            busiest: self
                .busiest
                .into_iter()
                .map(|one| Busy { holder: line(one.holder), text: line(one.text), ..one })
                .collect(),
            notes: self.notes.into_iter().map(safe).collect(),
        }
    }
}

/// Where a page shows the sweep.
#[must_use]
pub fn page_at(url: &str) -> String {
    format!("page: {url}")
}

/// A text in lines of at most so many columns, if its words allow that.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    style::wrap(text, columns, breakable)
}

/// The busiest resource of each holder.
fn busiest(resources: &[Resource]) -> Vec<Busy> {
    let mut shown: Vec<Busy> = Vec::new();
    for resource in resources {
        let holder = holders::resource_name(resource).into_owned();
        if shown.iter().any(|one| one.holder == holder) {
            continue;
        }
        shown.push(Busy {
            holder,
            kind: words::kind(resource.kind).to_owned(),
            share: resource.utilization.clamp(0.0, 1.0),
            text: number::percent(resource.utilization),
        });
    }
    shown.truncate(RESOURCES_MAX);
    shown
}
