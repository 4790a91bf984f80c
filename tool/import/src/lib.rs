//! Scenarios from what people have: a `curl` command line, a recording of a browser (HAR 1.2), or the description of an API
//! (OpenAPI 3, in JSON or YAML).
//!
//! Text in, an [`Imported`] workload out, which writes itself as a scenario file. What is left out, or could not be kept
//! as it was, is listed as data ([`LeftOut`]); `report` has the words. A secret is known by its name, or by that
//! of the list or object that it lies in: the file takes it from the environment. One that cannot be replaced in a body, such
//! as a number, stays there and is listed. What a scenario repeats of a text is limited.

mod curl;
mod draft;
mod error;
mod har;
mod json_text;
mod left_out;
mod openapi;
mod scenario;
mod secrets;
mod variables;
#[cfg(feature = "yaml")]
mod yaml;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value as Json;

pub use curl::Curl;
pub use error::{CurlError, ImportError};
pub use left_out::{LeftOut, Why};
pub use scenario::{Body, Imported, Request, Value};
pub use secrets::is_secret;

/// The most that is copied of what several requests share, in bytes: of bodies, of values, and of everything else.
const COPIED_BYTES_MAX: usize = 16 << 20;

/// Reads a recording, a description or a command line, whichever of these it is. `base` is the URL of the server to keep the
/// requests of; by default the one that most of them go to, or that the description names. For a description, a path in it
/// replaces the one that the description gives its server.
///
/// # Errors
/// What is wrong, and where.
pub fn read(text: &str, base: Option<&str>) -> Result<Imported, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    let start = text.trim_start();
    if start.starts_with("curl") {
        return start.parse::<Curl>()?.into_scenario();
    }
    if !start.starts_with('{') {
        return openapi::read(&in_yaml(text)?, base);
    }
    match serde_json::from_str::<Kind>(text) {
        Ok(Kind { log: None, openapi: None, swagger: None }) => Err(ImportError::Unknown),
        Ok(Kind { log: None, .. }) => {
            let document: Json =
                serde_json::from_str(text).map_err(|error| ImportError::Json(error.to_string()))?;
            openapi::read(&document, base)
        }
        Ok(_) => har::read(text, base),
        Err(error) => Err(ImportError::Json(error.to_string())),
    }
}

/// The tree of a description in YAML. Other texts, which may well be YAML too, are not parsed.
fn in_yaml(text: &str) -> Result<Json, ImportError> {
    let begins = |line: &str| {
        let line = line.trim_start_matches([' ', '"', '\'']);
        line.starts_with("openapi") || line.starts_with("swagger")
    };
    if !text.lines().any(begins) {
        return Err(ImportError::Unknown);
    }
    let document = tree_of(text)?;
    let is_description = document.get("openapi").or_else(|| document.get("swagger")).is_some();
    if is_description { Ok(document) } else { Err(ImportError::Unknown) }
}

#[cfg(feature = "yaml")]
fn tree_of(text: &str) -> Result<Json, ImportError> {
    yaml::parse(text)
}

#[cfg(not(feature = "yaml"))]
fn tree_of(_: &str) -> Result<Json, ImportError> {
    Err(ImportError::NoYaml)
}

/// What tells one kind of file from another.
#[derive(Deserialize)]
struct Kind {
    log: Option<IgnoredAny>,
    openapi: Option<IgnoredAny>,
    swagger: Option<IgnoredAny>,
}
