//! What a person sees in a terminal.

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
