//! Gates as JUnit XML, which CI systems show as tests.

use analysis::contrast::{Contrast, GateFinding, GateVerdict};

use crate::gates::HeldGate;
use crate::sentences::contrasts;
use crate::words::is_hidden;

/// The gates of a contrast, ending in a newline: a breached one is a failure, one that is not decided an error.
pub(crate) fn of_contrast(of: &Contrast) -> String {
    suite("nstar compare", "nstar.compare", of.gates.iter().map(Test::of_change).collect())
}

/// The same of gates on the figures of runs.
pub(crate) fn of_runs(held: &[HeldGate]) -> String {
    suite("nstar", "nstar.run", held.iter().map(Test::of_figure).collect())
}

/// A gate as a test.
struct Test {
    name: String,
    verdict: GateVerdict,
    said: String,
}

impl Test {
    fn of_change(gate: &GateFinding) -> Self {
        let name = joined([&gate.work, &gate.variant, &gate.gate.text]);
        Self { name, verdict: gate.verdict, said: contrasts::gate(gate) }
    }

    fn of_figure(held: &HeldGate) -> Self {
        let name = joined([&held.file, &held.text]);
        Self { name, verdict: held.verdict, said: contrasts::gate_of_run(held) }
    }

    fn element(&self, class: &str) -> String {
        let (name, said) = (escaped(&self.name), escaped(&self.said));
        let inside = match self.verdict {
            GateVerdict::Met => format!("<system-out>{said}</system-out>"),
            GateVerdict::Breached => format!("<failure message=\"{said}\"/>"),
            GateVerdict::NotDecided => format!("<error message=\"{said}\"/>"),
        };
        format!("    <testcase classname=\"{class}\" name=\"{name}\">{inside}</testcase>\n")
    }
}

fn joined<const N: usize>(names: [&String; N]) -> String {
    let names = names.into_iter().map(String::as_str).filter(|name| !name.is_empty());
    names.collect::<Vec<_>>().join(", ")
}

fn suite(name: &str, class: &str, tests: Vec<Test>) -> String {
    let count = |verdict| tests.iter().filter(|test| test.verdict == verdict).count();
    let head = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{name}\" tests=\"{}\" \
         failures=\"{}\" errors=\"{}\">\n",
        tests.len(),
        count(GateVerdict::Breached),
        count(GateVerdict::NotDecided)
    );
    let elements: String = tests.iter().map(|test| test.element(class)).collect();
    head + &elements + "  </testsuite>\n</testsuites>\n"
}

/// Text as XML 1.0 can hold it.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            c if is_hidden(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                safe.push(char::REPLACEMENT_CHARACTER)
            }
            c => safe.push(c),
        }
    }
    safe
}
