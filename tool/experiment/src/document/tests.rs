//! What documents of experiments say, and what they may not.

use proptest::prelude::*;

use super::*;
use crate::{
    definition::Users,
    resolve::{Places, TrialSetup},
};

const EXAMPLE: &str = r#"
title = "A server behind another"
rounds = 3
[values]
flags = ["--queue", "${queue}"]
queue = 8
[axis]
workers = [4, 1]
place = ["near", "far"]
[[data]]
folder = "data-${number}"
of = "back"
files = 2
size = "1 KB"
[[text]]
path = "front.conf"
text = "listen ${port.front}; upstream ${address.back}:${port.back.1}; $${kept}"
[[process]]
name = "back"
command = ["back", "${flags}", "--port", "${port.back}", "--number", "${number}"]
count = "2"
ports = ["back"]
[[process]]
name = "front"
command = ["front", "${folder}/front.conf", "--workers=${workers}"]
when = { place = "near" }
ports = ["front"]
ready = { http = "http://127.0.0.1:${port.front}/" }
[[prepare]]
command = ["fill", "${urls}"]
[[work]]
url = "http://127.0.0.1:${port.back}/"
each = "back"
users = 3
"#;

fn example() -> Experiment {
    read(Path::new("dir/mine.toml"), EXAMPLE, &Disk).expect("an experiment")
}

fn places() -> Places {
    let port = |name: &str, number: u32, port: u16| ((name.to_owned(), number), port);
    let ports = [port("front", 0, 80), port("back", 0, 81), port("back", 1, 82)];
    Places { folder: "/f".into(), ports: ports.into_iter().collect(), ..Places::default() }
}

#[test]
fn every_combination_is_a_variant_in_the_order_of_the_file() {
    let experiment = example();
    let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["4, near", "4, far", "1, near", "1, far"]);
    assert_eq!((experiment.axis.as_str(), experiment.rounds), ("workers, place", 3));
    assert_eq!(experiment.works[0].users, Users::Fixed("3".into()));
}

