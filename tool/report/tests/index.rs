//! The index of several experiments: its page, in markup and in a real browser, and its text.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;

use analysis::comparison::*;
use analysis::run::{Host, Identity, Processes, ResourceKind, ResponseTime, Words};
use report::index::{Index, Outcome, Shown, html, text};
use serde_json::{Value, json};

mod browser;
mod markup;

fn entry(variant: &str, throughput_per_s: f64) -> Entry {
    Entry {
        variant: variant.into(),
        throughput_per_s,
        throughput_ci_per_s: [0.99 * throughput_per_s, 1.01 * throughput_per_s],
        users: Some(100),
        response_time_us: ResponseTime { mean: 900.0, ..ResponseTime::default() },
        cpu_us_per_request: Some(20.0),
        completed: 12_345,
        runs: vec!["run.runs/1.json".into()],
        ..Entry::default()
    }
}

fn comparison(title: &str, factor: &str, works: Vec<Workload>) -> Comparison {
    Comparison {
        schema: SCHEMA.into(),
        title: title.into(),
        factor: Factor(factor.into()),
        host: Host { cores: 2, memory_bytes: 8 << 30, kernel: "6.1".into(), processor: "made up".into() },
        started: "2026-01-02T03:04:05Z".into(),
        elapsed_s: 83.0,
        version: "0.1.0".into(),
        seed: 1,
        works,
        ..Comparison::default()
    }
}

/// Four models with a published order, and one of them left out.
fn models() -> Comparison {
    let entries = [("threads", 5_170.0), ("epoll", 6_950.0), ("select", 4_000.0), ("aio", 900.0)];
    let entries = entries.map(|(variant, rate)| entry(variant, rate)).to_vec();
    let mut work = Workload { name: "100 KB, 100 connections".into(), entries, ..Workload::default() };
    order(&mut work);
    let mut models = comparison("Upload sink <b>by model</b>", "engine", vec![work]);
    models.left_out = vec![LeftOut::new(
        "uring".into(),
        LeftOutCause::Failed { error: "the kernel denies io_uring".into() },
    )];
    let figures = [("threads", 49_350.0), ("aio", 58_890.0), ("select", 38_370.0)];
    let figure = |(variant, value): (&str, f64)| PublishedFigure { variant: variant.into(), value };
    let published = Published {
        title: "S5".into(),
        hardware: "not stated".into(),
        unit: "microseconds".into(),
        smaller_is_better: true,
        figures: figures.map(figure).to_vec(),
        ..Published::default()
    };
    let groups = ["select", "threads", "aio"].map(|name| vec![name.to_owned()]).to_vec();
    let claim = Claim {
        text: "select is the fastest.".into(),
        requires: Requirement::Order { variants: groups },
        ..Claim::default()
    };
    let open =
        Claim { text: "No room is booked twice.".into(), requires: Requirement::Proven, ..Claim::default() };
    models.hold_against(&[published], &[claim, open]);
    models
}

/// A sweep beside published points.
fn sweep() -> Comparison {
    let at = |(users, throughput_per_s): (u32, f64)| AtUsers {
        users,
        throughput_per_s,
        response_time_us: 100.0,
        little_gap: 0.0,
    };
    let nginx = Processes { name: "nginx".into(), pid: Some(812), processes: 1, ..Processes::default() };
    let limit = Limit {
        kind: ResourceKind::Cpu,
        holder: Words::default(),
        identity: Some(Identity::Processes(nginx)),
    };
    let swept = Entry {
        users: Some(8),
        users_ci: Some([4, 8]),
        bottleneck: vec![limit],
        steps: [(1, 1_000.0), (2, 1_900.0), (4, 3_500.0), (8, 4_000.0), (64, 3_990.0)].map(at).to_vec(),
        ..entry("", 4_000.0)
    };
    let mut sweep =
        comparison("One file", "", vec![Workload { entries: vec![swept], ..Workload::default() }]);
    let point = |(users, per_s): (u32, f64)| PublishedPoint { users, per_s, ms: 1.0 };
    let published = Published {
        title: "S1, get".into(),
        hardware: "2 cores".into(),
        year: Some(2017),
        bottleneck: Some(ResourceKind::Disk),
        users_at_saturation: Some(4),
        points: [(1, 10.0), (8, 60.0), (64, 55.0)].map(point).to_vec(),
        ..Published::default()
    };
    let claim = Claim {
        text: "The processor is the limit.".into(),
        requires: Requirement::Bottleneck { resource: ResourceKind::Cpu, or: Vec::new(), holder: None },
        ..Claim::default()
    };
    sweep.hold_against(&[published], &[claim]);
    sweep
}

