//! A history on a terminal: for each course what changed, then its runs.

use analysis::contrast::Point;
use analysis::history::History;

use super::style::{self, Style};
use super::{MARGIN, TEXT_WIDTH_MAX, TerminalOptions, WIDTH_MIN, joined, runs};
use crate::sentences::histories;

/// The history as text for a terminal, ending in a newline.
pub(crate) fn text(history: &History, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let table = options.width.max(WIDTH_MIN) - MARGIN.len();
    let width = table.min(TEXT_WIDTH_MAX - MARGIN.len());
    let mut blocks = Vec::new();
    for course in &history.courses {
        let mut said = style::wrap(&style.text(&histories::title(course)), width, |line| style.strong(line));
        let found = histories::found(course).into_iter().map(|sentence| style.text(&sentence));
        said.extend(found.flat_map(|sentence| style::wrap(&sentence, width, str::to_owned)));
        blocks.push(said);
        blocks.push(runs::lines(&histories::rows(course), style, table));
    }
    blocks.push(style::wrap(&style.text(histories::METHOD), width, |line| style.dim(line)));
    blocks.push(super::written(options, style, width));
    joined(&blocks)
}

/// Repeats of one measurement as text for a terminal.
pub(crate) fn repeats(points: &[Point], options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let width = options.width.max(WIDTH_MIN) - MARGIN.len();
    let all: Vec<(&Point, bool, String)> = points.iter().map(|run| (run, false, String::new())).collect();
    let lines = runs::lines(&all, style, width);
    joined(&[lines, super::written(options, style, width)])
}
