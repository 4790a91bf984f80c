//! Columns of text, and how they fit a terminal's width.

use super::style::Style;
use crate::metrics::{Measurement, Metric, MetricUnit};
use crate::number::{self, TimeUnit};

/// A column: its heading and cells, already fit for the terminal.
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) cells: Vec<String>,
    pub(super) align: Align,
    /// Whether the cells say how sure those before them are.
    pub(super) is_interval: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Align {
    Left,
    Right,
}

/// Between two columns.
pub(super) const GAP: &str = "  ";
/// Less room than this for the words of the last column, and they go on lines of their own.
const WORDS_MIN: usize = 16;
/// Before what is continued below a row.
const INDENT: &str = "    ";

impl Column {
    /// A column with a cell per row.
    pub(super) fn new<T>(
        style: Style,
        heading: &str,
        align: Align,
        rows: impl IntoIterator<Item = T>,
        cell: impl Fn(T) -> String,
    ) -> Self {
        let cells = rows.into_iter().map(|row| style.text(&cell(row))).collect();
        Self { heading: style.text(heading), cells, align, is_interval: false }
    }

    /// The column of a metric; empty cells where a row has no such figure.
    pub(super) fn metric(
        style: Style,
        metric: &Metric,
        heading: &str,
        rows: &[Measurement<'_>],
        times: TimeUnit,
    ) -> Self {
        let of_best = metric.unit() == MetricUnit::OfBest;
        let cell = |of: &Measurement<'_>| match metric.read(of) {
            // The first is marked as such already.
            Some(figure) if of_best && figure.number() == 1.0 => String::new(),
            Some(figure) if of_best => metric.unit().cell_with_interval(&figure),
            Some(figure) => metric.unit().cell_in(&figure, times),
            None => String::new(),
        };
        Self::new(style, heading, if of_best { Align::Left } else { Align::Right }, rows, cell)
    }

    /// Half the width of a metric's interval: `±1 %`.
    pub(super) fn spread(style: Style, metric: &Metric, rows: &[Measurement<'_>]) -> Self {
        let cell = |of: &Measurement<'_>| {
            let figure = metric.read(of);
            figure.map_or_else(String::new, |figure| number::spread(figure.number(), figure.interval))
        };
        Self { is_interval: true, ..Self::new(style, "", Align::Left, rows, cell) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cells.iter().all(String::is_empty)
    }

    pub(super) fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.heading.chars().count()]).max().unwrap_or(0)
    }

    fn cell(&self, row: usize) -> &str {
        self.cells.get(row).map_or("", String::as_str)
    }
}

/// How wide columns are beside each other.
pub(super) fn width_of(columns: &[Column]) -> usize {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    columns.iter().map(Column::width).sum::<usize>() + gaps
}

