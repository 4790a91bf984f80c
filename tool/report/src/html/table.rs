//! Tables as the template draws them.

use serde::Serialize;

/// A table; the first cell of a row names the row.
#[derive(Debug, Serialize)]
pub(super) struct Table {
    pub(super) id: String,
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) numeric: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Whether it is the row the verdict speaks of.
    pub(super) marked: bool,
    pub(super) cells: Vec<Cell>,
}

/// A cell: the text people read, and the figure behind it for programs.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) text: String,
    /// Name of the figure in the run file.
    pub(super) name: &'static str,
    /// The figure, unrounded; empty for words.
    pub(super) value: String,
    /// A remark, in small type.
    pub(super) note: &'static str,
}

impl Column {
    pub(super) fn numeric(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), numeric: true }
    }

    pub(super) fn words(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), numeric: false }
    }
}

impl Cell {
    pub(super) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), name: "", value: String::new(), note: "" }
    }

    pub(super) fn figure(name: &'static str, value: impl ToString, text: impl Into<String>) -> Self {
        Self { text: text.into(), name, value: value.to_string(), note: "" }
    }

    pub(super) fn with_note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}
