//! The steps as comma-separated values.
#![allow(clippy::unwrap_used)]

use analysis::run::Identity;
use report::csv;

mod samples;

#[test]
fn columns_and_figures() {
    for (name, run) in [("errors", samples::errors()), ("load", samples::load()), ("empty", samples::empty())]
    {
        insta::assert_snapshot!(name, csv(&run).replace("\r\n", "\n"));
    }
}

#[test]
fn every_line_has_as_many_cells_as_the_header() {
    for (name, run) in samples::all() {
        let records = records(&csv(&run));
        assert_eq!(records.len(), run.steps.len() + 1, "{name}");
        let widths: Vec<_> = records.iter().map(Vec::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{name}: {widths:?}");
    }
}

#[test]
fn names_come_back_whole_and_start_no_formula() {
    let run = samples::hostile();
    let records = records(&csv(&run));
    let Some(Identity::Named { name: holder }) = &run.steps[0].resources[0].identity else { unreachable!() };
    assert!(records[0].contains(&format!("utilization cpu {holder}")));
    let formula = |cell: &&String| {
        cell.starts_with(['=', '+', '@']) || (cell.starts_with('-') && cell.parse::<f64>().is_err())
    };
    assert_eq!(records.iter().flatten().find(formula), None);
}

#[test]
fn figures_are_unrounded() {
    let run = samples::cpu();
    let records = records(&csv(&run));
    let column = records[0].iter().position(|name| name == "throughput_lo_per_s").unwrap();
    let low: f64 = records[4][column].parse().unwrap();
    assert_eq!(Some(low), run.steps[3].throughput_ci_per_s.map(|ci| ci[0]));
}

/// Reads RFC 4180.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let record = records.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                record.last_mut().unwrap().push(chars.next().unwrap())
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(String::new()),
            '\r' if !quoted => {}
            '\n' if !quoted => records.push(vec![String::new()]),
            c => record.last_mut().unwrap().push(c),
        }
    }
    records.pop();
    records
}
