//! A contrast, a history, or a run with its gates, in Markdown, as the summaries of CI jobs take it.

use analysis::contrast::{Case, Contrast, GateVerdict, Point, Ratio};
use analysis::history::{Course, History};
use analysis::run::Run;

use crate::gates::HeldGate;
use crate::metrics::{self, Measurement};
use crate::sentences::{self, contrasts, histories};
use crate::words::is_hidden;
use crate::{number, summary};

/// The contrast in Markdown (GitHub's), ending in a newline.
pub(crate) fn contrast(of: &Contrast) -> String {
    let mut text = format!(
        "### nstar: {} → {}\n\n",
        escaped(&of.before.files.join(" ")),
        escaped(&of.after.files.join(" "))
    );
    text += &gates(of.gates.iter().map(|gate| (gate.verdict, contrasts::gate(gate))));
    of.cases.iter().for_each(|case| text += &of_case(case));
    let differences = of.differences.iter().map(contrasts::difference);
    let distrust: Vec<String> = differences.chain(contrasts::cautions(&of.cautions)).collect();
    text + &quoted(&distrust)
}

/// A run with its gates, ending in a newline; `file` is empty unless it is one of several.
pub(crate) fn run(of: &Run, file: &str, held: &[HeldGate]) -> String {
    let file = if file.is_empty() { String::new() } else { format!("{}: ", escaped(file)) };
    let mut text = format!("### nstar: {file}{}\n\n", escaped(&of.target));
    text += &gates(held.iter().map(|gate| (gate.verdict, contrasts::gate_of_run(gate))));
    text += &format!("{}\n\n", escaped(&summary::headline(of)));
    text += "| figure | value |\n|---|---:|\n";
    let measured = Measurement::from(of);
    for (_, metric) in metrics::gates() {
        let value = metric.read(&measured).map(|found| metric.unit().cell_with_interval(&found));
        let value = value.unwrap_or_else(|| number::MISSING.to_owned());
        text += &format!("| {} | {} |\n", escaped(metric.heading()), escaped(&value));
    }
    text.push('\n');
    let doubts = sentences::doubts(&of.verdict).into_iter().map(|doubt| format!("Inconclusive: {doubt}"));
    let warnings = of.warnings.iter().map(sentences::warning_text);
    text + &quoted(&doubts.chain(warnings).collect::<Vec<_>>())
}

/// The runs of a course that a summary shows: the latest.
const RUNS_SHOWN: usize = 20;

/// A history in Markdown, ending in a newline.
pub(crate) fn history(of: &History) -> String {
    "### nstar history\n\n".to_owned() + &of.courses.iter().map(course).collect::<String>()
}

fn course(of: &Course) -> String {
    let mut text = format!("#### {}\n\n", escaped(&histories::title(of)));
    histories::found(of).iter().for_each(|sentence| text += &format!("{}\n\n", escaped(sentence)));
    text += "| run | began | N\\* | requests/s | CPU per request | remark |\n|---|---|---:|---:|---:|---|\n";
    let rows = histories::rows(of);
    rows.iter().skip(rows.len().saturating_sub(RUNS_SHOWN)).for_each(|row| text += &run_of_course(row));
    if rows.len() > RUNS_SHOWN {
        let [shown, all] = [RUNS_SHOWN, rows.len()].map(|runs| number::count(runs as u64));
        text += &format!("\nThe latest {shown} of {all} runs.\n");
    }
    text + "\n"
}

fn run_of_course((run, is_changed, remark): &(&Point, bool, String)) -> String {
    let remark = escaped(remark);
    let cells = [
        escaped(&run.file),
        escaped(&run.started),
        run.users.map_or_else(String::new, |users| number::count(users.into())),
        contrasts::throughput_of(run),
        run.cpu_us_per_request.map_or_else(String::new, number::time),
        if *is_changed { format!("**{remark}**") } else { remark },
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// A list of gates, and an empty line after it; nothing without any.
fn gates(held: impl Iterator<Item = (GateVerdict, String)>) -> String {
    let line = |(verdict, said): (GateVerdict, String)| {
        format!("- **{}**: {}\n", contrasts::gate_verdict(verdict), escaped(&said))
    };
    let list: String = held.map(line).collect();
    if list.is_empty() { list } else { list + "\n" }
}

fn quoted(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| format!("> {}\n>\n", escaped(sentence))).collect()
}

fn of_case(case: &Case) -> String {
    let name = contrasts::case_name(case);
    let mut text = if name.is_empty() { String::new() } else { format!("#### {}\n\n", escaped(&name)) };
    text += &format!("{} {}\n\n", escaped(&contrasts::headline(case)), escaped(&contrasts::others(case)));
    text += "| figure | before | after | change | 95 % interval |\n|---|---:|---:|---:|---|\n";
    case.figures.iter().for_each(|ratio| text += &row(ratio));
    for remark in contrasts::basis(case).into_iter().chain([contrasts::at(case)]) {
        text += &format!("\n{}\n", escaped(&remark));
    }
    text + "\n"
}

fn row(of: &Ratio) -> String {
    let change = contrasts::bounded(of, &number::change(of.ratio, of.ci));
    let change = if of.changed { format!("**{}**", escaped(&change)) } else { escaped(&change) };
    let interval = of.ci.map_or_else(String::new, |ci| number::change_interval(of.ratio, ci));
    format!(
        "| {} | {} | {} | {change} | {} |\n",
        escaped(&contrasts::figure(&of.figure)),
        escaped(&contrasts::value(&of.figure, of.before)),
        escaped(&contrasts::value(&of.figure, of.after)),
        escaped(&interval)
    )
}

/// Text without anything that Markdown or HTML gives a meaning to: names come from files and servers.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '@' => {
                safe.push('\\');
                safe.push(c);
            }
            c if is_hidden(c) => safe.push(char::REPLACEMENT_CHARACTER),
            c => safe.push(c),
        }
    }
    safe
}
