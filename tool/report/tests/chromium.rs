//! The page in a real browser: its figures, its width on a phone, its console.
//!
//! Needs `chromium` on the PATH. Without it the test says so and passes, except in CI (`CI=true`).

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use analysis::run::Run;
use report::html;
use serde_json::{Value, json};

mod browser;
mod samples;

use browser::browse;

/// Frames a page as a wide window with script and as a phone without.
const FRAMES: &str = r#"
<iframe id="NAME wide" width="1280" height="900" srcdoc="PAGE"></iframe>
<iframe id="NAME phone" width="360" height="700" sandbox="allow-same-origin" srcdoc="PAGE"></iframe>"#;

/// Writes down what is in each frame.
const HARNESS: &str = r#"<script id="found" type="application/json"></script>
<script>
const look = (frame) => {
  const page = frame.contentDocument;
  const figures = {};
  for (const cell of page.querySelectorAll("[data-name]")) {
    const table = cell.closest("table").querySelector("caption").id || "facts";
    const name = table + " " + cell.dataset.name;
    (figures[name] ||= []).push([cell.dataset.value, cell.textContent]);
  }
  const root = page.documentElement;
  const shown = [...page.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width > 0);
  return {
    figures, title: page.title, heading: page.querySelector("h1").textContent,
    width: root.clientWidth, content: root.scrollWidth,
    outside: shown.flatMap((svg) => [...svg.querySelectorAll("text")])
      .filter((text) => text.getBoundingClientRect().right > root.clientWidth + 1).map((text) => text.textContent),
    beyond_box: shown.flatMap((svg) => [...svg.querySelectorAll(".box")]).flatMap((box) =>
      [...box.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().right >
        box.querySelector("rect").getBoundingClientRect().right + 1).map((text) => text.textContent)),
    charts: shown.map((svg) => [svg.querySelector("title").textContent, svg.querySelectorAll(".main circle").length]),
    stops: page.querySelectorAll('.strips li[tabindex="0"]').length,
    notes: [...page.querySelectorAll(".chart.wide .strips li")].map((note) => note.textContent),
  };
};
addEventListener("load", () => {
  const found = Object.fromEntries([...document.querySelectorAll("iframe")].map((frame) => [frame.id, look(frame)]));
  document.getElementById("found").textContent = JSON.stringify(found).replaceAll("<", "\\u003c");
});
</script>"#;

const WINDOWS: [&str; 2] = ["wide", "phone"];

#[test]
fn the_browser_shows_the_runs_figures() {
    let Some(found) = found() else { return };
    let run = samples::cpu();
    for window in WINDOWS {
        let page = &found[format!("cpu {window}")];
        assert_eq!(page["heading"].as_str().map(spaced).as_deref(), Some(HEADLINE));
        let figures = &page["figures"];
        assert_eq!(values(figures, "facts users_at_saturation"), [4.0]);
        assert_eq!(values(figures, "facts throughput_max_per_s"), [run.verdict.throughput_max_per_s]);
        assert_eq!(text(figures, "throughput-table throughput_per_s", 3), "34 120");
        for (name, expected) in expected(&run) {
            assert_eq!(values(figures, &name), expected, "{name}");
        }
    }
}

const HEADLINE: &str =
    "Saturates at 4 users, 34 120 requests a second, limited by the CPU of nginx worker (pid 812).";

#[test]
fn every_page_fits_a_window_and_a_phone() {
    let Some(found) = found() else { return };
    for (name, _) in samples::all() {
        for window in WINDOWS {
            let page = &found[format!("{name} {window}")];
            assert!(page["width"].as_u64().is_some_and(|width| width > 300), "{name} {window}");
            assert_eq!(page["content"], page["width"], "{name} scrolls sideways on {window}");
            assert_eq!(page["outside"], json!([]), "{name} {window}");
            assert_eq!(page["beyond_box"], json!([]), "{name} {window}");
        }
    }
}

