//! What a person sees in a terminal.

use analysis::{
    run::{Connecting, Run, Step},
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

/// The slow kind is too rare for a 99th percentile.
#[test]
fn each_kind_of_request_has_a_row_of_its_own_times() {
    let rows = |run: &Run| -> Vec<String> {
        let text = terminal(run, &options());
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let mut run = samples::mix();
    let shown = rows(&run);
    let at = shown.iter().position(|line| line.starts_with("request at 4 users")).expect("a table");
    let expected = [
        "request at 4 users asked share req/s mean µs p50 p90 p95 p99",
        "search 100 % 100 % 34 100 115 108 160 182 205",
        "book 0.2 % 0.2 % 54.6 1 840 1 700 2 500 3 000",
        "",
    ];
    assert_eq!(shown[at..at + 4], expected);
    assert!(!shown.iter().any(|line| line.contains("Requests: ")), "{shown:?}");
    // A file from before they were kept has the shares of the whole run.
    run.steps[3].requests.clear();
    let shown = rows(&run).join(" ");
    assert!(shown.contains("Requests: search 100 % (asked 100 %), book 0.2 % (asked 0.2 %)."), "{shown}");
}

#[test]
fn each_kind_of_request_has_what_it_costs_each_tier() {
    let text = terminal(&samples::mix_with_costs(), &TerminalOptions { width: 160, ..options() });
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let rows: Vec<String> = rows.skip_while(|line| !line.starts_with("request at 4 users")).take(3).collect();
    let ends = ["p99 CPU nginx worker µs CPU db µs", "205 27.0", "3 000 1 900 640"];
    assert!(rows.len() == 3 && rows.iter().zip(ends).all(|(row, end)| row.ends_with(end)), "{rows:?}");
}

#[test]
fn kinds_that_were_not_told_apart_and_one_that_never_completed_have_rows_too() {
    let mut run = samples::mix();
    run.steps.swap(0, 3);
    run.steps.truncate(1);
    let [fast, slow] = &mut run.steps[0].requests[..] else { panic!("two kinds") };
    fast.name.clear();
    (slow.completed, slow.response_time_us.samples) = (0, 0);
    let text = terminal(&run, &options());
    let row = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("request "), "request asked share req/s mean µs p50 p90 p95 p99");
    assert_eq!(row("all others"), "all others 100 % 34 100 115 108 160 182 205");
    assert_eq!(row("book"), "book 0.2 % 0.2 % 54.6");
}

#[test]
fn a_look_up_of_the_name_is_told_where_connections_are_fresh_and_it_would_be_seen() {
    let said = |run: &Run| terminal(run, &options()).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut run = samples::cpu();
    run.verdict.users_at_saturation = Some(run.steps[0].users);
    run.steps[0].response_time_us.mean = 10_000.0;
    run.name_lookup_us = Some(1_200.0);
    assert!(!said(&run).contains("Looking up"), "connections are kept");
    run.steps[0].connecting = Some(Connecting { per_request: 1.0, mean_us: 300.0, share: 0.03 });
    let told = said(&run);
    assert!(told.contains("name took 1.20 ms: nstar does it once, before the load"), "{told}");
    assert!(told.contains("12 % of the response times with 1 user."), "{told}");
    run.name_lookup_us = Some(90.0);
    assert!(!said(&run).contains("Looking up"), "it is less than a hundredth");
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
