//! What came of sending each request of a scenario once, on a terminal.

use analysis::check::{Answered, Checked, Outcome};

use super::style::{Style, wrap};
use super::table::{Align, Column, fit};
use super::{MARGIN, TerminalOptions, WIDTH_MIN, joined};
use crate::number;
use crate::sentences::checks;

/// The requests as a table, and how many would count as errors.
pub(crate) fn text(checked: &[Checked], options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let width = options.width.max(WIDTH_MIN) - MARGIN.len();
    let answered = |checked: &Checked, cell: fn(&Answered) -> String| match &checked.outcome {
        Outcome::Answered(answered) => cell(answered),
        Outcome::NothingToTake { .. } | Outcome::Failed { .. } => String::new(),
    };
    let column =
        |heading, align, cell: &dyn Fn(&Checked) -> String| Column::new(style, heading, align, checked, cell);
    let columns = [
        column("request", Align::Left, &|checked| checked.request.clone()),
        column("status", Align::Right, &|checked| answered(checked, |answered| answered.status.to_string())),
        column("body", Align::Right, &|checked| answered(checked, checks::body)),
        column("time", Align::Right, &|checked| {
            answered(checked, |answered| number::time(answered.elapsed_us))
        }),
        column("", Align::Left, &|checked| checks::remark(&checked.outcome)),
    ];
    let table = fit(&columns, width);
    let headings = style.dim(&table.headings);
    let rows = table.rows.into_iter().zip(checked).flat_map(|(lines, checked)| {
        lines.into_iter().map(|line| if checked.is_success() { line } else { style.warn(&line) })
    });
    let table = std::iter::once(headings).chain(rows).collect();
    let closing = wrap(&style.text(&checks::in_all(checked)), width, |line| style.strong(line));
    joined(&[table, closing])
}