fn index() -> Index {
    let measured = |name: &str, comparison: Comparison| Shown {
        name: name.into(),
        given: name.into(),
        title: comparison.title.clone(),
        outcome: Outcome::Measured { comparison: Box::new(comparison), page: format!("{name}/report.html") },
    };
    let other = |name: &str, outcome| Shown {
        name: name.into(),
        given: format!("{name}.toml"),
        title: format!("The title of {name}"),
        outcome,
    };
    Index {
        host: Host { cores: 2, memory_bytes: 8 << 30, kernel: "6.1".into(), processor: "made up".into() },
        started: "2026-01-02T03:04:05Z".into(),
        elapsed_s: 1_500.0,
        version: "0.1.0".into(),
        full: false,
        interrupted: true,
        experiments: vec![
            measured("io-models", models()),
            measured("files-same", sweep()),
            other("broken", Outcome::Failed { why: "no program `x<y`".into() }),
            other("grid", Outcome::OnlyFull { short_form: "io-models".into() }),
            other("late", Outcome::NotMeasured),
        ],
    }
}

fn spaced(text: &str) -> String {
    text.replace(['\u{202f}', '\u{a0}'], " ")
}

#[test]
fn the_text_says_what_agrees_and_what_is_claimed() {
    insta::assert_snapshot!(spaced(&text(&index())));
}

#[test]
fn every_sentence_about_a_publication_is_written_and_read_back() {
    for measured in [models(), sweep()] {
        let written = report::comparison::json(&measured).unwrap();
        assert_eq!(report::comparison::parse(&written).unwrap(), measured);
        let value: Value = serde_json::from_str(&written).unwrap();
        let schema = serde_json::from_str(&report::comparison::schema()).unwrap();
        let errors: Vec<_> = jsonschema::validator_for(&schema)
            .unwrap()
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, [""; 0]);
    }
    let value: Value = serde_json::from_str(&report::comparison::json(&sweep()).unwrap()).unwrap();
    let sentences: Vec<&str> =
        value["published"][0]["agreement"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(
        sentences,
        [
            "The shape agrees: the published curve levels off at 8, ours levels off at 8. Each as a share of its own \
             maximum, they are furthest apart at 1: 17 % published, 25 % here.",
            "The bottleneck differs: published disk; here CPU, nginx.",
            "Where it saturates agrees: published at 4 users; here N* = 8 (4–8).",
        ]
    );
    assert_eq!(value["claims"][0]["outcome"], "Met: CPU, nginx.");
}

/// A claim and an agreement that only a newer version knows are told in its words.
#[test]
fn what_a_newer_version_holds_is_told_in_its_words() {
    let mut value: Value = serde_json::from_str(&report::comparison::json(&sweep()).unwrap()).unwrap();
    value["published"][0]["compared"][0] = json!({ "kind": "tail", "longest": 3 });
    value["published"][0]["agreement"][0] = "The tail agrees.".into();
    value["claims"][0]["requires"] = json!({ "kind": "tail", "longest": 3 });
    value["claims"][0]["outcome"] = "Met: a short tail.".into();
    let read = report::comparison::parse(&value.to_string()).unwrap();
    let told = |text: &str| AgreementFinding::Told { text: text.into() };
    assert_eq!(read.published[0].compared[0], told("The tail agrees."));
    assert_eq!(read.claims[0].requires, Requirement::Told { text: "Met: a short tail.".into() });
    let again = report::comparison::json(&read).unwrap();
    assert!(again.contains("The tail agrees.") && again.contains("Met: a short tail."), "{again}");
}

#[test]
fn names_are_escaped_and_every_link_and_label_has_its_target() {
    let page = html(&index()).unwrap();
    assert!(!page.contains("<b>by model</b>") && page.contains("x&lt;y"), "{page}");
    let tags = markup::tags(&page);
    let ids: Vec<&str> = tags.iter().filter_map(|tag| tag.get("id")).collect();
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(known.len(), ids.len(), "an id is there twice: {ids:?}");
    for tag in &tags {
        let labels = tag.get("aria-labelledby").unwrap_or_default().split(' ').filter(|id| !id.is_empty());
        let target = tag.get("href").and_then(|href| href.strip_prefix('#'));
        for id in labels.chain(target) {
            assert!(known.contains(id), "{id} is not there");
        }
        let src = tag.get("src").unwrap_or_default();
        assert!(src.is_empty(), "the page fetches {src}");
    }
    let links: Vec<&str> = tags.iter().filter_map(|tag| tag.get("href")).collect();
    assert!(
        links.contains(&"io-models&#x2f;report.html") && links.contains(&"#experiment-files-same"),
        "{links:?}"
    );
}

