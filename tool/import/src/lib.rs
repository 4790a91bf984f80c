//! Scenarios from what people have: a `curl` command line, a recording of a browser (HAR 1.2), or the description of an API
//! (OpenAPI 3, in JSON).
//!
//! Text in, an [`Imported`] workload out, which writes itself as a scenario file. What is left out, or could not be kept
//! as it was, is listed as data ([`LeftOut`]); `report` has the words. Secrets never reach the file: it takes them from
//! the environment.

mod curl;
mod draft;
mod error;
mod har;
mod left_out;
mod openapi;
mod scenario;
mod secrets;

use serde::Deserialize;
use serde::de::IgnoredAny;

pub use curl::Curl;
pub use error::{CurlError, ImportError};
pub use left_out::{LeftOut, Why};
pub use scenario::{Body, Imported, Request, Value};
pub use secrets::is_secret;

/// Reads a recording, a description or a command line, whichever of these it is. `base` is the URL of the server to keep the
/// requests of; by default the one that most of them go to, or that the description names.
///
/// # Errors
/// What is wrong, and where.
pub fn read(text: &str, base: Option<&str>) -> Result<Imported, ImportError> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with("curl") {
        return Ok(text.parse::<Curl>()?.into_scenario());
    }
    if !text.starts_with('{') {
        return Err(ImportError::Unknown);
    }
    match serde_json::from_str::<Kind>(text) {
        Ok(Kind { log: None, openapi: None, swagger: None }) => Err(ImportError::Unknown),
        Ok(Kind { log: None, .. }) => {
            let document =
                serde_json::from_str(text).map_err(|error| ImportError::Json(error.to_string()))?;
            openapi::read(&document, base)
        }
        Ok(_) => har::read(text, base),
        Err(error) => Err(ImportError::Json(error.to_string())),
    }
}

/// What tells one kind of file from another.
#[derive(Deserialize)]
struct Kind {
    log: Option<IgnoredAny>,
    openapi: Option<IgnoredAny>,
    swagger: Option<IgnoredAny>,
}
