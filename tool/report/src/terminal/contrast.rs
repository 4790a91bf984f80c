//! A contrast on a terminal: what changed in words, then the table of figures, then what to distrust.

use analysis::contrast::{Case, Contrast, Difference, GateVerdict, Point, Ratio, Side};

use super::style::{self, Style};
use super::table::{Align, Column, fit};
use super::{MARGIN, TEXT_WIDTH_MAX, TerminalOptions, WIDTH_MIN, joined, runs};
use crate::number;
use crate::sentences::contrasts;

/// The contrast as text for a terminal, ending in a newline.
pub(crate) fn text(contrast: &Contrast, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let table = options.width.max(WIDTH_MIN) - MARGIN.len();
    let width = table.min(TEXT_WIDTH_MAX - MARGIN.len());
    let mut blocks = vec![sides(contrast, style, width)];
    blocks.push(distrust(contrast, style, width));
    for case in &contrast.cases {
        blocks.push(said(case, style, width));
        blocks.push(figures(case, style, table));
        blocks.push(remarks(case, style, width));
    }
    if [&contrast.before, &contrast.after].iter().any(|side| side.runs.len() > 1) {
        blocks.push(runs_of("Runs before", &contrast.before, style, table));
        blocks.push(runs_of("Runs after", &contrast.after, style, table));
    }
    blocks.push(gates(contrast, style, width));
    blocks.push(super::written(options, style, width));
    joined(&blocks)
}

fn sides(contrast: &Contrast, style: Style, width: usize) -> Vec<String> {
    let side = |word: &str, of: &Side| {
        let variant = if of.variant.is_empty() { String::new() } else { format!(", {}", of.variant) };
        let text = format!("{word}: {}{variant} ({})", of.files.join(" "), of.target);
        style::wrap(&style.text(&text), width, |line| style.dim(line))
    };
    [side("Before", &contrast.before), side("After", &contrast.after)].concat()
}

fn distrust(contrast: &Contrast, style: Style, width: usize) -> Vec<String> {
    let (load, besides): (Vec<&Difference>, Vec<&Difference>) =
        contrast.differences.iter().partition(|difference| difference.aspect.is_of_load());
    let load = load.into_iter().map(|of| format!("Another load: {}", contrasts::difference(of)));
    let besides = besides.into_iter().map(|of| format!("Differs besides: {}", contrasts::difference(of)));
    let cautions = contrasts::cautions(&contrast.cautions);
    let cautions = cautions.into_iter().map(|of| format!("Caution: {of}"));
    let all = load.chain(besides).chain(cautions);
    all.flat_map(|text| style::wrap(&style.text(&text), width, |line| style.warn(line))).collect()
}

fn said(case: &Case, style: Style, width: usize) -> Vec<String> {
    let name = contrasts::case_name(case);
    let name = style::wrap(&style.text(&name), width, |line| style.strong(line));
    let name = name.into_iter().filter(|line| !line.is_empty());
    let headline = style::wrap(&style.text(&contrasts::headline(case)), width, |line| style.strong(line));
    let others = style::wrap(&style.text(&contrasts::others(case)), width, str::to_owned);
    name.chain(headline).chain(others).collect()
}

fn remarks(case: &Case, style: Style, width: usize) -> Vec<String> {
    let all = contrasts::basis(case).into_iter().chain([contrasts::at(case)]);
    all.flat_map(|text| style::wrap(&style.text(&text), width, |line| style.dim(line))).collect()
}

fn figures(case: &Case, style: Style, width: usize) -> Vec<String> {
    let column = |heading: &str, align, cell: &dyn Fn(&Ratio) -> String| {
        Column::new(style, heading, align, &case.figures, cell)
    };
    let columns = [
        column("", Align::Left, &|of| contrasts::figure(&of.figure)),
        column("before", Align::Right, &|of| contrasts::value(&of.figure, of.before)),
        column("after", Align::Right, &|of| contrasts::value(&of.figure, of.after)),
        column("change", Align::Right, &|of| contrasts::bounded(of, &number::change(of.ratio, of.ci))),
        column("95 % interval", Align::Left, &|of| {
            of.ci.map_or_else(String::new, |ci| number::change_interval(of.ratio, ci))
        }),
        column("", Align::Left, &|of| if of.changed { "changed".to_owned() } else { String::new() }),
    ];
    let table = fit(&columns, width);
    let rows = table.rows.into_iter().zip(&case.figures).flat_map(|(lines, of)| {
        lines.into_iter().map(move |line| if of.changed { style.accent(&line) } else { line })
    });
    std::iter::once(style.dim(&table.headings)).chain(rows).collect()
}

fn runs_of(heading: &str, side: &Side, style: Style, width: usize) -> Vec<String> {
    let all: Vec<(&Point, bool, String)> = side.runs.iter().map(|run| (run, false, String::new())).collect();
    std::iter::once(style.strong(heading)).chain(runs::lines(&all, style, width)).collect()
}

fn gates(contrast: &Contrast, style: Style, width: usize) -> Vec<String> {
    let lines = |gate: &analysis::contrast::GateFinding| {
        let text = style.text(&format!("Gate {}.", contrasts::gate(gate)));
        let met = gate.verdict == GateVerdict::Met;
        style::wrap(&text, width, |line| if met { line.to_owned() } else { style.warn(line) })
    };
    contrast.gates.iter().flat_map(lines).collect()
}
