//! The run file: written, read back, and its JSON Schema.

use analysis::comparison::{self, Comparison};
use analysis::run::{Run, SCHEMA};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use thiserror::Error;

use crate::beside;

/// The run as the JSON of `run.json`, in the order of [`Run`]'s fields, ending in a newline.
///
/// # Errors
/// Only where serde refuses a value, which no field of [`Run`] gives cause for.
pub fn json(run: &Run) -> Result<String, serde_json::Error> {
    let mut run = run.clone();
    beside::put(&mut run);
    serde_json::to_string_pretty(&run).map(|text| text + "\n")
}

/// Reasons why a run file could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Not JSON, or cut short.
    #[error("not a run file: {reason}")]
    NotJson {
        /// The parser's message, with the place.
        reason: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// JSON, but not written by nstar.
    #[error("not a run file: it has no `schema`. `nstar sweep URL -o run.json` writes one")]
    NotARun,
    /// Another version of the run file.
    #[error("the run file is `{found}`, and this nstar reads `{read}`: read it with the nstar that wrote it{}", version_note(.written_by))]
    Version {
        /// The schema it names.
        found: String,
        /// The schema that can be read here.
        read: &'static str,
        /// The version of nstar that wrote it, where the file says so.
        written_by: Option<String>,
    },
    /// The right version, but a field is missing or of the wrong type.
    #[error("the run file is damaged at {}: {reason}", place(.path))]
    Field {
        /// The path of the value, such as `steps[2].throughput_per_s`; of a missing field, its parent's.
        path: String,
        /// The parser's message.
        reason: String,
    },
}

fn version_note(version: &Option<String>) -> String {
    version.as_ref().map_or_else(String::new, |version| format!(" (version {version})"))
}

fn place(path: &str) -> String {
    if path == "." { "its top level".into() } else { format!("`{path}`") }
}

/// The part that is read first, to tell a file of another version from a damaged one.
#[derive(Deserialize)]
struct Envelope {
    schema: Option<serde_json::Value>,
    version: Option<serde_json::Value>,
}

/// Reads a run file.
///
/// # Errors
/// [`ReadError`], which says what is wrong, where, and what to do.
pub fn parse(text: &str) -> Result<Run, ReadError> {
    let mut run = parse_as(text, SCHEMA)?;
    beside::take(&mut run);
    Ok(run)
}

/// Reads a comparison file.
///
/// # Errors
/// As for [`parse`].
pub(crate) fn parse_comparison(text: &str) -> Result<Comparison, ReadError> {
    let read = match parse_as(text, comparison::SCHEMA) {
        Err(ReadError::Version { found, .. }) if found == comparison::FIRST_SCHEMA => {
            parse_as(text, comparison::FIRST_SCHEMA)
        }
        read => read,
    };
    let mut comparison = read?;
    beside::take_from_comparison(&mut comparison);
    Ok(comparison)
}

/// A file that nstar wrote.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// One sweep or load.
    Run(Box<Run>),
    /// Several variants side by side.
    Comparison(Box<Comparison>),
}

/// Reads a run file or a comparison file, whichever it says it is.
///
/// # Errors
/// [`ReadError`], as for [`parse`].
pub fn read(text: &str) -> Result<Document, ReadError> {
    match parse(text) {
        Err(ReadError::Version { found, .. })
            if [comparison::SCHEMA, comparison::FIRST_SCHEMA].contains(&found.as_str()) =>
        {
            parse_comparison(text).map(|comparison| Document::Comparison(Box::new(comparison)))
        }
        run => run.map(|run| Document::Run(Box::new(run))),
    }
}

/// Reads a file of the schema given.
pub(crate) fn parse_as<T: DeserializeOwned>(text: &str, schema: &'static str) -> Result<T, ReadError> {
    check_version(text, schema)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| ReadError::Field {
        path: error.path().to_string(),
        reason: error.into_inner().to_string(),
    })
}

fn check_version(text: &str, schema: &'static str) -> Result<(), ReadError> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(not_json)?;
    // Derived readers take a list for a struct as well; a run file is an object.
    if !value.is_object() {
        return Err(ReadError::NotARun);
    }
    let envelope: Envelope = serde_json::from_value(value).map_err(|_| ReadError::NotARun)?;
    match envelope.schema {
        None => Err(ReadError::NotARun),
        Some(found) if found == schema => Ok(()),
        Some(found) => Err(ReadError::Version {
            found: found.as_str().map_or_else(|| found.to_string(), str::to_owned),
            read: schema,
            written_by: envelope.version.and_then(|version| version.as_str().map(str::to_owned)),
        }),
    }
}

fn not_json(error: serde_json::Error) -> ReadError {
    ReadError::NotJson { line: error.line(), column: error.column(), reason: error.to_string() }
}

/// The JSON Schema of the run file, as shipped in `docs/run.schema.json`.
#[must_use]
pub fn schema() -> String {
    schema_of::<Run>(SCHEMA)
}

pub(crate) fn schema_of<T: JsonSchema>(name: &str) -> String {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Some(version) = schema.pointer_mut("/properties/schema") {
        version["const"] = name.into();
    }
    format!("{schema:#}\n")
}
