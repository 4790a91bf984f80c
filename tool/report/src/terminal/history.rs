//! A history on a terminal: for each course what changed, then its runs.

use analysis::contrast::Point;
use analysis::history::{Course, History};

use super::style::{self, Style};
use super::{MARGIN, TEXT_WIDTH_MAX, TerminalOptions, WIDTH_MIN, joined, runs};
use crate::number;
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
        blocks.push(table_of(course, style, table));
    }
    blocks.push(style::wrap(&style.text(histories::METHOD), width, |line| style.dim(line)));
    blocks.push(super::written(options, style, width));
    joined(&blocks)
}

/// The runs of a course, with the changes that came with each.
fn table_of(course: &Course, style: Style, width: usize) -> Vec<String> {
    let remark = |index: usize| {
        let here = course.changes.iter().filter(|change| change.first_run as usize == index);
        let changes = here.map(|change| {
            format!("{} {}", histories::figure(change.figure), number::change(change.ratio, None))
        });
        changes.collect::<Vec<_>>().join(", ")
    };
    let all: Vec<(&Point, String)> =
        course.runs.iter().enumerate().map(|(index, run)| (run, remark(index))).collect();
    runs::lines(&all, style, width)
}

/// Repeats of one measurement as text for a terminal.
pub(crate) fn repeats(points: &[Point], options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let width = options.width.max(WIDTH_MIN) - MARGIN.len();
    let all: Vec<(&Point, String)> = points.iter().map(|run| (run, String::new())).collect();
    let lines = runs::lines(&all, style, width);
    joined(&[lines, super::written(options, style, width)])
}
