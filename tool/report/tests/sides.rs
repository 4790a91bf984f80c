//! Two sides beside each other, and runs in the order of time: every way they are shown.

use std::collections::BTreeMap;

use analysis::comparison::{Comparison, Entry, Workload};
use analysis::contrast::{self, Figure, Gate, GateVerdict, Limit, Variant};
use analysis::prediction::{
    Bound, Caution, Change, Goal, GoalFigure, Prediction, Question, Refusal, predict,
};
use analysis::run::Run;
use report::TerminalOptions;
use report::gates::HeldGate;
use serde_json::Value;

mod markup;
mod samples;

use markup::tags;
use samples::sides::{course, given, history_of, hostile, hostile_course, many, sixteen, slower};

#[test]
fn the_terminal_says_what_changed_and_how_sure_that_is() {
    let text = report::contrast::terminal(&slower(), &TerminalOptions::default());
    for expected in [
        "Throughput fell: ",
        "One run on each side",
        "Gate throughput>-3%: breached",
        "Gate throughput>-20%: met",
        "Gate p99<+5%: not decided",
        "with no interval",
        "CPU time that has an interval comes from",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let longest = text.lines().map(|line| line.chars().count()).max().expect("lines");
    assert!(longest <= 120, "{text}");
    let gate = report::contrast::gate(&slower().gates[0]);
    assert!(gate.is_ascii() && gate.starts_with("throughput>-3%: breached, -10"), "{gate}");
}

#[test]
fn the_terminal_says_that_runs_took_turns_and_how_many_pairs_they_make() {
    let mut sides = [Vec::new(), Vec::new()];
    for (place, run) in many(12).into_iter().enumerate() {
        sides[place % 2].push(run);
    }
    let [before, after] = sides;
    let found = contrast::of_runs(before, after, "1").expect("runs on both sides");
    let text = report::contrast::terminal(&found, &TerminalOptions::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("with its neighbour in time: intervals come from 6 pairs."), "{text}");
}

#[test]
fn the_page_is_well_formed_and_fetches_nothing() {
    for page in [
        report::contrast::html(&slower()).expect("a page"),
        report::contrast::html(&hostile()).expect("a page"),
        report::history::html(&course()).expect("a page"),
        report::history::html(&hostile_course()).expect("a page"),
    ] {
        assert!(tags(&page).iter().all(|tag| tag.name != "script"), "no script");
        assert!(!page.contains("http://www") && !page.contains("src=") && !page.contains("href="));
        assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }
    let page = report::contrast::html(&slower()).expect("a page");
    assert!(
        page.contains("standing unmet") && page.contains("standing met") && page.contains("standing open")
    );
}

#[test]
fn markdown_and_junit_hold_what_names_say_without_obeying_it() {
    let text = report::contrast::markdown(&hostile());
    assert!(!text.contains("<script") && !text.contains('\u{1b}') && text.contains("\\`\\[x\\]"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let columns = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(rows.map(columns).all(|columns| columns == 6), "{text}");
    let xml = report::contrast::junit(&hostile());
    assert!(xml.contains("&lt;script&gt;") && !xml.contains("<script") && !xml.contains('\u{1b}'), "{xml}");
    let xml = report::contrast::junit(&slower());
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{xml}");
    let counts: BTreeMap<&str, usize> = ["<testcase ", "</testcase>", "<failure ", "<error "]
        .map(|tag| (tag, xml.matches(tag).count()))
        .into();
    assert_eq!(
        counts,
        BTreeMap::from([("<testcase ", 3), ("</testcase>", 3), ("<failure ", 1), ("<error ", 1)])
    );
}

#[test]
fn gates_of_a_run_are_shown_to_ci_whatever_names_hold() {
    let held = |verdict, text: &str| HeldGate {
        file: "<a>.json".into(),
        text: text.into(),
        verdict,
        found: "found 1.0 req/s".into(),
    };
    let all = [
        held(GateVerdict::Met, "throughput>=1"),
        held(GateVerdict::Breached, "throughput>=2"),
        held(GateVerdict::NotDecided, "p99<=1s"),
    ];
    let xml = report::gates::junit(&all);
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{xml}");
    assert!(xml.contains("name=\"&lt;a&gt;.json, throughput&gt;=2\"><failure "), "{xml}");
    let text = report::gates::markdown(&samples::hostile(), "`a`.json", &all);
    assert!(!text.contains("<script") && !text.contains('\u{1b}') && text.contains("\\`a\\`.json"), "{text}");
    assert!(text.contains("- **breached**: throughput&gt;=2: breached, found 1.0 req/s"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let columns = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(rows.map(columns).all(|columns| columns == 3), "{text}");
}

#[test]
fn a_history_marks_the_run_that_a_change_came_with() {
    let text = report::history::terminal(&course(), &TerminalOptions { width: 140, ..Default::default() });
    assert!(text.contains("Throughput fell with 10.json"), "{text}");
    let row = text.lines().find(|line| line.trim_start().starts_with("10.json")).expect("its row");
    assert!(row.contains("Throughput −"), "{row}");
    let few = history_of(&[given("a", samples::cpu())]);
    assert!(
        report::history::terminal(&few, &TerminalOptions::default()).contains("takes 8 runs; there is 1.")
    );
}

#[test]
fn a_history_says_what_else_changed_and_which_runs_are_lower_bounds() {
    let mut runs = sixteen();
    runs[10..].iter_mut().for_each(|given| given.run.host.kernel = "6.99".into());
    runs[15].run.verdict.bounded = false;
    runs[4].run.verdict.doubts = samples::hostile().verdict.doubts;
    let found = history_of(&runs);
    let text = report::history::terminal(&found, &TerminalOptions { width: 200, ..Default::default() });
    let row = |file: &str| {
        let row = text.lines().find(|line| line.trim_start().starts_with(file));
        row.unwrap_or_else(|| panic!("{file} is not in:\n{text}"))
    };
    assert!(row("10.json").contains("Throughput −") && row("10.json").contains("new kernel"), "{text}");
    assert!(row("15.json").contains("at least ") && row("15.json").contains("lower bound"), "{text}");
    assert!(row("04.json").contains("inconclusive") && !row("05.json").contains("inconclusive"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("With 10.json something else changed too. Kernel: "), "{text}");
    let page = report::history::html(&found).expect("a page");
    assert!(page.contains("at least ") && page.contains("lower bound"));
    let markdown = report::history::markdown(&found);
    assert!(markdown.contains("| 15.json | ") && markdown.contains("| **Throughput "), "{markdown}");
    let bounded: Vec<&str> = markdown.lines().filter(|line| line.contains(" | at least ")).collect();
    assert!(matches!(bounded[..], [row] if row.starts_with("| 15.json | ")), "{markdown}");
}

#[test]
fn a_history_of_lower_bounds_says_that_no_fall_can_be_found() {
    let mut runs = sixteen();
    runs[7..].iter_mut().for_each(|given| given.run.verdict.bounded = false);
    let found = history_of(&runs);
    let why = report::history::unjudged(&found.courses[0]).expect("seven are too few");
    assert!(why.starts_with("Only 7 of 16 runs drove the server to its limit; "), "{why}");
    let text = report::history::terminal(&found, &TerminalOptions { width: 200, ..Default::default() });
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&why) && !words.contains("No change is shown"), "{text}");
    assert_eq!(report::history::unjudged(&course().courses[0]), None);
}

#[test]
fn what_else_changed_with_a_run_is_said_once() {
    let mut runs = sixteen();
    for given in &mut runs[10..] {
        given.run.host.kernel = "6.99".into();
        let costs = given.run.steps.iter_mut().flat_map(|step| &mut step.resources);
        costs.for_each(|resource| resource.used *= 1.3);
    }
    let found = history_of(&runs);
    let [course] = found.courses.as_slice() else { panic!("{found:?}") };
    assert_eq!(course.changes.len(), 2, "{:?}", course.changes);
    let markdown = report::history::markdown(&found);
    assert_eq!(markdown.matches("something else changed too").count(), 1, "{markdown}");
    let warned = report::history::changes(course, &course.worse_within(10));
    let with_kernel: Vec<bool> = warned.iter().map(|told| told.contains("Kernel: ")).collect();
    assert_eq!(with_kernel, [false, true], "{warned:?}");
}

#[test]
fn a_summary_of_many_runs_shows_the_latest() {
    let markdown = report::history::markdown(&history_of(&many(24)));
    assert!(markdown.contains("\nThe latest 20 of 24 runs.\n"), "{markdown}");
    assert!(!markdown.contains("| 03.json | ") && markdown.contains("| 04.json | "), "{markdown}");
    assert!(!report::history::markdown(&course()).contains("The latest"));
}

#[test]
fn courses_of_one_target_are_told_apart_by_their_loads() {
    let mut runs = sixteen();
    runs[10..].iter_mut().for_each(|given| given.run.load.think_time_us = 1e5);
    let found = history_of(&runs);
    assert_eq!(found.courses.len(), 2);
    let text = report::history::terminal(&found, &TerminalOptions { width: 140, ..Default::default() });
    assert!(text.contains("(Think time: 100") && text.contains("No change is shown in 10 runs."), "{text}");
}

#[test]
fn the_markdown_of_a_history_holds_what_names_say_without_obeying_it() {
    let text = report::history::markdown(&hostile_course());
    assert!(!text.contains("<script") && !text.contains('\u{1b}'), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let columns = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(rows.map(columns).all(|columns| columns == 7), "{text}");
}

/// Rounds have throughputs of their own, and one of them the percentiles.
#[test]
fn a_gate_on_a_percentile_of_an_experiment_says_where_there_is_one_for_each_run() {
    let time = samples::cpu().verdict.response_time_at_saturation_us;
    let entry = Entry {
        variant: "epoll".into(),
        throughput_by_round_per_s: [100.0, 101.0, 99.0].map(Some).to_vec(),
        response_time_us: time,
        ..Entry::default()
    };
    let work = Workload { name: "work".into(), entries: vec![entry], ..Workload::default() };
    let comparison = Comparison { works: vec![work], ..Comparison::default() };
    let side = Variant { file: "x.json".into(), name: None, comparison };
    let mut found = contrast::of_variants(&side, &side, "1").expect("the same variant");
    let figure = Figure::ResponseTimeQuantile { percentile: "p99".into() };
    found.hold(&[Gate { text: "p99<+5%".into(), figure, limit: Limit::Below, ratio: 1.05 }]);
    let said = report::contrast::gate(&found.gates[0]);
    assert!(said.contains("not decided") && said.contains("compare its run files"), "{said}");
    assert!(!said.contains("repeats would give one"), "{said}");
}

fn more_processors() -> Prediction {
    let run = samples::cpu();
    let name = "nginx worker".to_owned();
    let goal = Goal { text: "throughput>=1".into(), value: 1.0, ..Goal::default() };
    let changes = vec![Change::Cpus { name, cpus: 2.0 }];
    let question = Question { changes, users: Some(100), goal: Some(goal), seed: 1 };
    predict(&run, &question, "1").expect("an answer")
}

#[test]
fn a_prediction_says_what_is_next_and_what_to_distrust() {
    let found = more_processors();
    let text = report::prediction::terminal(&found, &TerminalOptions { width: 140, ..Default::default() });
    for said in [
        "With 2 processors for nginx worker: at most",
        "Bottleneck: ",
        "With 100 users: ",
        "10 % less of",
        "Caution: Beyond",
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
}

#[test]
fn what_cannot_be_and_what_stays_is_told_by_name() {
    let refusal = Refusal::ShorterThanCalls { name: "accounts".into(), shorter_us: 5e6, at_most_us: 2e3 };
    assert!(refusal.is_of_question());
    let said = report::prediction::refusal(&refusal).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.starts_with("calls of accounts take 2.00 ms of a request at most: "), "{said}");
    assert!(said.contains(": they cannot be 5.00 s shorter; ") && said.ends_with("(--demand)"), "{said}");
    let demands = vec!["sda.disk".into(), "eth0.network".into()];
    let found = Prediction { cautions: vec![Caution::SharedDevices { demands }], ..more_processors() };
    let text = report::prediction::terminal(&found, &TerminalOptions { width: 140, ..Default::default() });
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("use sda.disk, eth0.network too, so added servers "), "{text}");
}

/// The sample in a file from before p95 was kept.
fn without_p95() -> Run {
    let mut run = samples::cpu();
    let times = run.steps.iter_mut().map(|step| &mut step.response_time_us);
    times.chain([&mut run.verdict.response_time_at_saturation_us]).for_each(|time| time.p95 = None);
    run
}

/// With 8 users, the sample's mean is 235 us and its p95 1.6 times that.
#[test]
fn a_goal_for_p95_needs_a_file_that_holds_it() {
    let figure = GoalFigure::Quantile { percentile: "p95".into() };
    let text = "p95<=1ms at 8 users".to_owned();
    let goal = Goal { text, figure, bound: Bound::AtMost, value: 1_000.0, users: Some(8) };
    let question = Question { users: Some(8), goal: Some(goal), seed: 1, ..Question::default() };
    let found = predict(&samples::cpu(), &question, "1").expect("an answer");
    let answer = found.goal.as_ref().expect("of the goal");
    assert!(answer.reached && (answer.now.value / 375.0 - 1.0).abs() < 0.1, "{answer:?}");
    let text = report::prediction::terminal(&found, &TerminalOptions { width: 140, ..Default::default() });
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(", p95 about 3") && words.contains(", p99 about 4"), "{text}");

    let refusal = predict(&without_p95(), &question, "1").expect_err("not in the file");
    let kept = ["p50", "p90", "p99", "p999"].map(str::to_owned).to_vec();
    assert_eq!(refusal, Refusal::QuantileNotKept { percentile: "p95".into(), kept });
    assert!(refusal.is_of_question());
    let said = report::prediction::refusal(&refusal);
    assert!(said.contains("written before nstar kept that; sweep again") && said.contains("p999"), "{said}");

    let slower = Change::Think { think_us: 1e3 };
    let elsewhere = Question { changes: vec![slower], ..question };
    let refusal = predict(&without_p95(), &elsewhere, "1").expect_err("users think for another time");
    assert_eq!(refusal, Refusal::NoQuantile, "a newer file would not help");
}

#[test]
fn a_gate_on_p95_says_that_an_older_file_lacks_it() {
    let (before, after) = (given("a.json", without_p95()), given("b.json", samples::cpu()));
    let mut found = contrast::of_runs(vec![before], vec![after], "1").expect("runs on both sides");
    let figure = Figure::ResponseTimeQuantile { percentile: "p95".into() };
    found.hold(&[Gate { text: "p95<+5%".into(), figure, limit: Limit::Below, ratio: 1.05 }]);
    let said = report::contrast::gate(&found.gates[0]);
    assert!(said.starts_with("p95<+5%: not decided, p95 is not known on both sides: "), "{said}");
    assert!(said.contains("from before nstar kept it; measure that side again"), "{said}");
}

#[test]
fn files_satisfy_their_schemas_which_are_up_to_date() {
    let contrast = include_str!("../../../docs/contrast.schema.json");
    let history = include_str!("../../../docs/history.schema.json");
    assert!(contrast == report::contrast::schema(), "run: cargo run -p report --example schema -- contrast");
    let prediction = include_str!("../../../docs/prediction.schema.json");
    assert!(
        prediction == report::prediction::schema(),
        "run: cargo run -p report --example schema -- prediction"
    );
    assert!(history == report::history::schema(), "run: cargo run -p report --example schema -- history");
    for (schema, text) in [
        (contrast, report::contrast::json(&slower()).expect("JSON")),
        (contrast, report::contrast::json(&hostile()).expect("JSON")),
        (history, report::history::json(&course()).expect("JSON")),
        (prediction, report::prediction::json(&more_processors()).expect("JSON")),
    ] {
        let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0]);
    }
}
