//! A comparison: its file, its tables, its page.

use std::collections::BTreeSet;

use analysis::comparison::{
    Comparison, Entry, Factor, LeftOut, LeftOutCause, Limit, OrderFinding, Published, PublishedFigure,
    SCHEMA, Workload, order,
};
use analysis::run::{
    Confirmation, ConfirmationAnswer, Doubt, Host, Identity, LeftAlone, LeftAloneReason, Processes,
    ResourceKind, ResponseTime, Slowable, SlowedBy, SlowedTier, Words,
};
use analysis::ticks::ErrorKind;
use report::comparison::{csv, html, json, parse, schema, terminal};
use report::{Document, TerminalOptions};
use serde_json::Value;

mod markup;

use markup::tags;

const SHIPPED: &str = include_str!("../../../docs/comparison.schema.json");

fn entry(variant: &str, throughput_per_s: f64, mean: f64) -> Entry {
    Entry {
        variant: variant.into(),
        throughput_per_s,
        throughput_ci_per_s: [0.99 * throughput_per_s, 1.01 * throughput_per_s],
        users: Some(100),
        response_time_us: ResponseTime { mean, p99: 3.0 * mean, ..ResponseTime::default() },
        cpu_us_per_request: Some(1e6 / throughput_per_s),
        completed: 12_345,
        bottleneck: vec![Limit {
            kind: ResourceKind::Cpu,
            holder: Words::default(),
            identity: Identity::named("nstar-sink (pid 8)"),
        }],
        runs: vec![format!("run.runs/100-kb-{variant}-1.json")],
        ..Entry::default()
    }
}

fn sample() -> Comparison {
    let mut refusing = entry("select", 900.0, 9_100.0);
    refusing.errors.insert(ErrorKind::Reset, 8_120);
    refusing.doubts.push(Doubt::ManyFailed { share: 0.4 });
    let store = Processes { name: "store".into(), pid: Some(9), processes: 1, ..Processes::default() };
    let tested = Confirmation {
        users: 200,
        elapsed_s: 8.0,
        tiers: vec![SlowedTier {
            tier: store.into(),
            by: SlowedBy::Stopping,
            stopped_share: 0.1,
            elasticity: 0.97,
            elasticity_ci: [0.9, 1.04],
        }],
        answer: ConfirmationAnswer::Confirmed,
        ..Confirmation::default()
    };
    let left_alone = vec![LeftAlone { tier: Slowable::default(), reason: LeftAloneReason::NoTime }];
    let untested = Confirmation { users: 200, left_alone, ..Confirmation::default() };
    let entries = vec![
        Entry { confirmation: Some(tested), ..entry("threads", 5_170.0, 900.0) },
        refusing,
        Entry { confirmation: Some(untested), ..entry("epoll", 6_950.0, 690.0) },
        entry("<b>", 6_990.0, 700.0),
    ];
    let mut work = Workload { name: "100 KB, 100 connections".into(), entries, ..Workload::default() };
    order(&mut work);
    let figure = |variant: &str, value| PublishedFigure { variant: variant.into(), value };
    Comparison {
        schema: SCHEMA.into(),
        title: "Upload sink, by concurrency model".into(),
        factor: Factor("engine".into()),
        host: Host { cores: 2, memory_bytes: 8 << 30, kernel: "6.1".into(), processor: "made up".into() },
        started: "2026-01-02T03:04:05Z".into(),
        elapsed_s: 83.0,
        version: "0.1.0".into(),
        seed: 1,
        works: vec![work],
        left_out: vec![LeftOut::new(
            "uring".into(),
            LeftOutCause::Failed { error: "the kernel denies io_uring".into() },
        )],
        published: vec![Published {
            title: "S5".into(),
            hardware: "not stated".into(),
            unit: "average time per connection".into(),
            work: Some("100 KB, 100 connections".into()),
            smaller_is_better: true,
            figures: vec![figure("threads", 49_350.0), figure("select", 38_370.0)],
            ..Published::default()
        }],
        ..Comparison::default()
    }
}

#[test]
fn a_file_says_itself_whether_it_is_a_sample() {
    let comparison = sample();
    let read = report::read(&json(&comparison).unwrap()).unwrap();
    assert_eq!(read, Document::Comparison(Box::new(comparison)));
    let damaged = report::read(r#"{"schema": "nstar.comparison/1", "title": 3}"#);
    assert!(damaged.unwrap_err().to_string().contains("title"));
}

#[test]
fn the_table_has_a_line_per_variant_and_work() {
    let text = csv(&sample());
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 5);
    let columns = lines[0].split(',').count();
    let row: Vec<&str> = lines[2].split(',').collect();
    assert_eq!(row[0], "\"100 KB");
    assert_eq!(row[2..5], ["select", "", ""]);
    assert!(lines[2].contains(",900,891,909,"), "{}", lines[2]);
    // The two names that hold a comma: of the work and of what stopped it.
    assert_eq!(row.len(), columns + 2);
    assert_eq!(row.iter().rev().nth(12 - 2), Some(&"8120"));
}

