//! Shows a run: terminal, HTML, JSON, CSV. Formats, never computes.
//!
//! Every figure shown is in the [`Run`](model::run::Run) already; this crate scales units, rounds
//! to what the interval supports, and places points on paper.

mod axis;
mod csv;
mod html;
mod json;
mod number;
mod summary;
mod terminal;
mod words;

pub use csv::csv;
pub use html::{RenderError, html};
pub use json::{ReadError, json, parse, schema};
pub use terminal::{TerminalOptions, terminal};
