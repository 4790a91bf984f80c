//! A contrast in Markdown, as the summaries of CI jobs take it.

use analysis::contrast::{Case, Contrast, Ratio};

use crate::number;
use crate::sentences::contrasts;
use crate::words::is_hidden;

/// The contrast in Markdown (GitHub's), ending in a newline.
pub(crate) fn contrast(of: &Contrast) -> String {
    let mut text = format!(
        "### nstar: {} → {}\n\n",
        escaped(&of.before.files.join(" ")),
        escaped(&of.after.files.join(" "))
    );
    for gate in &of.gates {
        let verdict = contrasts::gate_verdict(gate.verdict);
        text += &format!("- **{verdict}**: {}\n", escaped(&contrasts::gate(gate)));
    }
    if !of.gates.is_empty() {
        text.push('\n');
    }
    of.cases.iter().for_each(|case| text += &of_case(case));
    let differences = of.differences.iter().map(contrasts::difference);
    let distrust: Vec<String> = differences.chain(contrasts::cautions(&of.cautions)).collect();
    distrust.iter().for_each(|sentence| text += &format!("> {}\n>\n", escaped(sentence)));
    text
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
