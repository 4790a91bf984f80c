//! Reading JSON.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::Problem;

/// Parses a request body.
///
/// # Errors
/// 400 if it is not JSON, 422 if it does not fit `T`.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        match error.classify() {
            Category::Data => {
                Problem::new(422, format!("the JSON body lacks a field or has a wrong one, at {place}"))
            }
            _ => Problem::new(400, format!("the body is not JSON, at {place}")),
        }
    })
}
