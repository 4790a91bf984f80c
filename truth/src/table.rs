//! The table of what is true and what was said, in Markdown.

use std::fmt::Write;

use crate::{
    case::Case,
    grade::{Grade, Said},
};

/// A case, and every verdict on it.
pub(crate) struct Row<'a> {
    pub(crate) case: &'a Case,
    pub(crate) said: Vec<Said>,
}

const HEAD: [&str; 8] = ["case", "stack", "true", "X, N*", "said", "X, N*", "sure", "grade"];

/// The table, with a sum of the grades below.
pub(crate) fn table(rows: &[Row]) -> String {
    let lines: Vec<[String; 8]> = rows.iter().filter(|row| !row.said.is_empty()).map(cells).collect();
    let head = HEAD.map(str::to_owned);
    let width = |column: usize| {
        [&head].into_iter().chain(&lines).map(|line| line[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..HEAD.len()).map(width).collect();
    let mut text = line(&head, &widths);
    text += &widths.iter().map(|width| format!("|{}", "-".repeat(width + 2))).collect::<String>();
    text += "|\n";
    lines.iter().for_each(|cells| text += &line(cells, &widths));
    text + &sum(rows)
}

fn line(cells: &[String; 8], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} |"));
    format!("|{}\n", padded.collect::<String>())
}

fn cells(row: &Row) -> [String; 8] {
    let Row { case, said } = row;
    let truth = case.saturation().ok().flatten();
    // The worst of several verdicts is shown.
    let Some(worst) = said.iter().max_by_key(|said| said.grade(case)) else { return Default::default() };
    let named = |kind: &str, holder: &str| match holder {
        "" => kind.to_owned(),
        holder => format!("{kind}, {holder}"),
    };
    [
        case.name.clone(),
        stacks(row),
        named(&case.kind.names().join(" or "), &holders(case)),
        truth.map_or("none".into(), |(throughput, users)| format!("{throughput:.4}/s, {users}")),
        named(&worst.kind, &worst.holder),
        said_numbers(worst, truth),
        worst.confidence.clone(),
        grades(row),
    ]
    .map(|cell| shorten(&cell))
}

/// Who holds the bottleneck, and on which host, where several are observed.
fn holders(case: &Case) -> String {
    let holders = case.holder.join(" or ");
    match &case.on {
        Some(host) if !case.holder.contains(host) => format!("{holders} on {host}"),
        _ => holders,
    }
}

/// The stacks of a case, and where they stood if that was not the host of the generator.
fn stacks(row: &Row) -> String {
    let behind = if row.said.iter().any(|said| said.behind) { ", behind ssh" } else { "" };
    row.case.stacks() + behind
}

/// How many of the cases asked for were run with their servers elsewhere, and why the others were not.
pub(crate) fn coverage(elsewhere: &str, rows: &[Row], left_out: &[(&Case, &str)]) -> String {
    let run = rows.iter().filter(|row| !row.said.is_empty()).count();
    let named = |(case, why): &(&Case, &str)| format!("; left out: {} ({why})", case.name);
    let named: String = left_out.iter().map(named).collect();
    format!("{elsewhere}: {run} of {} cases{named}.\n", rows.len() + left_out.len())
}

/// Throughput and N* as said, with a mark where they are not right.
fn said_numbers(said: &Said, truth: Option<(f64, u32)>) -> String {
    let mark = |right: bool| if right { "" } else { " (!)" };
    let throughput = truth.is_none_or(|(truth, _)| said.has_throughput(truth));
    let users = truth.is_none_or(|(_, truth)| said.has_users(truth));
    let number = match (said.users, said.users_ci) {
        (None, _) => "?".to_owned(),
        (Some(users), Some([low, high])) if low != high => format!("{users} ({low}-{high})"),
        (Some(users), _) => users.to_string(),
    };
    format!("{:.4}/s{}, {number}{}", said.throughput, mark(throughput), mark(users))
}

/// Four significant figures where a number was written with four decimals.
fn shorten(cell: &str) -> String {
    let figures = |word: &str| -> Option<String> {
        let (number, rest) = word.split_once("/s")?;
        let number: f64 = number.parse().ok()?;
        let decimals = if number >= 1_000.0 {
            0
        } else if number >= 100.0 {
            1
        } else {
            2
        };
        Some(format!("{number:.decimals$}/s{rest}"))
    };
    cell.split(' ').map(|word| figures(word).unwrap_or_else(|| word.to_owned())).collect::<Vec<_>>().join(" ")
}

/// The grades of all runs of a case: one name where they agree.
fn grades(row: &Row) -> String {
    let mut counts: Vec<(Grade, usize)> = Vec::new();
    for grade in row.said.iter().map(|said| said.grade(row.case)) {
        match counts.iter_mut().find(|(known, _)| *known == grade) {
            Some((_, count)) => *count += 1,
            None => counts.push((grade, 1)),
        }
    }
    counts.sort_unstable();
    let runs = row.said.len();
    let named = |(grade, count): &(Grade, usize)| format!("{} {count}/{runs}", grade.name());
    match counts[..] {
        [(grade, _)] if runs == 1 => grade.name().to_owned(),
        _ => counts.iter().map(named).collect::<Vec<_>>().join(", "),
    }
}

fn sum(rows: &[Row]) -> String {
    let all: Vec<_> = rows.iter().flat_map(|row| row.said.iter().map(|said| (row.case, said))).collect();
    let part = |count: usize| format!("{count} of {}", all.len());
    let graded = |grade| part(all.iter().filter(|(case, said)| said.grade(case) == grade).count());
    let known: Vec<_> =
        all.iter().filter_map(|(case, said)| Some((said, case.saturation().ok()??))).collect();
    let right = |holds: fn(&Said, (f64, u32)) -> bool| {
        format!("{} of {}", known.iter().filter(|(said, truth)| holds(said, *truth)).count(), known.len())
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\nKind and holder: right {}, inconclusive {}, wrong {}, wrong while sure {}.\nX within 3 %: {}. N* in its interval: {}.\n",
        graded(Grade::Right),
        graded(Grade::Inconclusive),
        graded(Grade::Wrong),
        graded(Grade::SurelyWrong),
        right(|said, (throughput, _)| said.has_throughput(throughput)),
        right(|said, (_, users)| said.has_users(users)),
    );
    text + &calibration(&all) + &times(all.iter().map(|(_, said)| said.elapsed_s).collect())
}

/// Ends of the ranges of probability over which verdicts are counted.
const ENDS: [f64; 5] = [0.6, 0.8, 0.9, 0.95, 1.0];

/// How many verdicts were right of those said with about the same probability, and how many should have been.
fn calibration(all: &[(&Case, &Said)]) -> String {
    let said: Vec<(f64, bool)> = all
        .iter()
        .filter(|(_, said)| said.claims())
        .filter_map(|(case, said)| Some((said.probability?, said.grade(case) == Grade::Right)))
        .collect();
    let part = |ends: &[f64]| {
        let last = ends[1] == ENDS[ENDS.len() - 1];
        let within = said.iter().filter(|(sure, _)| *sure >= ends[0] && (*sure < ends[1] || last));
        let (count, right, expected) =
            within.fold((0, 0, 0.0), |(count, right, expected), (sure, is_right)| {
                (count + 1, right + usize::from(*is_right), expected + sure)
            });
        let range = format!("{:.0} to {:.0} %", ends[0] * 100.0, ends[1] * 100.0);
        (count > 0).then(|| format!("{range}: {right} of {count} ({expected:.1} expected)"))
    };
    let parts: Vec<String> = ENDS.windows(2).filter_map(part).collect();
    if parts.is_empty() { String::new() } else { format!("Right of those said with {}.\n", parts.join("; ")) }
}

/// How long the runs took.
fn times(mut elapsed_s: Vec<f64>) -> String {
    elapsed_s.sort_by(f64::total_cmp);
    let (Some(middle), Some(most)) = (elapsed_s.get(elapsed_s.len() / 2), elapsed_s.last()) else {
        return String::new();
    };
    format!("Time to a verdict: median {middle:.0} s, most {most:.0} s.\n")
}