#[test]
fn what_is_written_is_read_back_and_satisfies_the_schema() {
    assert!(
        SHIPPED == schema(),
        "run: cargo run -p report --example schema -- comparison > docs/comparison.schema.json"
    );
    let text = json(&sample()).unwrap();
    assert_eq!(parse(&text).unwrap(), sample());
    let validator = jsonschema::validator_for(&serde_json::from_str(SHIPPED).unwrap()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
}

#[test]
fn a_first_whose_figure_is_a_lower_bound_has_at_least_that() {
    let mut read = parse(include_str!("golden/study-1.json")).unwrap();
    let first = OrderFinding::First {
        variant: "epoll".into(),
        throughput_per_s: 800.0,
        next: "poll".into(),
        times_next: 1.3,
        at_least: true,
    };
    read.works[0].ranking = vec![first];
    let text = terminal(&read, &TerminalOptions { width: 400, ..TerminalOptions::default() });
    let said = "epoll is first with at least 800 req/s, at least 1.3 times the next, poll.";
    assert!(text.contains(said), "{text}");
}

/// A file from when comparisons were called studies.
#[test]
fn a_file_of_the_first_format_stays_readable() {
    let read = parse(include_str!("golden/study-1.json")).unwrap();
    let text = terminal(&read, &TerminalOptions { width: 400, ..TerminalOptions::default() });
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(['\u{202f}', '\u{a0}'], " ");
    for sentence in [
        "epoll is first with 6 950 req/s, 1.34 times the next, threads.",
        "holds in every load (largest gap 2 %).",
        "breaks at 1 of the 2 published points: at 300 users X R is 71.",
        "In doubt: aio: Processes that are not part of the test used 0.80 of 2 cores: stop them and measure again.",
        "CPU, nstar-sink (pid 8)",
        "11 bookings acknowledged, 10 rows: 1 WERE LOST.",
    ] {
        assert!(text.contains(sentence), "{sentence}: {text}");
    }
    assert_eq!(parse(&json(&read).unwrap()).unwrap(), read);
}

#[test]
fn a_run_is_not_a_comparison() {
    let run = include_str!("golden/run.json");
    assert!(parse(run).unwrap_err().to_string().contains("this nstar reads `nstar.comparison/1`"));
}

#[test]
fn tables_fit_every_width_and_cut_nothing() {
    let options = TerminalOptions { files: vec!["report.html".into()], ..TerminalOptions::default() };
    for width in [60, 100, 160] {
        let text = terminal(&sample(), &TerminalOptions { width, ..options.clone() });
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert!(!text.contains('…') && text.matches("nstar-sink").count() == 4, "{text}");
        insta::assert_snapshot!(format!("terminal_{width}"), text);
    }
    let narrow = terminal(&sample(), &TerminalOptions { width: 40, unicode: false, ..options });
    assert!(narrow.is_ascii() && narrow.lines().all(|line| line.len() <= 40), "{narrow}");
}

#[test]
fn workers_keep_their_order() {
    let mut comparison = sample();
    comparison.factor = Factor("workers".into());
    for (entry, workers) in comparison.works[0].entries.iter_mut().zip(["11", "22", "33", "44", "55"]) {
        entry.variant = workers.into();
    }
    let text = terminal(&comparison, &TerminalOptions::default());
    assert!(text.find("11").unwrap() < text.find("22").unwrap(), "{text}");
}

#[test]
fn the_page_is_well_formed_and_escapes_names() {
    let page = html(&sample()).unwrap();
    let tags = tags(&page);
    let mut open = Vec::new();
    for tag in tags.iter().filter(|tag| !["meta", "!doctype"].contains(&tag.name.as_str())) {
        match tag.name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed)),
            None => open.push(&tag.name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let ids: Vec<_> = tags.iter().filter_map(|tag| tag.get("id")).collect();
    let unique: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "{ids:?}");
    let references = tags.iter().filter_map(|tag| tag.get("aria-labelledby"));
    assert!(references.flat_map(str::split_whitespace).all(|reference| unique.contains(reference)));
    assert!(!page.contains("<b>") && page.contains("&lt;b&gt;"));
    let told = ["Bottlenecks tested by experiment", "epoll: Not tested by experiment", "cost 0.97 of that"];
    assert!(told.iter().all(|told| page.contains(told)));
    assert!(page.contains("not stated") && page.contains("the kernel denies io_uring"));
}