#[test]
fn the_ends_of_a_sweep_may_vary() {
    let users = |text: &str| {
        let text = EXAMPLE.replace("users = 3", &format!("users = {text}"));
        let experiment = read(Path::new("mine.toml"), &text, &Disk).map_err(|error| error.to_string())?;
        let of = |variant| TrialSetup { experiment: &experiment, variant, work: &experiment.works[0] };
        Ok(experiment.variants.iter().map(|one| of(one).users_max(&places()).expect("users")).collect())
    };
    // Four workers twice, and one twice.
    assert_eq!(users(r#"[1, "${workers}0"]"#), Ok::<Vec<u32>, String>(vec![40, 40, 10, 10]));
    assert_eq!(users(r#"["1", 2, "5${workers}"]"#), Ok(vec![54, 54, 51, 51]));
    let falls = users(r#"[2, "${workers}"]"#).expect_err("one worker");
    assert!(falls.contains("`users` must be a number, a range [1, 256], or an ascending list"), "{falls}");
    let unknown = users(r#"[2, "${worker}"]"#).expect_err("no such name");
    assert!(unknown.contains("did you mean `workers`?"), "{unknown}");
}

#[test]
fn names_are_filled_in_for_each_instance() {
    let experiment = example();
    let setup =
        TrialSetup { experiment: &experiment, variant: &experiment.variants[0], work: &experiment.works[0] };
    let places = places();
    let instances = setup.instances(&places).expect("instances");
    let words: Vec<Vec<String>> = instances
        .iter()
        .map(|one| {
            let values = setup.values_of(one.process, one.number, &places);
            setup.words(&one.process.command, &values).expect("words")
        })
        .collect();
    assert_eq!(words[0], ["back", "--queue", "8", "--port", "81", "--number", "0"]);
    assert_eq!(words[1][4..], ["82", "--number", "1"]);
    assert_eq!(words[2], ["front", "/f/front.conf", "--workers=4"]);
    let texts = setup.texts(&places).expect("texts");
    assert_eq!(texts[0].1, "listen 80; upstream 127.0.0.1:82; ${kept}");
    let urls = setup.urls(&experiment.works[0].target, &places).expect("URLs");
    assert_eq!(urls, ["http://127.0.0.1:81/", "http://127.0.0.1:82/"]);
    assert_eq!(setup.users_max(&places), Ok(6));
    let folders: Vec<_> = setup.data(&places).expect("data").into_iter().map(|set| set.folder).collect();
    assert_eq!(folders, [PathBuf::from("/f/data-0"), "/f/data-1".into()]);
}

#[test]
fn a_process_starts_only_where_its_values_hold() {
    let experiment = example();
    let setup =
        TrialSetup { experiment: &experiment, variant: &experiment.variants[1], work: &experiment.works[0] };
    let names: Vec<_> =
        setup.instances(&places()).expect("instances").iter().map(|one| one.process.name.clone()).collect();
    assert_eq!(names, ["back", "back"]);
}

#[test]
fn a_claim_names_one_kind_of_bottleneck_or_several() {
    let claimed = |kinds: &str| {
        let text = format!("{EXAMPLE}[[claim]]\ntext = \"It waits.\"\nbottleneck = {kinds}\n");
        let read = read(Path::new("mine.toml"), &text, &Disk);
        read.map(|experiment| serde_json::to_value(&experiment.claims[0].requires).expect("JSON"))
    };
    let [one, several] = [r#""disk""#, r#"["disk", "memory"]"#].map(|kinds| claimed(kinds).expect("a claim"));
    assert_eq!((&one["resource"], one.get("or")), (&"disk".into(), None));
    assert_eq!((&several["resource"], &several["or"][0]), (&"disk".into(), &"memory".into()));
    let none = claimed("[]").expect_err("an empty list").to_string();
    assert!(none.contains("a kind of bottleneck, or a list of them"), "{none}");
}

#[test]
fn an_unknown_name_is_told_with_its_line_and_the_nearest() {
    let error = read(Path::new("mine.toml"), &EXAMPLE.replace("--workers=${workers}", "${worker}"), &Disk);
    let told = error.expect_err("a typo").to_string();
    assert!(told.starts_with("mine.toml:25: unknown name `worker`, did you mean `workers`?"), "{told}");
    let error =
        read(Path::new("mine.toml"), &EXAMPLE.replace("place = \"near\" }", "plaec = \"near\" }"), &Disk);
    assert!(error.expect_err("a typo").to_string().contains("did you mean `place`?"));
    let error = read(Path::new("mine.toml"), &EXAMPLE.replace("rounds =", "ruonds ="), &Disk);
    let told = error.expect_err("a typo").to_string();
    assert_eq!(told.matches("`axis`").count(), 1, "each key once: {told}");
}

/// Whoever adds a line at the end of a file adds it to the last section.
#[test]
fn a_key_of_the_whole_file_below_a_section_is_told_where_it_belongs() {
    let error = read(Path::new("mine.toml"), &format!("{EXAMPLE}time = \"10m\"\n"), &Disk);
    let told = error.expect_err("below [[work]]").to_string();
    assert!(told.contains("`time` in [[work]]: it belongs at the top of the file"), "{told}");
}

#[test]
fn what_would_mean_nothing_is_refused() {
    for (from, to, word) in [
        ("users = 3", "users = 3\nweights = { a = 1 }", "left out without a `scenario`"),
        ("users = 3", "users = 3\ndatabase_password_file = \"x\"", "left out without `watch_database`"),
        ("rounds = 3", "rounds = 3\nvaried = \"place\"", "left out where there are no [[variant]]"),
        ("folder = \"data-${number}\"", "folder = \"data\"", "one with ${number} in its name"),
        ("path = \"front.conf\"", "path = \"${plaec}.conf\"", "did you mean `place`?"),
        ("http = \"http://", "http = \"", "a URL, not"),
        (
            "ready = { http = \"http://127.0.0.1:${port.front}/\" }",
            "ready = { line = \"${port.fornt}\" }",
            "did you mean `port.front`?",
        ),
        ("command = [\"fill\", \"${urls}\"]", "users = 4", "`url`, where a load goes"),
        ("users = 3", "users = 3\ntimeout = \"400000000000y\"", "a length of time up to a year"),
        (
            "users = 3",
            "users = 3\n[[claim]]\ntext = \"x\"\nproven = true\nholder = \"y\"",
            "left out without `bottleneck`",
        ),
        (
            "users = 3",
            "users = 3\n[[claim]]\ntext = \"x\"\nproven = true\nover = \"works\"",
            "left out without `trend`",
        ),
    ] {
        assert!(EXAMPLE.contains(from), "{from}");
        let told = read(Path::new("mine.toml"), &EXAMPLE.replace(from, to), &Disk);
        let told = told.expect_err(to).to_string();
        assert!(told.contains(word), "{to}: {told}");
    }
}

/// `x` with the variant `y z`, and `x y` with `z`: the second run file replaced the first.
#[test]
fn workloads_and_variants_that_make_the_same_file_name_are_refused() {
    let text = r#"
        title = "x"
        [[variant]]
        name = "b c"
        values = { n = 1 }
        [[variant]]
        name = "c"
        values = { n = 2 }
        [[work]]
        name = "a"
        url = "http://127.0.0.1:1/${n}"
        users = 1
        [[work]]
        name = "a b"
        url = "http://127.0.0.1:1/${n}"
        users = 1
    "#;
    let told = read(Path::new("mine.toml"), text, &Disk).expect_err("one name").to_string();
    assert!(told.contains("`c` it gives the same file name"), "{told}");
}

/// Publications were read by other means, which told no nearest name, and some mistakes without their line.
#[test]
fn mistakes_in_a_publication_are_told_with_their_line_and_the_nearest_name() {
    let told = |lines: &str| {
        let figures = "\n[[published]]\ntitle = \"A\"\nhardware = \"B\"\nunit = \"files/s\"\n";
        let text = format!("{EXAMPLE}{figures}{lines}\n");
        let line = text.trim_end().lines().count();
        let read = read(Path::new("mine.toml"), &text, &Disk).map_err(|error| error.to_string());
        read.map(|experiment| experiment.published)
            .map_err(|told| (told.clone(), told.contains(&format!(":{line}: "))))
    };
    for (lines, word) in [
        ("figurs = []", "did you mean `figures`?"),
        ("variant = \"no such\"", "no such"),
        ("work = \"no such\"", "no such"),
        ("bottleneck = \"disc\"", "did you mean `disk`?"),
        ("points = [{ users = 1, per_s = 2 }]", "`ms`"),
        ("points = [{ users = 0, per_s = 2, ms = 3 }]", "`users`"),
        ("figures = [{ variant = \"a\", value = \"fast\" }]", "`value`"),
        ("year = \"long ago\"", "`year`"),
    ] {
        let (told, at_its_line) = told(lines).expect_err(lines);
        assert!(told.contains(word) && at_its_line, "{lines}: {told}");
    }
    let published =
        told("figures = [{ variant = \"a\", value = 70 }]\npoints = [{ users = 1, per_s = 2, ms = 0.5 }]");
    let published = published.expect("a publication");
    assert_eq!((published[0].figures[0].value, published[0].points[0].ms), (70.0, 0.5));
}

proptest! {
    /// Whatever is cut out of an experiment or put into it: an experiment or an error, and no panic.
    #[test]
    fn a_damaged_file_is_an_error(from in 0usize..900, length in 0usize..40, put in "[\\[\\]{}$\"=a-z0-9 \n]{0,6}") {
        let mut text = EXAMPLE.to_owned();
        let from = from.min(text.len());
        let to = (from + length).min(text.len());
        text.replace_range(from..to, &put);
        let _ = read(Path::new("mine.toml"), &text, &Disk);
    }
}