/// Only the first publication was drawn.
#[test]
fn each_publication_of_a_workload_is_drawn_with_its_hardware() {
    let mut twice = models();
    let first = twice.published[0].clone();
    let second = Published { title: "S5, again".into(), hardware: "four cores".into(), ..first.clone() };
    twice.hold_against(&[first, second], &[]);
    let outcome = Outcome::Measured { comparison: Box::new(twice), page: "report.html".into() };
    let shown =
        Shown { name: "models".into(), given: "./models.toml".into(), title: "Models".into(), outcome };
    let page = html(&Index { experiments: vec![shown], ..index() }).unwrap();
    let charts: Vec<_> = markup::tags(&page).into_iter().filter(|tag| tag.name == "svg").collect();
    assert_eq!(charts.len(), 2, "{page}");
    for words in
        ["published: S5, not stated", "published: S5, again, four cores", "nstar-lab .&#x2f;models.toml"]
    {
        assert!(page.contains(words), "no '{words}' in {page}");
    }
}

/// Writes down what is seen in a wide window and on a phone.
const HARNESS: &str = r#"<!doctype html><meta charset=utf-8>
<iframe id="wide" width="1280" height="900" srcdoc="PAGE"></iframe>
<iframe id="phone" width="360" height="700" srcdoc="PAGE"></iframe>
<script id="found" type="application/json"></script>
<script>
const look = (frame) => {
  const page = frame.contentDocument;
  const root = page.documentElement;
  const texts = [...page.querySelectorAll("svg text")];
  return {
    heading: page.querySelector("h1").textContent,
    width: root.clientWidth, content: root.scrollWidth,
    outside: texts.filter((text) => text.getBoundingClientRect().right > root.clientWidth + 1).map((text) => text.textContent),
    charts: [...page.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width > 200).length,
    standings: [...page.querySelectorAll(".standing")].map((one) => one.textContent),
    rows: page.querySelectorAll(".contents tbody tr").length,
    pairs: [...page.querySelectorAll(".bars rect.beside")].map((bar) => bar.getBoundingClientRect().width > 1),
    curves: [...page.querySelectorAll(".curve.published polyline")].map((line) => line.getBoundingClientRect().width > 50),
  };
};
addEventListener("load", () => {
  const found = Object.fromEntries([...document.querySelectorAll("iframe")].map((frame) => [frame.id, look(frame)]));
  document.getElementById("found").textContent = JSON.stringify(found).replaceAll("<", "\\u003c");
});
</script>"#;

#[test]
fn the_browser_shows_every_experiment_on_a_window_and_a_phone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("harness.html");
    let page = html(&index()).unwrap().replace('&', "&amp;").replace('"', "&quot;");
    fs::write(&file, HARNESS.replace("PAGE", &page)).unwrap();
    let Some((dom, log)) = browser::browse(folder.path(), &file) else { return };
    let said: Vec<_> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert!(said.is_empty(), "{said:#?}");
    let (_, found) = dom.split_once(r#"<script id="found" type="application/json">"#).unwrap();
    let found: Value = serde_json::from_str(found.split_once("</script>").unwrap().0).unwrap();
    for window in ["wide", "phone"] {
        let seen = &found[window];
        assert_eq!(seen["heading"], "Published experiments, measured again");
        assert_eq!(seen["content"], seen["width"], "it scrolls sideways on {window}");
        assert_eq!(seen["outside"], json!([]), "{window}");
        assert_eq!((&seen["charts"], &seen["rows"]), (&json!(2), &json!(5)), "{window}");
        assert_eq!(seen["standings"], json!(["not met", "not shown", "met"]), "{window}");
        // Threads, aio and select were published, epoll was not.
        assert_eq!(seen["pairs"], json!([true, true, true]), "{window}");
        assert_eq!(seen["curves"], json!([true]), "{window}");
    }
}
