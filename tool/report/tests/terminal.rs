//! What a person sees in a terminal.

use analysis::{
    run::{Run, Step},
    ticks::{ErrorCounts, ErrorKind},
};
use report::{TerminalOptions, terminal};

mod samples;

fn options() -> TerminalOptions {
    TerminalOptions { files: vec!["report.html".into(), "run.json".into()], ..TerminalOptions::default() }
}

#[test]
fn every_outcome_reads_well() {
    for (name, run) in samples::all() {
        insta::assert_snapshot!(name, terminal(&run, &options()));
    }
}

#[test]
fn a_narrow_plain_terminal_gets_ascii() {
    let options = TerminalOptions { width: 60, unicode: false, ..options() };
    let text = terminal(&samples::cpu(), &options);
    assert!(text.is_ascii());
    insta::assert_snapshot!("cpu_narrow_ascii", text);
}

#[test]
fn every_run_fits_every_width() {
    for (name, run) in samples::all() {
        for width in [40, 80, 100, 200] {
            let text = terminal(&run, &TerminalOptions { width, ..options() });
            for line in text.lines().filter(|line| line.contains(' ')) {
                let longest_word = line.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
                let allowed = width.max(longest_word + 4);
                assert!(line.chars().count() <= allowed, "{name} at {width}: {line}");
            }
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let plain = terminal(&samples::generator(), &options());
    let coloured = terminal(&samples::generator(), &TerminalOptions { colour: true, ..options() });
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped += before;
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    stripped += rest;
    assert_ne!(coloured, plain);
    assert_eq!(stripped, plain);
}

#[test]
fn names_cannot_drive_the_terminal() {
    let text = terminal(&samples::hostile(), &options());
    let driven = |c: &char| c.is_control() && *c != '\n' || *c == '\u{202e}';
    assert_eq!(text.chars().find(driven), None);
}

#[test]
fn littles_law_is_not_said_to_hold_where_it_was_not_tested() {
    let said = |run: &Run| terminal(run, &TerminalOptions { width: 400, ..options() });
    let mut run = samples::cpu();
    assert!(said(&run).contains("law holds at every step."), "{}", said(&run));
    run.steps[0].steady = false;
    assert!(said(&run).contains("law holds at every steady step."), "{}", said(&run));

    let fail = |step: &mut Step| step.errors = ErrorCounts::from([(ErrorKind::Reset, step.completed * 10)]);
    let at = run.steps.last_mut().map(|step| (fail(step), step.users).1).unwrap();
    let partly = said(&run);
    assert!(partly.contains("law holds where it can be tested."), "{partly}");
    assert!(partly.contains(&format!("tested at {at} users: too many requests failed")), "{partly}");

    run.steps.iter_mut().for_each(|step| step.steady = false);
    let unsteady = said(&run);
    assert!(!unsteady.contains("law holds") && unsteady.contains("no step where it can be was steady"));

    run.steps.iter_mut().for_each(fail);
    let nowhere = said(&run);
    assert!(!nowhere.contains("law holds") && !nowhere.contains("was steady"), "{nowhere}");
    assert!(nowhere.contains("law cannot be tested at 1, 2, "), "{nowhere}");

    let mut open = samples::cpu();
    open.load.rate_per_s = Some(100.0);
    assert!(said(&open).contains("law is not tested in an open loop."), "{}", said(&open));
}