/// One line: a text for each column.
pub(super) fn line<'a>(columns: &'a [Column], text: impl Fn(&'a Column) -> &'a str) -> String {
    let cells = columns.iter().map(|column| {
        let (text, width) = (text(column), column.width());
        match column.align {
            Align::Left => format!("{text:<width$}"),
            Align::Right => format!("{text:>width$}"),
        }
    });
    cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

/// The line of headings.
pub(super) fn headings(columns: &[Column]) -> String {
    line(columns, |column| &column.heading)
}

/// The line of a row.
pub(super) fn row(columns: &[Column], index: usize) -> String {
    line(columns, |column| column.cell(index))
}

/// A table in which nothing is cut: the headings, and the lines of each row.
pub(super) struct Fitted {
    pub(super) headings: String,
    pub(super) rows: Vec<Vec<String>>,
}

/// Fits a table into `width`. What is too long for it wraps: the words of the last column below each other, and columns
/// for which there is no room on lines below their row, each behind its heading.
pub(super) fn fit(columns: &[Column], width: usize) -> Fitted {
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let fits = (0..=columns.len()).rev().find(|&count| width_of(&columns[..count]) <= width).unwrap_or(0);
    if fits == columns.len() {
        let rows = (0..rows).map(|index| vec![row(columns, index)]).collect();
        return Fitted { headings: headings(columns), rows };
    }
    let (shown, below) = columns.split_at(fits);
    if let ([last], room) = (below, width.saturating_sub(width_of(shown) + GAP.len()))
        && room >= WORDS_MIN
    {
        let rows = (0..rows).map(|index| with_words(shown, last, index, room)).collect();
        return Fitted { headings: headings(shown) + GAP + &last.heading, rows };
    }
    let rows = (0..rows).map(|index| with_lines_below(shown, below, index, width)).collect();
    Fitted { headings: headings(shown), rows }
}

/// A row whose last cell wraps.
fn with_words(shown: &[Column], last: &Column, index: usize, room: usize) -> Vec<String> {
    let indent = width_of(shown);
    let mut words = wrapped(last.cell(index), room).into_iter();
    let first = format!("{:<indent$}{GAP}{}", row(shown, index), words.next().unwrap_or_default());
    let rest = words.map(|words| format!("{:indent$}{GAP}{words}", ""));
    std::iter::once(first.trim_end().to_owned()).chain(rest).collect()
}

/// A row with the cells that have no room on it below.
fn with_lines_below(shown: &[Column], below: &[Column], index: usize, width: usize) -> Vec<String> {
    let cells = below.iter().filter(|column| !column.cell(index).is_empty());
    let cells = cells.map(|column| format!("{} {}", column.heading, column.cell(index)).trim().to_owned());
    let text = cells.collect::<Vec<_>>().join(GAP);
    let lines = wrapped(&text, width.saturating_sub(INDENT.len()));
    let lines = lines.into_iter().filter(|line| !line.is_empty()).map(|line| format!("{INDENT}{line}"));
    std::iter::once(row(shown, index)).filter(|line| !line.is_empty()).chain(lines).collect()
}

/// Breaks text into lines of at most `width` characters, at spaces where there are any; one empty line of no text.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
        }
        while word.len() > width.max(1) {
            let rest = word.split_off(width.max(1));
            push(&mut lines, &word);
            lines.push(String::new());
            word = rest;
        }
        push(&mut lines, &word);
    }
    lines
}

/// Puts a word on the last line.
fn push(lines: &mut [String], word: &[char]) {
    if let Some(line) = lines.last_mut() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word);
    }
}

/// Cuts a line that is longer than `width`, visibly.
pub(super) fn cut(line: String, width: usize, style: Style) -> String {
    if line.chars().count() <= width {
        return line;
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}{}", style.pick('…', '~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(heading: &str, align: Align, cells: &[&str]) -> Column {
        let cells = cells.iter().map(|cell| (*cell).to_owned()).collect();
        Column { heading: heading.to_owned(), cells, align, is_interval: false }
    }

    fn columns() -> Vec<Column> {
        vec![
            column("model", Align::Left, &["epoll", "threads"]),
            column("req/s", Align::Right, &["6 950", "512"]),
            column("stopped by", Align::Left, &["CPU, nstar-sink (pid 8)", ""]),
        ]
    }

    fn lines(width: usize) -> Vec<String> {
        let fitted = fit(&columns(), width);
        std::iter::once(fitted.headings).chain(fitted.rows.into_iter().flatten()).collect()
    }

    #[test]
    fn what_fits_is_one_line_per_row() {
        let expected =
            ["model    req/s  stopped by", "epoll    6 950  CPU, nstar-sink (pid 8)", "threads    512"];
        assert_eq!(lines(39), expected);
    }

    #[test]
    fn words_wrap_in_their_column() {
        let expected = [
            "model    req/s  stopped by",
            "epoll    6 950  CPU, nstar-sink",
            "                (pid 8)",
            "threads    512",
        ];
        assert_eq!(lines(34), expected);
    }

    #[test]
    fn columns_without_room_go_below_their_row() {
        let expected = [
            "model    req/s",
            "epoll    6 950",
            "    stopped by CPU,",
            "    nstar-sink (pid",
            "    8)",
            "threads    512",
        ];
        assert_eq!(lines(20), expected);
        assert!(lines(5).iter().all(|line| line.chars().count() <= 5), "{:?}", lines(5));
    }
}
