//! A prediction on a terminal: the answer in words, the curve, what a tenth less of each demand brings, what to distrust.

use analysis::prediction::{CurvePoint, Prediction, Sensitivity};

use super::style::{self, Style};
use super::table::{Align, Column, fit};
use super::{MARGIN, TEXT_WIDTH_MAX, TerminalOptions, WIDTH_MIN, joined};
use crate::number::{self, TimeUnit};
use crate::sentences::predictions;

/// The prediction as text for a terminal, ending in a newline.
pub(crate) fn text(prediction: &Prediction, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let table = options.width.max(WIDTH_MIN) - MARGIN.len();
    let width = table.min(TEXT_WIDTH_MAX - MARGIN.len());
    joined(&[
        said(prediction, style, width),
        goal(prediction, style, width),
        curve(&prediction.curve, style, table),
        sensitivity(&prediction.sensitivity, style, table),
        distrust(prediction, style, width),
        super::written(options, style, width),
    ])
}

fn said(of: &Prediction, style: Style, width: usize) -> Vec<String> {
    let wrap = |text: &str, paint: &dyn Fn(&str) -> String| style::wrap(&style.text(text), width, paint);
    let mut lines = wrap(&predictions::headline(of), &|line| style.strong(line));
    lines.extend(wrap(&predictions::bottleneck(&of.after), &str::to_owned));
    lines.extend(predictions::asked(of).iter().flat_map(|text| wrap(text, &str::to_owned)));
    lines
}

fn goal(of: &Prediction, style: Style, width: usize) -> Vec<String> {
    let sentences = of.goal.iter().flat_map(predictions::goal).enumerate();
    let lines = sentences.flat_map(|(index, text)| {
        let indent = if index == 0 { "" } else { MARGIN };
        let room = width.saturating_sub(indent.len());
        let lines = style::wrap(&style.text(&text), room, |line| format!("{indent}{line}"));
        lines.into_iter().map(move |line| if index == 0 { style.strong(&line) } else { line })
    });
    lines.collect()
}

fn curve(points: &[CurvePoint], style: Style, width: usize) -> Vec<String> {
    let unit = TimeUnit::for_largest(points.iter().map(|point| point.response_time_us.value));
    let column = |heading: &str, align, cell: &dyn Fn(&CurvePoint) -> String| {
        Column::new(style, heading, align, points, cell)
    };
    let time = |value: f64| number::plain(unit.of(value));
    let (response, p99) = (format!("response {}", unit.name()), format!("p99 {}", unit.name()));
    let columns = [
        column("users", Align::Right, &|of| number::count(of.users.into())),
        column("measured", Align::Right, &|of| of.measured_per_s.map_or_else(String::new, number::plain)),
        column("model", Align::Right, &|of| number::plain(of.before_per_s)),
        column("then req/s", Align::Right, &|of| number::plain(of.throughput_per_s.value)),
        column("95 % interval", Align::Left, &|of| {
            number::interval(of.throughput_per_s.value, of.throughput_per_s.ci)
        }),
        column(&response, Align::Right, &|of| time(of.response_time_us.value)),
        column(&p99, Align::Right, &|of| of.p99_us.map_or_else(String::new, |p99| time(p99.value))),
        column("", Align::Left, &|of| {
            if of.beyond_measured { "beyond what was measured".into() } else { String::new() }
        }),
    ];
    let columns: Vec<Column> = columns.into_iter().filter(|column| !column.is_empty()).collect();
    let table = fit(&columns, width);
    let rows = table.rows.into_iter().zip(points).flat_map(|(lines, of)| {
        lines.into_iter().map(move |line| if of.asked { style.accent(&line) } else { line })
    });
    std::iter::once(style.dim(&table.headings)).chain(rows).collect()
}

fn sensitivity(all: &[Sensitivity], style: Style, width: usize) -> Vec<String> {
    let column = |heading: &str, align, cell: &dyn Fn(&Sensitivity) -> String| {
        Column::new(style, heading, align, all, cell)
    };
    let columns = [
        column("10 % less of", Align::Left, &|of| of.demand.clone()),
        column("throughput", Align::Right, &|of| number::change(of.throughput_ratio, None)),
        column("response at N*", Align::Right, &|of| number::change(of.response_time_ratio, None)),
        column("N* then", Align::Right, &|of| {
            of.users_at_saturation.map_or_else(String::new, |users| number::count(users.into()))
        }),
    ];
    if all.is_empty() {
        return Vec::new();
    }
    let table = fit(&columns, width);
    std::iter::once(style.dim(&table.headings)).chain(table.rows.into_iter().flatten()).collect()
}

fn distrust(of: &Prediction, style: Style, width: usize) -> Vec<String> {
    let cautions = of.cautions.iter().map(|caution| format!("Caution: {}", predictions::caution(caution)));
    let cautions = cautions.flat_map(|text| style::wrap(&style.text(&text), width, |line| style.warn(line)));
    let model = style::wrap(&style.text(&predictions::model(of)), width, |line| style.dim(line));
    cautions.chain(model).collect()
}
