//! A run as one HTML page: a single file that fetches nothing and is readable without script.
//!
//! Rust decides what is shown and where ([`page`], [`figures`], [`chart`]); the templates hold the markup and escape every
//! value.

mod bars;
mod chart;
pub(crate) mod comparison;
pub(crate) mod contrast;
mod facts;
mod figures;
mod flame;
pub(crate) mod history;
pub(crate) mod index;
pub(crate) mod live;
mod off_cpu;
mod page;
mod profile;
mod relative;
mod requests;
mod runs;
mod table;
mod threads;
mod topology;

use analysis::run::Run;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;
use thiserror::Error;

use crate::words::is_hidden;

/// A mistake in one of the page's templates, which no run can cause.
#[derive(Debug, Error)]
#[error("the report's own template is broken, please report this: {0}")]
pub struct RenderError(#[from] minijinja::Error);

const TEMPLATES: [(&str, &str); 20] = [
    ("page.html", include_str!("../templates/page.html")),
    ("comparison.html", include_str!("../templates/comparison.html")),
    ("contrast.html", include_str!("../templates/contrast.html")),
    ("history.html", include_str!("../templates/history.html")),
    ("index.html", include_str!("../templates/index.html")),
    ("live.html", include_str!("../templates/live.html")),
    ("live-parts.html", include_str!("../templates/live-parts.html")),
    ("live.css", include_str!("../templates/live.css")),
    ("live-part.html", include_str!("../templates/live-part.html")),
    ("live.js", include_str!("../templates/live.js")),
    ("head.html", include_str!("../templates/head.html")),
    ("held.html", include_str!("../templates/held.html")),
    ("bars.html", include_str!("../templates/bars.html")),
    ("sections.html", include_str!("../templates/sections.html")),
    ("chart.html", include_str!("../templates/chart.html")),
    ("table.html", include_str!("../templates/table.html")),
    ("topology.html", include_str!("../templates/topology.html")),
    ("profile.html", include_str!("../templates/profile.html")),
    ("style.css", include_str!("../templates/style.css")),
    ("script.js", include_str!("../templates/script.js")),
];

/// Bytes of a page that flame graphs fill at most: what is more is slow to mail, to keep and to open.
const PAGE_BYTES_MAX: usize = 1_000_000;

/// Renders a run as a page that opens offline. Flame graphs take what the rest of it leaves of 1 MB, and say what they leave
/// out.
///
/// # Errors
/// [`RenderError`] only where a template of this crate is broken.
pub fn html(run: &Run) -> Result<String, RenderError> {
    let environment = environment()?;
    let render = |graphs_bytes| render_in(&environment, "page.html", page::Page::new(run, graphs_bytes));
    let without_graphs = render(0)?;
    if run.profile.is_none() {
        return Ok(without_graphs);
    }
    render(PAGE_BYTES_MAX.saturating_sub(without_graphs.len()))
}

fn render(template: &str, page: impl Serialize) -> Result<String, RenderError> {
    render_in(&environment()?, template, page)
}

/// All templates, compiled: for whoever renders again and again.
fn environment() -> Result<Environment<'static>, RenderError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

fn render_in(
    environment: &Environment<'_>,
    template: &str,
    page: impl Serialize,
) -> Result<String, RenderError> {
    let page = environment.get_template(template)?.render(Serde(page))?;
    Ok(page
        .chars()
        .map(|c| if c != '\n' && is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c })
        .collect())
}