#[test]
fn every_step_is_drawn_and_said() {
    let Some(found) = found() else { return };
    let steps = samples::long().steps.len();
    let titles =
        ["Throughput against users", "Response time against users", "Utilisation of resources against users"];
    let [wide, phone] = WINDOWS.map(|window| &found[format!("long {window}")]);
    let charts = [("Who talks to whom", 0)].into_iter().chain(titles.map(|title| (title, steps)));
    assert_eq!(wide["charts"], json!(charts.collect::<Vec<_>>()));
    assert_eq!(phone["charts"], wide["charts"]);
    // With script a chart is one stop of the Tab key; without, each step is. Both papers count.
    assert_eq!(wide["stops"], json!(2 * titles.len()));
    assert_eq!(phone["stops"], json!(2 * titles.len() * steps));
    let notes = wide["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(notes.len(), titles.len() * steps);
    assert_eq!(notes[7].as_str().map(spaced).as_deref(), Some("40 users: 8 384 req/s (8 300–8 468)"));
}

#[test]
fn the_threads_that_had_the_time_are_in_a_table() {
    let Some(found) = found() else { return };
    for window in WINDOWS {
        let figures = &found[format!("long {window}")]["figures"];
        assert_eq!(values(figures, "threads-table threads.threads"), [1.0, 4.0, 16.0]);
        assert_eq!(text(figures, "threads-table threads.share", 0), "91 %");
        // What is in no entry has a row of its own.
        assert_eq!(values(figures, "threads-table threads.share").len(), 4);
        assert_eq!(found[format!("cpu {window}")]["figures"]["threads-table threads.share"], Value::Null);
    }
}

#[test]
fn hostile_names_do_nothing() {
    let Some(found) = found() else { return };
    for window in WINDOWS {
        let title = found[format!("hostile {window}")]["title"].as_str().unwrap_or_default();
        assert!(title.starts_with("http://127.0.0.1/</title>"), "{title}");
    }
}

/// The figures of the tables of steps, column by column, by table and name.
fn expected(run: &Run) -> BTreeMap<String, Vec<f64>> {
    let column = |figure: fn(&analysis::run::Step) -> f64| run.steps.iter().map(figure).collect::<Vec<_>>();
    BTreeMap::from([
        ("steps-table users".into(), column(|step| step.users.into())),
        ("steps-table completed".into(), column(|step| step.completed as f64)),
        ("steps-table little_gap".into(), column(|step| step.little_gap)),
        ("throughput-table throughput_per_s".into(), column(|step| step.throughput_per_s)),
        ("response-time-table response_time_us.mean".into(), column(|step| step.response_time_us.mean)),
        (
            "response-time-table response_time_us.p95".into(),
            column(|step| step.response_time_us.p95.unwrap_or_default()),
        ),
        ("response-time-table response_time_us.p99".into(), column(|step| step.response_time_us.p99)),
        ("response-time-table response_time_us.max".into(), column(|step| step.response_time_us.max)),
        ("demands-table demand_us".into(), run.laws.demands.iter().map(|demand| demand.demand_us).collect()),
    ])
}

fn values(figures: &Value, name: &str) -> Vec<f64> {
    let cells = figures[name].as_array().map(Vec::as_slice).unwrap_or_default();
    cells.iter().filter_map(|cell| cell[0].as_str()?.parse().ok()).collect()
}

fn text(figures: &Value, name: &str, index: usize) -> String {
    spaced(figures[name][index][1].as_str().unwrap_or_default())
}

fn spaced(text: &str) -> String {
    text.replace('\u{202f}', " ")
}

/// What the browser found on the pages of all samples; `None` where there is no browser.
fn found() -> Option<&'static Value> {
    static FOUND: OnceLock<Option<Value>> = OnceLock::new();
    FOUND.get_or_init(open).as_ref()
}

fn open() -> Option<Value> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("harness.html");
    let frames: String = samples::all().iter().map(|(name, run)| frames(name, run)).collect();
    fs::write(&file, format!("<!doctype html><meta charset=utf-8>{frames}{HARNESS}")).expect("written");
    let (dom, log) = browse(directory.path(), &file)?;
    // A phone's frame has no script: its one script is refused, and nothing else is said.
    let said: Vec<_> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    let refused = said.iter().filter(|line| line.contains("Blocked script execution")).count();
    assert_eq!((refused, said.len()), (samples::all().len(), samples::all().len()), "{said:#?}");
    let (_, found) =
        dom.split_once(r#"<script id="found" type="application/json">"#).expect("the harness ran");
    let (found, _) = found.split_once("</script>").expect("the harness ended");
    Some(serde_json::from_str(found).expect("the harness wrote JSON"))
}

fn frames(name: &str, run: &Run) -> String {
    let page = html(run).expect("renders").replace('&', "&amp;").replace('"', "&quot;");
    FRAMES.replace("NAME", name).replace("PAGE", &page)
}
