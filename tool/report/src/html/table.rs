//! Tables of the page.

use std::borrow::Cow;

use serde::Serialize;

use crate::metrics::{Measurement, Metric, MetricUnit, Quantity};
use crate::number;

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
    /// Whether this is the row that the verdict is about.
    pub(super) marked: bool,
    pub(super) cells: Vec<Cell>,
}

/// A cell: the text people read, and the figure behind it for programs.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) text: String,
    /// Name of the figure in the run file.
    pub(super) name: Cow<'static, str>,
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

    /// The column of a metric.
    pub(super) fn metric(metric: &Metric) -> Self {
        Self { heading: metric.heading().to_owned(), numeric: metric.unit() != MetricUnit::YesNo }
    }
}

impl Cell {
    pub(super) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), name: Cow::Borrowed(""), value: String::new(), note: "" }
    }

    pub(super) fn figure(name: &'static str, value: impl ToString, text: impl Into<String>) -> Self {
        Self { text: text.into(), name: Cow::Borrowed(name), value: value.to_string(), note: "" }
    }

    /// The cell of a metric, as `text` writes it; a dash where the measurement has no such figure.
    pub(super) fn metric(
        metric: &'static Metric,
        of: &Measurement<'_>,
        text: impl Fn(MetricUnit, &Quantity) -> String,
    ) -> Self {
        metric.read(of).map_or_else(Self::missing, |quantity| Self {
            text: text(metric.unit(), &quantity),
            name: Cow::Borrowed(metric.field_name()),
            value: quantity.value.to_string(),
            note: "",
        })
    }

    /// A dash, where there is no figure.
    pub(super) fn missing() -> Self {
        Self::words(number::MISSING)
    }

    pub(super) fn with_note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}
