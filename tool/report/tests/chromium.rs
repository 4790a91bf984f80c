//! Pages in a real browser: their figures, their width on a phone, their console, and how they look without colour.
//!
//! Needs `chromium` on the PATH. Without it the test says so and passes, except in CI (`CI=true`).

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use analysis::contrast::GateVerdict;
use analysis::run::Run;
use report::html;
use serde_json::{Value, json};

mod browser;
mod samples;

use browser::browse;
use samples::sides::{course, hostile, hostile_course, slower};

/// Frames a page as a wide window with script and as a phone without.
const FRAMES: &str = r#"
<iframe id="NAME wide" width="1280" height="900" srcdoc="PAGE"></iframe>
<iframe id="NAME phone" width="360" height="700" sandbox="allow-same-origin" srcdoc="PAGE"></iframe>"#;

/// Writes down what is in each frame.
const HARNESS: &str = r#"<script id="found" type="application/json"></script>
<script>
const dashes = (line) => getComputedStyle(line).strokeDasharray;
const lookAtFlame = (flame) => {
  const parts = [...flame.querySelectorAll("g")];
  const rect = (part) => part.querySelector("rect");
  const drawn = (of) => [...new Set(of.map((part) => dashes(rect(part))))];
  const has = (part) => part.querySelector("text");
  return {
    parts: parts.length, stops: flame.tabIndex, name: flame.querySelector("svg > title").textContent,
    kernel: drawn(parts.filter((part) => part.matches(".kernel"))),
    program: drawn(parts.filter((part) => !part.matches(".kernel"))),
    unnamed: parts.filter((part) => !part.querySelector("title").textContent).length,
    unlabelled: parts.filter((part) => Number(rect(part).getAttribute("width")) >= 28 && !has(part)).length,
    beyond_part: parts.filter((part) => has(part) && has(part).getBoundingClientRect().right >
      rect(part).getBoundingClientRect().right + 1).map((part) => part.textContent),
  };
};
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
    outside: shown.filter((svg) => !svg.closest(".scroll")).flatMap((svg) => [...svg.querySelectorAll("text")])
      .filter((text) => text.getBoundingClientRect().right > root.clientWidth + 1).map((text) => text.textContent),
    beyond_box: shown.flatMap((svg) => [...svg.querySelectorAll(".box")]).flatMap((box) =>
      [...box.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().right >
        box.querySelector("rect").getBoundingClientRect().right + 1).map((text) => text.textContent)),
    charts: shown.map((svg) => [svg.querySelector("title").textContent, svg.querySelectorAll(".main circle").length]),
    wide_boxes: [...page.querySelectorAll(".scroll")]
      .filter((box) => box.getBoundingClientRect().right > root.clientWidth + 1).length,
    fetched: frame.contentWindow.performance.getEntriesByType("resource").map((entry) => entry.name),
    flames: [...page.querySelectorAll(".flame")].map(lookAtFlame),
    searches: [...page.querySelectorAll(".search")].map((search) => !search.hidden),
    curves: shown.filter((svg) => svg.querySelector(".curve")).map((svg) => [...svg.querySelectorAll(".curve")]
      .map((curve) => [curve.querySelector("text").textContent, dashes(curve.querySelector("polyline"))])),
    standings: [...page.querySelectorAll(".standing")].map((standing) => standing.textContent),
    marked: [...page.querySelectorAll("tr.marked")].map((row) => row.textContent.includes("◆")),
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
    let frames = found.as_object().expect("an object");
    assert_eq!(frames.len(), WINDOWS.len() * (samples::all().len() + 4));
    for (frame, page) in frames {
        assert!(page["width"].as_u64().is_some_and(|width| width > 300), "{frame}");
        assert_eq!(page["content"], page["width"], "{frame} scrolls sideways");
        assert_eq!(page["wide_boxes"], json!(0), "{frame}");
        assert_eq!(page["outside"], json!([]), "{frame}");
        assert_eq!(page["beyond_box"], json!([]), "{frame}");
    }
}

#[test]
fn no_page_fetches_anything() {
    let Some(found) = found() else { return };
    for (frame, page) in found.as_object().expect("an object") {
        assert_eq!(page["fetched"], json!([]), "{frame}");
    }
}

/// What belongs to the kernel is dashed, every part has a name, and one that has room shows it.
#[test]
fn flame_graphs_are_read_without_colour() {
    let Some(found) = found() else { return };
    for window in WINDOWS {
        let page = &found[format!("profile {window}")];
        let flames = page["flames"].as_array().expect("a list");
        let parts: Vec<_> = flames.iter().filter_map(|flame| flame["parts"].as_u64()).collect();
        assert_eq!(parts, [11, 65, 5, 3]);
        for flame in flames {
            assert!(flame["name"].as_str().is_some_and(|name| !name.is_empty()), "{flame}");
            assert!(flame["program"] == json!(["none"]) || flame["program"] == json!([]), "{flame}");
            assert!(!flame["kernel"].to_string().contains("none"), "{flame}");
            assert_eq!((&flame["unnamed"], &flame["unlabelled"]), (&json!(0), &json!(0)), "{flame}");
            assert_eq!((&flame["beyond_part"], &flame["stops"]), (&json!([]), &json!(0)), "{flame}");
        }
        // A search that does nothing is not shown.
        let has_script = window == "wide";
        assert_eq!(page["searches"], json!([has_script, has_script]));
    }
}

