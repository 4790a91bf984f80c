//! Gates as JUnit XML, which CI systems show as tests.

use analysis::contrast::{Contrast, GateFinding, GateVerdict};

use crate::sentences::contrasts;
use crate::words::is_hidden;

/// The gates of a contrast, ending in a newline: a breached one is a failure, one that is not decided an error.
pub(crate) fn gates(of: &Contrast) -> String {
    let count = |verdict| of.gates.iter().filter(|gate| gate.verdict == verdict).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"nstar compare\" tests=\"{}\" \
         failures=\"{}\" errors=\"{}\">\n",
        of.gates.len(),
        count(GateVerdict::Breached),
        count(GateVerdict::NotDecided)
    );
    of.gates.iter().for_each(|gate| text += &case(gate));
    text + "  </testsuite>\n</testsuites>\n"
}

fn case(gate: &GateFinding) -> String {
    let names = [gate.work.as_str(), gate.variant.as_str(), gate.gate.text.as_str()];
    let name = names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ");
    let (name, said) = (escaped(&name), escaped(&contrasts::gate(gate)));
    let inside = match gate.verdict {
        GateVerdict::Met => format!("<system-out>{said}</system-out>"),
        GateVerdict::Breached => format!("<failure message=\"{said}\"/>"),
        GateVerdict::NotDecided => format!("<error message=\"{said}\"/>"),
    };
    format!("    <testcase classname=\"nstar.compare\" name=\"{name}\">{inside}</testcase>\n")
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