#[test]
fn unknown_findings_of_a_newer_version_are_told_in_its_words() {
    let mut written: Value = serde_json::from_str(&json(&sample()).unwrap()).unwrap();
    let mut change = |place: &str, to: Value| *written.pointer_mut(place).expect(place) = to;
    let text = "A newer version says so.".to_owned();
    for (data, words) in [
        ("/works/0/ranking/0", "/works/0/order/0"),
        ("/works/0/entries/1/reasons/0", "/works/0/entries/1/doubts/0"),
    ] {
        change(data, serde_json::json!({ "kind": "weather", "of": [1, 2] }));
        change(words, text.clone().into());
    }
    let read = parse(&written.to_string()).unwrap();
    assert_eq!(read.works[0].ranking[0], OrderFinding::Told { text: text.clone() });
    assert_eq!(read.works[0].entries[1].doubts, [Doubt::Told { text }]);
}

/// What the generator could not drive to its limit is in order by what a request costs, and that is told.
#[test]
fn an_order_by_cpu_time_says_that_it_is_one() {
    let mut comparison = sample();
    let work = &mut comparison.works[0];
    work.entries.truncate(3);
    work.entries.remove(1);
    for (entry, cost) in work.entries.iter_mut().zip([20.0, 30.0]) {
        let rounds = |figure: f64| [1.0, 1.01, 0.99].map(|round| Some(figure * round)).to_vec();
        entry.lower_bound = true;
        entry.bottleneck[0].kind = ResourceKind::Generator;
        entry.throughput_by_round_per_s = rounds(5_000.0);
        entry.cpu_us_per_request_by_round = rounds(cost);
    }
    work.entries[0].cpu_us_per_request_by_round[0] = Some(20.1);
    order(work);
    assert_eq!(
        work.entries.iter().map(|entry| entry.place).collect::<Vec<_>>(),
        [Some([1, 1]), Some([2, 2])]
    );
    assert!(matches!(work.ranking[0], OrderFinding::Cheapest { .. }), "{:?}", work.ranking);
    let text = terminal(&comparison, &TerminalOptions { width: 400, ..TerminalOptions::default() });
    for words in [
        "threads is first by CPU time per request, as the generator was the limit: the next, epoll, takes 1.5 times as much.",
        "The generator could not drive epoll and threads to the limit in every round: where an order with them is claimed",
    ] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(['\u{202f}', '\u{a0}'], " ");
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(parse(&json(&comparison).unwrap()).unwrap(), comparison);
}

/// Processors of twelve rounds that differ by a fifth, which throughput follows: the order allows for it, and says so.
#[test]
fn an_order_that_allows_for_the_speed_of_the_processors_says_so() {
    let mut comparison = sample();
    let work = &mut comparison.works[0];
    work.entries.truncate(3);
    work.entries.remove(1);
    for (number, entry) in work.entries.iter_mut().enumerate() {
        // In turn fast and slow, and the one when the other is not.
        let slow = |round: usize| if (round / (number + 1)).is_multiple_of(2) { 0.8 } else { 1.0 };
        let noise = |round: usize| 1.0 + 0.002 * (round * (number + 3) % 5) as f64;
        let figure = [5_000.0, 5_400.0][number];
        entry.throughput_by_round_per_s =
            (0..12).map(|round| Some(figure * slow(round) * noise(round))).collect();
        entry.processor_speed_by_round = (0..12).map(|round| Some(1e9 * slow(round))).collect();
    }
    order(work);
    assert_eq!(work.entries[1].place, Some([1, 1]));
    let text = terminal(&comparison, &TerminalOptions { width: 400, ..TerminalOptions::default() });
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(['\u{202f}', '\u{a0}'], " ");
    assert!(
        text.contains("faster in some trials than in others, by 11 % (one standard deviation)"),
        "{text}"
    );
    let work = &mut comparison.works[0];
    work.entries.iter_mut().for_each(|entry| entry.processor_speed_by_round.clear());
    order(work);
    assert_eq!(work.entries[1].place, Some([1, 2]), "{:?}", work.ranking);
}

/// The ratio to the baseline has a column of its own, which no other comparison has.
#[test]
fn a_baseline_is_shown_in_terminal_and_page() {
    let mut comparison = sample();
    let options = TerminalOptions { width: 400, ..TerminalOptions::default() };
    assert!(!terminal(&comparison, &options).contains("of baseline"));
    assert!(!html(&comparison).unwrap().contains("Of the baseline"));
    let work = &mut comparison.works[0];
    work.baseline = Some("threads".to_owned());
    order(work);
    let text = terminal(&comparison, &options);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("of baseline") && words.contains("134"), "{text}");
    assert!(words.contains("Compared with threads, the baseline: epoll and <b> are ahead."), "{text}");
    assert!(html(&comparison).unwrap().contains("Of the baseline"));
    assert_eq!(parse(&json(&comparison).unwrap()).unwrap(), comparison);
}
