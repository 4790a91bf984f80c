//! The page in a real browser: its figures, its width on a phone, its console.
//!
//! Needs `chromium` on the PATH. Without it the test says so and passes, except in CI (`CI=true`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use model::run::Run;
use report::html;
use serde_json::{Value, json};

mod samples;

/// Frames the page as a wide window with script and as a phone without, and writes down what it finds.
const HARNESS: &str = r#"<!doctype html><meta charset="utf-8"><title>harness</title>
<iframe id="wide" width="1280" height="900" srcdoc="PAGE"></iframe>
<iframe id="phone" width="360" height="700" sandbox="allow-same-origin" srcdoc="PAGE"></iframe>
<script id="found" type="application/json"></script>
<script>
const look = (id) => {
  const page = document.getElementById(id).contentDocument;
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
    charts: shown.map((svg) => [svg.querySelector("title").textContent, svg.querySelectorAll(".main circle").length]),
    stops: page.querySelectorAll('.strips li[tabindex="0"]').length,
    notes: [...page.querySelectorAll(".chart.wide .strips li")].map((note) => note.textContent),
  };
};
addEventListener("load", () => {
  const found = { wide: look("wide"), phone: look("phone") };
  document.getElementById("found").textContent = JSON.stringify(found).replaceAll("<", "\\u003c");
});
</script>"#;

#[test]
fn the_browser_shows_the_runs_figures() {
    let Some(found) = open(&samples::cpu()) else { return };
    let run = samples::cpu();
    for window in ["wide", "phone"] {
        let figures = &found[window]["figures"];
        assert_eq!(values(figures, "facts users_at_saturation"), [4.0]);
        assert_eq!(values(figures, "facts throughput_max_per_s"), [run.verdict.throughput_max_per_s]);
        assert_eq!(text(figures, "throughput-table throughput_per_s", 3), "34 120");
        for (name, expected) in expected(&run) {
            assert_eq!(values(figures, &name), expected, "{name}");
        }
    }
    assert_eq!(found["wide"]["heading"], headline());
}

fn headline() -> String {
    "Saturates at 4 users, 34\u{202f}120 requests a second, limited by the CPU of nginx worker (pid 812)."
        .into()
}

#[test]
fn charts_fit_a_window_and_a_phone() {
    for run in [samples::long(), samples::extreme(), samples::hostile(), samples::load()] {
        let Some(found) = open(&run) else { return };
        for window in ["wide", "phone"] {
            let found = &found[window];
            assert_eq!(found["content"], found["width"], "{window} scrolls sideways: {}", run.target);
            assert_eq!(found["outside"], json!([]), "{window}: {}", run.target);
        }
    }
}

#[test]
fn every_step_is_drawn_and_said() {
    let run = samples::long();
    let Some(found) = open(&run) else { return };
    let steps = run.steps.len();
    let titles =
        ["Throughput against users", "Response time against users", "Utilisation of resources against users"];
    assert_eq!(found["wide"]["charts"], json!(titles.map(|title| (title, steps))));
    assert_eq!(found["phone"]["charts"], json!(titles.map(|title| (title, steps))));
    // With script a chart is one stop of the Tab key; without, each step is.
    assert_eq!(found["wide"]["stops"], json!(2 * titles.len()));
    assert_eq!(found["phone"]["stops"], json!(2 * titles.len() * steps));
    let notes = found["wide"]["notes"].as_array().expect("a list");
    assert_eq!(notes.len(), titles.len() * steps);
    assert_eq!(notes[7], json!("40 users: 8\u{202f}384 req/s (8\u{202f}300–8\u{202f}468)"));
}

#[test]
fn hostile_names_do_nothing() {
    let Some(found) = open(&samples::hostile()) else { return };
    for window in ["wide", "phone"] {
        let title = found[window]["title"].as_str().unwrap_or_default();
        assert!(title.starts_with("http://127.0.0.1/</title>"), "{title}");
    }
}

/// The figures of the tables of steps, column by column, by table and name.
fn expected(run: &Run) -> BTreeMap<String, Vec<f64>> {
    let column = |figure: fn(&model::run::Step) -> f64| run.steps.iter().map(figure).collect::<Vec<_>>();
    BTreeMap::from([
        ("steps-table users".into(), column(|step| step.users.into())),
        ("steps-table completed".into(), column(|step| step.completed as f64)),
        ("steps-table little_gap".into(), column(|step| step.little_gap)),
        ("throughput-table throughput_per_s".into(), column(|step| step.throughput_per_s)),
        ("response-time-table response_time_us.mean".into(), column(|step| step.response_time_us.mean)),
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
    figures[name][index][1].as_str().unwrap_or_default().replace('\u{202f}', " ")
}

/// What the browser found on the run's page; `None` where there is no browser.
fn open(run: &Run) -> Option<Value> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let page = html(run).expect("renders").replace('&', "&amp;").replace('"', "&quot;");
    let file = directory.path().join("harness.html");
    fs::write(&file, HARNESS.replace("PAGE", &page)).expect("written");
    let (dom, log) = browse(directory.path(), &file)?;
    // The phone's frame has no script: its one script is refused, and nothing else is said.
    let said: Vec<_> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    let refused = said.iter().filter(|line| line.contains("Blocked script execution")).count();
    assert_eq!((refused, said.len()), (1, 1), "{said:#?}");
    let (_, found) =
        dom.split_once(r#"<script id="found" type="application/json">"#).expect("the harness ran");
    let (found, _) = found.split_once("</script>").expect("the harness ended");
    Some(serde_json::from_str(found).expect("the harness wrote JSON"))
}

/// The document after loading `file`, and the browser's log.
fn browse(directory: &Path, file: &Path) -> Option<(String, String)> {
    let (dom, log) = (directory.join("dom"), directory.join("log"));
    let child = Command::new("timeout")
        .args([
            "--kill-after=5",
            "120",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
        ])
        .args([
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&dom).expect("created"))
        .stderr(fs::File::create(&log).expect("created"))
        .status()
        .expect("timeout(1) runs");
    let log = String::from_utf8_lossy(&fs::read(log).expect("read")).into_owned();
    if child.code() == Some(127) {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "chromium is missing: apt-get install chromium"
        );
        eprintln!("SKIPPED: chromium is missing, so the page was not opened: apt-get install chromium");
        return None;
    }
    assert!(child.success(), "chromium: {child}: {log}");
    Some((fs::read_to_string(dom).expect("read"), log))
}
