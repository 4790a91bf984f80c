//! Shows runs and comparisons: terminal, HTML, JSON, CSV. Formats, never computes.
//!
//! Every figure shown is in the [`Run`](analysis::run::Run) already; this crate scales units, rounds
//! to what the interval supports, and places points on paper.
//!
//! To see a run file as any of them: `cargo run -p report --example render -- run.json html`; to look
//! at the design with every kind of outcome: `cargo run -p report --example samples -- DIR`.

mod axis;
mod beside;
pub mod check;
pub mod comparison;
pub mod contrast;
mod csv;
pub mod doctor;
mod folded;
pub mod gates;
pub mod history;
mod html;
pub mod import;
pub mod index;
mod json;
mod junit;
pub mod live;
mod markdown;
pub mod metrics;
mod number;
mod pprof;
pub mod prediction;
mod printable;
pub mod progress;
mod sentences;
mod summary;
mod terminal;
pub mod undo;
mod words;

pub use beside::put as put_words;
pub use csv::csv;
pub use folded::{folded, folded_off_cpu};
pub use html::{RenderError, html};
pub use json::{Document, ReadError, json, parse, read, schema};
pub use pprof::pprof;
pub use printable::{printable, printable_painted};
pub use sentences::{generator_lost, warning_text};
pub use terminal::{TerminalOptions, terminal};
