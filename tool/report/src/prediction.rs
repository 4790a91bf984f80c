//! Shows a prediction: text, a file, and why there is none.

use analysis::prediction::{Prediction, Refusal, SCHEMA};

use crate::beside;
use crate::sentences::predictions;
use crate::terminal::TerminalOptions;

/// The prediction as JSON, ending in a newline.
///
/// # Errors
/// Only where serde refuses a value, which no field of [`Prediction`] gives cause for.
pub fn json(prediction: &Prediction) -> Result<String, serde_json::Error> {
    let mut prediction = prediction.clone();
    let outlooks = [&mut prediction.before, &mut prediction.after];
    for limit in outlooks.into_iter().flat_map(|outlook| &mut outlook.limits) {
        beside::put_name(&mut limit.holder, &mut limit.identity);
    }
    serde_json::to_string_pretty(&prediction).map(|text| text + "\n")
}

/// The JSON Schema of a prediction, as shipped in `docs/prediction.schema.json`.
#[must_use]
pub fn schema() -> String {
    crate::json::schema_of::<Prediction>(SCHEMA)
}

/// The prediction as text for a terminal, ending in a newline.
#[must_use]
pub fn terminal(prediction: &Prediction, options: &TerminalOptions) -> String {
    crate::terminal::prediction::text(prediction, options)
}

/// Why there is no prediction, and what to do.
#[must_use]
pub fn refusal(of: &Refusal) -> String {
    predictions::refusal(of)
}
