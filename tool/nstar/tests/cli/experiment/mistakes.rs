//! Mistakes in an experiment, which end it before anything starts.

use std::fs;

use super::{SLEEPER, experiment, replaced};
use crate::common::support::Place;

/// What is replaced in [`SLEEPER`], by what, and what is then said of it.
const MISTAKES: &[(&str, &str, [&str; 2])] = &[
    ("\"${sleep}\"]", "\"${slep}\"]", ["mine.toml:34", "unknown name `slep`, did you mean `sleep`?"]),
    ("users = 2", "user = 2", ["mine.toml", "needs `users`"]),
    (
        "users = 2",
        "users = 2\nscenario = \"[[request]]\\npath = '/${slep}'\"",
        ["line 2 of it: unknown", "`slep`, did you mean `sleep`?"],
    ),
    (
        "ports = [\"web\"]",
        "port = [\"web\"]",
        ["mine.toml:3", "unknown key `port` in [[process]], did you mean `ports`?"],
    ),
    ("sleep = [1, 20]", "sleep = []", ["mine.toml:9", "a list of at least one value"]),
    ("sleep = [1, 20]", "", ["mine.toml:8", "a table of lists, such as workers = [1, 2, 4]"]),
    ("sleep = [1, 20]", "sleep = [1]", ["mine.toml:8", "one alone is compared with nothing"]),
    ("sleep = [1, 20]", "sleep = [1, 1]", ["mine.toml:8", "1 is there twice"]),
    ("users = 2", "users = [2, 1]", ["mine.toml:3", "an ascending list"]),
    (
        "title",
        "titel",
        ["mine.toml:2", "needs `title`: what it shows, in one line; it has `titel`, did you mean `title`?"],
    ),
    ("command = ", "comand = ", ["mine.toml:34", "it has `comand`, did you mean `command`?"]),
    ("\"python3\"", "\"no-such-python\"", ["mine.toml:34", "`no-such-python` not found beside nstar"]),
    ("\"python3\"", "\"./no-such-python\"", ["mine.toml:34", "/no-such-python is not there"]),
    (
        "print(\"ready ${log}\"",
        "print(\"ready ${lgo}\"",
        ["mine.toml:28", "unknown name `lgo`, did you mean `log`? Expected one of"],
    ),
    (
        "ports = [\"web\"]",
        "ports = [\"web\"]\nenvironment = { A = \"${sleep}\", B = \"${slep}\" }",
        ["mine.toml:36", "unknown name `slep`"],
    ),
    (
        "ports = [\"web\"]",
        "ports = [\"web\"]\nprocessors = 100",
        ["mine.toml:34", "`processors` must be at most"],
    ),
    ("ports = [\"web\"]", "ports = [\"web\"]\nprocessors = [0, 1000]", ["mine.toml:34", "may use"]),
    ("ports = [\"web\"]", "ports = [\"web\"]\nprocessors = \"half\"", ["mine.toml:34", "how many"]),
    ("connections = \"per-request\"", "each = \"sleper\"", ["mine.toml:3", "did you mean `sleeper`?"]),
    ("name = \"sleeper\"", "name = \"sleeper\"\ncount = \"1000\"", ["mine.toml:3", "from 1 to 64"]),
    ("time = \"1s\"", "confirm = \"no\"", ["mine.toml:3", "`confirm` must be true or false"]),
    ("time = \"1s\"", "confrim = false", ["mine.toml:3", "did you mean `confirm`?"]),
    ("time = \"1s\"", "baseline = \"2O\"", ["mine.toml:3", "unknown variant `2O`, did you mean `20`?"]),
    ("log = \"\"", "lgo = \"\"\nlog = \"\"", ["mine.toml:6", "`lgo` must be used"]),
    ("\"${sleep}\"]", "\"5\"]", ["mine.toml:9", "nothing names `${sleep}`"]),
    (
        "ports = [\"web\"]",
        "ports = [\"web\"]\nwhen = { sleep = [\"1\", \"2O\"] }",
        ["mine.toml:3", "unknown value `2O`, did you mean `20`?"],
    ),
];

#[test]
fn mistakes_in_an_experiment_are_told_with_file_line_and_the_nearest_name() {
    let place = Place::beside_others();
    for (from, to, words) in MISTAKES {
        let outcome = experiment(&place, &replaced(&[(*from, *to)]), &[]).run().exits(2);
        words.iter().fold(outcome, |outcome, word| outcome.complains(word));
        assert!(!place.path("mine.json").exists());
    }
}

/// That is told before anything is made.
#[test]
fn processors_of_the_generator_are_not_for_programs() {
    let place = Place::beside_others();
    let status = fs::read_to_string("/proc/self/status").expect("its status");
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).expect("its processors");
    let cores: u32 = mask.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum();
    if cores == 1 {
        return eprintln!("SKIPPED: one processor is for both");
    }
    let all = format!("ports = [\"web\"]\nprocessors = {cores}");
    let outcome = experiment(&place, &replaced(&[("ports = [\"web\"]", &all)]), &[]).run();
    outcome.exits(2).complains("mine.toml:34").complains("--share-cores");
}

#[test]
fn values_that_cannot_be_set_are_told() {
    let place = Place::beside_others();
    experiment(&place, SLEEPER, &["--set", "lgo=x"])
        .run()
        .exits(2)
        .complains("--set: unknown value `lgo`, did you mean `log`?");
    experiment(&place, SLEEPER, &["--set", "sleep=3"]).run().exits(2).complains("varies it");
}

#[test]
fn data_beyond_what_is_allowed_and_files_that_are_not_there_are_told() {
    let place = Place::beside_others();
    let large =
        replaced(&[("[[work]]", "[[data]]\nfolder = \"data\"\nfiles = 60\nsize = \"2 GB\"\n\n[[work]]")]);
    experiment(&place, &large, &[]).run().exits(2).complains("few enough for");
    place
        .nstar(["experiment", "no-such.toml"])
        .run()
        .exits(2)
        .complains("cannot read the experiment no-such.toml");
}