#[test]
fn two_sides_are_told_apart_without_colour() {
    let Some(found) = found() else { return };
    let gates = slower().gates;
    let verdicts: Vec<_> = gates.iter().map(|gate| verdict(gate.verdict)).collect();
    assert_eq!(verdicts[..2], ["breached", "met"]);
    for window in WINDOWS {
        let page = &found[format!("before_after {window}")];
        let charts = page["curves"].as_array().expect("a list");
        assert_eq!(charts.len(), 2);
        for chart in charts {
            assert_eq!((&chart[0][0], &chart[1][0]), (&json!("before"), &json!("after")));
            assert!(chart[0][1] != chart[1][1], "both are drawn alike: {chart}");
        }
        assert_eq!(page["standings"], json!(verdicts));
        assert_marked(page);
    }
}

fn verdict(of: GateVerdict) -> &'static str {
    match of {
        GateVerdict::Met => "met",
        GateVerdict::Breached => "breached",
        GateVerdict::NotDecided => "not decided",
    }
}

/// Levels are dashed, the runs a line with dots. The first run after a change is marked by a sign.
#[test]
fn a_history_shows_its_changes_without_colour() {
    let Some(found) = found() else { return };
    for window in WINDOWS {
        let page = &found[format!("history {window}")];
        let charts = page["curves"].as_array().expect("a list");
        assert!(charts.len() >= 2, "{charts:?}");
        for chart in charts {
            let (runs, levels) = chart.as_array().and_then(|curves| curves.split_last()).expect("curves");
            assert_eq!(runs[1], json!("none"));
            assert!(!levels.is_empty() && levels.iter().all(|level| level[1] != runs[1]), "{chart}");
        }
        assert_eq!(charts[0].as_array().map(Vec::len), Some(3), "two levels of throughput, and the runs");
        assert_eq!(page["charts"][0][1], json!(16), "a dot for each run");
        assert_marked(page);
    }
}

fn assert_marked(page: &Value) {
    let marked = page["marked"].as_array().expect("a list");
    assert!(!marked.is_empty() && marked.iter().all(|mark| *mark == json!(true)), "{marked:?}");
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
        for (name, expected) in [
            ("hostile", "http://127.0.0.1/</title>"),
            ("profile", "http://127.0.0.1:8080/report.pdf"),
            ("before_after_hostile", "Before and after – nstar"),
            ("history_hostile", "History – nstar"),
        ] {
            let title = found[format!("{name} {window}")]["title"].as_str().unwrap_or_default();
            assert!(title.starts_with(expected), "{name} {window}: {title}");
        }
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

/// What the browser found on all pages; `None` where there is no browser.
fn found() -> Option<&'static Value> {
    static FOUND: OnceLock<Option<Value>> = OnceLock::new();
    FOUND.get_or_init(open).as_ref()
}

fn open() -> Option<Value> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("harness.html");
    let frames: String = pages().iter().map(|(name, page)| frames(name, page)).collect();
    fs::write(&file, format!("<!doctype html><meta charset=utf-8>{frames}{HARNESS}")).expect("written");
    let (dom, log) = browse(directory.path(), &file)?;
    // A phone's frame has no script: the one script of a run's page is refused, and nothing else is said.
    let said: Vec<_> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    let refused = said.iter().filter(|line| line.contains("Blocked script execution")).count();
    assert_eq!((refused, said.len()), (samples::all().len(), samples::all().len()), "{said:#?}");
    let (_, found) =
        dom.split_once(r#"<script id="found" type="application/json">"#).expect("the harness ran");
    let (found, _) = found.split_once("</script>").expect("the harness ended");
    Some(serde_json::from_str(found).expect("the harness wrote JSON"))
}

/// The pages of runs, of two sides, and of runs in the order of time.
fn pages() -> Vec<(&'static str, String)> {
    let runs = samples::all().into_iter().map(|(name, run)| (name, html(&run).expect("renders")));
    let sides = [("before_after", slower()), ("before_after_hostile", hostile())];
    let sides = sides.map(|(name, sides)| (name, report::contrast::html(&sides).expect("renders")));
    let histories = [("history", course()), ("history_hostile", hostile_course())];
    let histories = histories.map(|(name, of)| (name, report::history::html(&of).expect("renders")));
    runs.chain(sides).chain(histories).collect()
}

fn frames(name: &str, page: &str) -> String {
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    FRAMES.replace("NAME", name).replace("PAGE", &page)
}
