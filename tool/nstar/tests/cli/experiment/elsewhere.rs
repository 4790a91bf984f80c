//! Experiments whose load is made, and whose programs are observed, by agents.

use super::*;
use crate::common::support::tool_program;

fn agent() -> String {
    format!("{} agent", tool_program().display())
}

/// The experiment with lines before its first section.
fn with_lines(lines: &str) -> String {
    replaced(&[("rounds = 1\n", &format!("rounds = 1\n{lines}\n"))])
}

/// The run files of the trials.
pub(crate) fn runs(place: &Place) -> Vec<Value> {
    let files = fs::read_dir(place.path("mine.runs")).expect("a folder").flatten().map(|entry| entry.path());
    let runs = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    runs.map(|path| serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")).collect()
}

/// The number of generators of each run, by its load and by its step.
pub(crate) fn generators(run: &Value) -> (usize, usize) {
    let count = |of: &Value| of["generators"].as_array().map_or(0, Vec::len);
    (count(&run["load"]), count(&run["steps"][0]))
}

#[test]
fn an_experiment_names_its_generators_and_observers_and_flags_take_their_place() {
    let place = Place::beside_sleepers();
    let named = format!(
        "generators = [\"here\", \"{}\"]\nobserve = [\"${{tool}} agent\"]\nvalues.tool = '{}'\n",
        agent(),
        tool_program().display()
    );
    let text =
        with_lines(&named).replacen("[values]\n", "", 1).replacen("log = \"\"", "values.log = \"\"", 1);
    let outcome = experiment(&place, &text, &[]).run().has_not_panicked();
    println!("{outcome}");
    let all = runs(&place);
    assert_eq!(all.len(), 2, "{outcome}");
    for run in &all {
        assert_eq!(generators(run), (2, 2), "{}", run["load"]);
        let users: u64 = run["steps"][0]["generators"]
            .as_array()
            .expect("generators")
            .iter()
            .filter_map(|one| one["users"].as_u64())
            .sum();
        assert_eq!(users, 2, "{}", run["steps"][0]["generators"]);
        // It sees what nstar sees itself, and says so: it was there.
        assert!(run["warnings"].to_string().contains("redundant"), "{}", run["warnings"]);
    }
    assert!(left_running(&place).is_empty());

    let flags = ["--generator", &agent(), "--lost-generator", "end"];
    let outcome = experiment(&place, &text, &flags).run().has_not_panicked();
    println!("{outcome}");
    assert!(runs(&place).iter().all(|run| generators(run) == (1, 1)), "{outcome}");
}

#[test]
fn what_cannot_be_a_generator_or_an_observer_is_told_with_its_line() {
    let place = Place::beside_others();
    let wrong = |lines: &str| experiment(&place, &with_lines(lines), &[]).run().exits(2);
    wrong("generators = [\"ssh://-x\"]")
        .complains("mine.toml:5")
        .complains("`generators`")
        .complains("ssh://");
    wrong("observe = [\"\"]").complains("mine.toml:5").complains("`observe`").complains("empty");
    wrong("observe = [\"ssh://${nobody}\"]").complains("unknown name `nobody`");
    wrong("generators = \"here\"").complains("`generators`");
    let flags = |flags: &[&str]| experiment(&place, SLEEPER, flags).run().exits(2);
    flags(&["--sudo"]).complains("--sudo goes with");
    flags(&["--lost-generator", "end"]).complains("--generator");
    // One that cannot be started is told with what it said, for each variant that is left out.
    let lost = experiment(&place, SLEEPER, &["--observe", "no-such-program x"]).run().exits(1);
    lost.complains("--observe: cannot run `no-such-program`");
}
