//! Shows two sides beside each other: a table, a page, a file, a summary for CI.

use analysis::contrast::{Contrast, GateFinding, SCHEMA};

use crate::html::RenderError;
use crate::sentences::contrasts;
use crate::terminal::{TerminalOptions, plain};
use crate::{beside, junit, markdown};

/// The contrast as JSON, ending in a newline.
///
/// # Errors
/// Only where serde refuses a value, which no field of [`Contrast`] gives cause for.
pub fn json(contrast: &Contrast) -> Result<String, serde_json::Error> {
    let mut contrast = contrast.clone();
    let runs = contrast.before.runs.iter_mut().chain(&mut contrast.after.runs);
    for limit in runs.filter_map(|run| run.bottleneck.as_mut()) {
        beside::put_name(&mut limit.holder, &mut limit.identity);
    }
    serde_json::to_string_pretty(&contrast).map(|text| text + "\n")
}

/// The JSON Schema of a contrast, as shipped in `docs/contrast.schema.json`.
#[must_use]
pub fn schema() -> String {
    crate::json::schema_of::<Contrast>(SCHEMA)
}

/// The contrast as text for a terminal, ending in a newline.
#[must_use]
pub fn terminal(contrast: &Contrast, options: &TerminalOptions) -> String {
    crate::terminal::contrast::text(contrast, options)
}

/// The contrast as a page that opens offline.
///
/// # Errors
/// [`RenderError`] only where a template of this crate is broken.
pub fn html(contrast: &Contrast) -> Result<String, RenderError> {
    crate::html::contrast::page(contrast)
}

/// The contrast in Markdown, for the summary of a CI job.
#[must_use]
pub fn markdown(contrast: &Contrast) -> String {
    markdown::contrast(contrast)
}

/// The gates as JUnit XML.
#[must_use]
pub fn junit(contrast: &Contrast) -> String {
    junit::of_contrast(contrast)
}

/// What a gate came to, in ASCII: for stderr, which may be any terminal or a log.
#[must_use]
pub fn gate(finding: &GateFinding) -> String {
    plain(&contrasts::gate(finding))
}

/// Why two sides cannot be compared, in ASCII; `None` if they can be.
#[must_use]
pub fn other_load(contrast: &Contrast) -> Option<String> {
    contrasts::other_load(contrast).map(|text| plain(&text))
}
