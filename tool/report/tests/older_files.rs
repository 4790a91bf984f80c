//! Run files written before findings and identities were typed: they open, and show what they always showed.
#![allow(clippy::unwrap_used)]

use analysis::run::{Cause, Identity};
use report::{TerminalOptions, csv, html, json, parse, terminal};
use serde_json::{Value, json as value};

const FILES: [(&str, &str); 5] = [
    ("cpu", include_str!("golden/untyped/cpu.json")),
    ("generator", include_str!("golden/untyped/generator.json")),
    ("load", include_str!("golden/untyped/load.json")),
    ("long", include_str!("golden/untyped/long.json")),
    ("unbounded", include_str!("golden/untyped/unbounded.json")),
];

#[test]
fn an_older_file_reads_as_it_always_did() {
    let options = TerminalOptions {
        files: vec!["report.html".into(), "run.json".into()],
        ..TerminalOptions::default()
    };
    for (name, text) in FILES {
        insta::assert_snapshot!(name, terminal(&parse(text).unwrap(), &options));
    }
}

#[test]
fn an_older_file_renders_in_every_format() {
    for (name, text) in FILES {
        let run = parse(text).unwrap();
        assert!(csv(&run).lines().count() > run.steps.len(), "{name}");
        assert!(html(&run).unwrap().contains("</html>"), "{name}");
    }
}

/// Its words are what a newer file holds as well.
#[test]
fn an_older_file_written_again_says_the_same() {
    for (name, text) in FILES {
        let again = json(&parse(text).unwrap()).unwrap();
        let words = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            [
                "/verdict/bottleneck/holder",
                "/verdict/bottleneck/evidence",
                "/verdict/inconclusive",
                "/verdict/next",
            ]
            .map(|place| value.pointer(place).cloned())
        };
        assert_eq!(words(&again), words(text), "{name}");
        assert_eq!(parse(&again).unwrap(), parse(text).unwrap(), "{name}");
    }
}

/// The host was known by its name alone.
#[test]
fn the_host_of_an_older_file_is_the_host() {
    let mut written: Value = serde_json::from_str(FILES[0].1).unwrap();
    written["steps"][0]["resources"][0]["holder"] = "host".into();
    let run = parse(&written.to_string()).unwrap();
    assert_eq!(run.steps[0].resources[0].identity, Some(Identity::Host { on: None }));
    assert_eq!(parse(&json(&run).unwrap()).unwrap(), run);
}

/// The reason was a sentence of its own before reasons were typed.
#[test]
fn a_reason_given_as_text_shows_its_sentence() {
    for (kind, cause, sentence) in [
        (
            "not-observed",
            value!({ "kind": "not-watched", "why": "the target is on another host" }),
            "The server's processes were not seen: the target is on another host.",
        ),
        (
            "not-observed",
            value!({ "kind": "database-trouble", "database": "postgres://shop", "trouble": "psql is gone" }),
            "The locks of the database postgres://shop were not watched throughout: psql is gone.",
        ),
    ] {
        let mut written: Value = serde_json::from_str(FILES[0].1).unwrap();
        written["warnings"] = value!([{ "kind": kind, "text": sentence, "cause": cause }]);
        let run = parse(&written.to_string()).unwrap();
        assert_eq!(run.warnings[0].cause, Cause::Told { text: sentence.to_owned() });
        let shown = terminal(&run, &TerminalOptions::default());
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(sentence), "{shown}");
        assert_eq!(parse(&json(&run).unwrap()).unwrap(), run, "{cause}");
    }
}
