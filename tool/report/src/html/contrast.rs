//! The page of two sides beside each other.

use analysis::comparison::AtUsers;
use analysis::contrast::{Case, Contrast, Figure, GateFinding, GateVerdict, Point, Ratio, Side};
use serde::Serialize;

use super::chart::{Chart, Plot, SMALL, Series};
use super::facts::Fact;
use super::table::{Cell, Column, Row, Table};
use super::{RenderError, comparison, runs};
use crate::axis::Axis;
use crate::number;
use crate::sentences::contrasts;
use crate::words;

/// The contrast as a page that opens offline.
pub(crate) fn page(contrast: &Contrast) -> Result<String, RenderError> {
    super::render("contrast.html", Page::new(contrast))
}

#[derive(Debug, Serialize)]
struct Page {
    title: String,
    headline: String,
    other_loads: Vec<String>,
    differences: Vec<String>,
    cautions: Vec<String>,
    gates: Vec<Held>,
    cases: Vec<Section>,
    runs: Vec<Table>,
    sides: Vec<Fact>,
}

/// One case.
#[derive(Debug, Serialize)]
struct Section {
    id: String,
    name: String,
    said: Vec<String>,
    charts: Vec<Drawn>,
    table: Table,
    remarks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Drawn {
    heading: &'static str,
    chart: Chart,
}

/// A gate, and what it came to.
#[derive(Debug, Serialize)]
struct Held {
    standing: &'static str,
    /// Class of the style sheet.
    class: &'static str,
    text: String,
}

impl Page {
    fn new(contrast: &Contrast) -> Self {
        let (loads, besides): (Vec<_>, Vec<_>) =
            contrast.differences.iter().partition(|difference| difference.aspect.is_of_load());
        let headline = match contrast.cases.as_slice() {
            [case] => contrasts::headline(case),
            cases => format!("{} loads on both sides", number::count(cases.len() as u64)),
        };
        Self {
            title: "Before and after – nstar".into(),
            headline,
            other_loads: loads.into_iter().map(contrasts::difference).collect(),
            differences: besides.into_iter().map(contrasts::difference).collect(),
            cautions: contrasts::cautions(&contrast.cautions),
            gates: contrast.gates.iter().map(held).collect(),
            cases: contrast
                .cases
                .iter()
                .enumerate()
                .map(|(index, case)| section(case, index, contrast.cases.len() > 1))
                .collect(),
            runs: [("before", &contrast.before), ("after", &contrast.after)]
                .into_iter()
                .filter(|(_, side)| !side.runs.is_empty())
                .map(|(word, side)| runs_of(word, side))
                .collect(),
            sides: sides("Before", &contrast.before)
                .into_iter()
                .chain(sides("After", &contrast.after))
                .collect(),
        }
    }
}

fn held(gate: &GateFinding) -> Held {
    Held {
        standing: contrasts::gate_verdict(gate.verdict),
        class: match gate.verdict {
            GateVerdict::Met => "met",
            GateVerdict::Breached => "unmet",
            GateVerdict::NotDecided => "open",
        },
        text: contrasts::gate(gate),
    }
}

fn section(case: &Case, index: usize, several: bool) -> Section {
    let name = contrasts::case_name(case);
    Section {
        id: format!("case-{index}"),
        name: if name.is_empty() { "Figures".into() } else { name },
        // Of one case, the page's headline says the rest.
        said: [several.then(|| contrasts::headline(case)), Some(contrasts::others(case))]
            .into_iter()
            .flatten()
            .collect(),
        charts: charts(case, index),
        table: figures(case, index),
        remarks: contrasts::basis(case).into_iter().chain([contrasts::at(case)]).collect(),
    }
}

/// Throughput and response time by users, both sides in one chart; none of a single number of users.
fn charts(case: &Case, index: usize) -> Vec<Drawn> {
    if case.steps_before.len() < 2 || case.steps_after.len() < 2 {
        return Vec::new();
    }
    let throughput = Drawn {
        heading: "Throughput against users",
        chart: chart(case, format!("throughput-{index}"), "requests a second", number::axis_label, |at| {
            at.throughput_per_s
        }),
    };
    let response = Drawn {
        heading: "Mean response time against users",
        chart: chart(case, format!("response-{index}"), "response time", number::time, |at| {
            at.response_time_us
        }),
    };
    vec![throughput, response]
}

fn chart(
    case: &Case,
    id: String,
    y_name: &str,
    y_tick: fn(f64) -> String,
    read: fn(&AtUsers) -> f64,
) -> Chart {
    let all = || case.steps_before.iter().chain(&case.steps_after);
    let values = |steps: &[AtUsers]| steps.iter().map(|at| (f64::from(at.users), read(at))).collect();
    let series = |class, name: &str, steps| Series {
        class,
        name: name.into(),
        values: values(steps),
        ..Series::default()
    };
    let plot = Plot {
        id,
        title: format!("{} by users, before and after", words::capitalised(y_name)),
        description: format!("{} The table below has every figure.", contrasts::headline(case)),
        y_name: y_name.into(),
        x_name: "users",
        x: Axis::users(all().map(|at| at.users).collect::<Vec<_>>()),
        y: if y_name == "response time" {
            Axis::fitting(all().map(read))
        } else {
            Axis::from_zero(all().map(read))
        },
        y_tick,
        series: vec![
            series("second", "before", &case.steps_before),
            series("main", "after", &case.steps_after),
        ],
        saturation: None,
        notes: Vec::new(),
    };
    plot.draw(SMALL)
}

fn figures(case: &Case, index: usize) -> Table {
    let columns = ["Before", "After", "Change", "95 % interval"].map(Column::numeric);
    Table {
        id: format!("figures-{index}"),
        caption: "Every figure before and after, and its change; figures that changed are marked".into(),
        columns: std::iter::once(Column::words("Figure")).chain(columns).collect(),
        rows: case.figures.iter().map(row).collect(),
    }
}

fn row(of: &Ratio) -> Row {
    let figure = |name, value| Cell::figure(name, value, contrasts::value(&of.figure, value));
    let interval = of.ci.map_or_else(Cell::missing, |ci| {
        let [low, high] = ci;
        Cell::figure("ratio_ci", format!("{low} {high}"), number::change_interval(of.ratio, ci))
    });
    let change = contrasts::bounded(of, &number::change(of.ratio, of.ci));
    let name = contrasts::figure(&of.figure);
    // A percentile's name begins with a small letter wherever it stands.
    let is_percentile = matches!(of.figure, Figure::ResponseTimeQuantile { .. });
    let name = if is_percentile { name } else { words::capitalised(&name) };
    let cells = vec![
        Cell::words(name),
        figure("before", of.before),
        figure("after", of.after),
        Cell::figure("ratio", of.ratio, change),
        interval,
    ];
    Row { marked: of.changed, cells }
}

fn runs_of(word: &str, side: &Side) -> Table {
    let all: Vec<(&Point, bool, String)> = side.runs.iter().map(|run| (run, false, String::new())).collect();
    runs::table(format!("runs-{word}"), format!("The runs {word}"), &all)
}

fn sides(word: &str, of: &Side) -> Vec<Fact> {
    let variant = if of.variant.is_empty() { String::new() } else { format!(", {}", of.variant) };
    vec![
        Fact::new(word, format!("{}{variant}", of.files.join(" ")), of.target.clone()),
        Fact::new("Host", comparison::hardware(&of.host), format!("nstar {}", of.version)),
    ]
}
