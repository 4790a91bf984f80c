//! Scenarios from what people have: a `curl` command line or a recording of a browser (HAR 1.2).
//!
//! Text in, an [`Imported`] workload out, which writes itself as a scenario file. What is left out, or could not be kept
//! as it was, is listed as data ([`LeftOut`]); `report` has the words. Secrets never reach the file: it takes them from
//! the environment.

mod curl;
mod draft;
mod error;
mod har;
mod left_out;
mod scenario;
mod secrets;

pub use curl::Curl;
pub use error::{CurlError, ImportError};
pub use left_out::{LeftOut, Why};
pub use scenario::{Body, Imported, Request, Value};
pub use secrets::is_secret;

/// Reads a recording or a command line, whichever of these it is. `base` is the URL of the server to keep the requests of;
/// by default the one that most of them go to.
///
/// # Errors
/// What is wrong, and where.
pub fn read(text: &str, base: Option<&str>) -> Result<Imported, ImportError> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with("curl") {
        return Ok(text.parse::<Curl>()?.into_scenario());
    }
    if text.starts_with('{') { har::read(text, base) } else { Err(ImportError::Unknown) }
}
