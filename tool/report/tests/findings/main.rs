//! One finding of each kind: every one is written, read back and put into words, and none is forgotten here.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod doubts;
mod evidence;
mod left_out;
mod published;
#[path = "../samples/mod.rs"]
mod samples;

use std::collections::BTreeSet;

use analysis::run::*;
use report::{json, parse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json as value};

/// A run with every kind of evidence, doubt and warning.
fn everything() -> Run {
    let mut run = samples::cpu();
    run.verdict.bottleneck.findings = evidence::all();
    run.verdict.doubts = doubts::doubts();
    run.warnings = doubts::causes().into_iter().map(Warning::from).collect();
    run
}

#[test]
fn every_finding_is_read_back_as_it_was_written() {
    let run = everything();
    let text = json(&run).unwrap();
    assert_eq!(parse(&text).unwrap(), run);
    let validator = jsonschema::validator_for(&serde_json::from_str(&report::schema()).unwrap()).unwrap();
    let errors: Vec<_> =
        validator.iter_errors(&serde_json::from_str(&text).unwrap()).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    for next in doubts::next_limits() {
        let mut run = samples::cpu();
        run.verdict.next_limit = Some(next);
        assert_eq!(parse(&json(&run).unwrap()).unwrap(), run);
    }
}

#[test]
fn every_finding_has_its_words() {
    let written: Value = serde_json::from_str(&json(&everything()).unwrap()).unwrap();
    let list = |place: &str| written.pointer(place).unwrap().as_array().unwrap().clone();
    let warnings = list("/warnings").into_iter().map(|warning| warning["text"].clone());
    let words = [list("/verdict/bottleneck/evidence"), list("/verdict/inconclusive"), warnings.collect()];
    let lines: Vec<&str> = words.iter().flatten().map(|words| words.as_str().unwrap()).collect();
    insta::assert_snapshot!("words", lines.join("\n"));
}

/// The data beside the words is a contract: programs read it.
#[test]
fn every_finding_keeps_its_fields() {
    let written: Value = serde_json::from_str(&json(&everything()).unwrap()).unwrap();
    let list = |place: &str| written.pointer(place).unwrap().as_array().unwrap().clone();
    let causes = list("/warnings").into_iter().map(|warning| warning["cause"].clone());
    let data = [list("/verdict/bottleneck/findings"), list("/verdict/doubts"), causes.collect()];
    let lines: Vec<String> = data.iter().flatten().map(Value::to_string).collect();
    insta::assert_snapshot!("fields", lines.join("\n"));
}

#[test]
fn no_kind_of_finding_is_forgotten() {
    assert_complete("kind", &evidence::all());
    assert_complete("kind", &doubts::doubts());
    assert_complete("kind", &doubts::causes());
    assert_complete("kind", &doubts::server_unwatched());
    assert_complete("kind", &doubts::database_troubles());
    assert_complete("kind", &doubts::next_limits());
    assert_complete("of", &evidence::busy());
    assert_complete("kind", &published::agreement());
    assert_complete("kind", &published::seen());
    assert_complete("kind", &published::requirements());
    assert_complete("kind", &left_out::causes());
}

/// Fails unless the values have every kind that their type knows, by the schema of the type.
fn assert_complete<T: JsonSchema + Serialize>(tag: &str, values: &[T]) {
    let schema = schemars::schema_for!(T).to_value();
    let known = kinds(&schema, &schema, tag);
    let tag_of = |one: &T| value!(one)[tag].as_str().unwrap().to_owned();
    let here: BTreeSet<String> = values.iter().map(tag_of).collect();
    assert_eq!(here, known, "add what is missing to the findings of this test");
}

/// The tags of an enum: of its variants, or of the enums that it holds.
fn kinds(schema: &Value, root: &Value, tag: &str) -> BTreeSet<String> {
    if let Some(kind) = schema["properties"][tag]["const"].as_str() {
        return BTreeSet::from([kind.to_owned()]);
    }
    let referred = schema["$ref"].as_str().and_then(|path| root.pointer(path.trim_start_matches('#')));
    let variants = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    variants.chain(referred).flat_map(|variant| kinds(variant, root, tag)).collect()
}

/// A file of a newer version: what is known is read, and the rest is told in the file's own words.
#[test]
fn unknown_findings_of_a_newer_version_are_told_in_its_words() {
    let mut written: Value = serde_json::from_str(&json(&everything()).unwrap()).unwrap();
    let mut change = |place: &str, to: Value| *written.pointer_mut(place).expect(place) = to;
    let newer = value!({ "kind": "thermal-throttling", "pauses": { "longest_us": 12.5, "of": [1, 2] } });
    for (data, words) in [
        ("/verdict/bottleneck/findings/3", "/verdict/bottleneck/evidence/3"),
        ("/verdict/doubts/2", "/verdict/inconclusive/2"),
        ("/warnings/4/cause", "/warnings/4/text"),
        ("/verdict/next_limit", "/verdict/next"),
    ] {
        change(data, newer.clone());
        change(words, format!("A newer version says so at {words}.").into());
    }
    change("/warnings/4/kind", "thermal-throttling".into());
    change("/verdict/bottleneck/kind", "thermal-throttling".into());
    change("/verdict/bottleneck/holder", "the heap of java (pid 7)".into());
    written["verdict"]["bottleneck"]["identity"] = value!({ "type": "heap", "pid": 7 });

    let run = parse(&written.to_string()).unwrap();
    let known = everything();
    assert_eq!(run.verdict.bottleneck.findings[2], known.verdict.bottleneck.findings[2]);
    assert_eq!(run.verdict.doubts[3], known.verdict.doubts[3]);
    let told = |place: &str| format!("A newer version says so at {place}.");
    let said = OutcomeEvidence::Told { text: told("/verdict/bottleneck/evidence/3") };
    assert_eq!(run.verdict.bottleneck.findings[3], said.into());
    assert_eq!(run.verdict.doubts[2], Doubt::Told { text: told("/verdict/inconclusive/2") });
    assert_eq!(run.warnings[4].cause, Cause::Told { text: told("/warnings/4/text") });
    assert_eq!(run.warnings[4].kind, WarningKind::Other);
    assert_eq!(run.verdict.next_limit, Some(NextLimit::Told { text: told("/verdict/next") }));
    assert_eq!(run.verdict.bottleneck.kind, ResourceKind::Unknown);
    assert_eq!(run.verdict.bottleneck.identity, Identity::named("the heap of java (pid 7)"));

    let shown = report::html(&run).unwrap();
    assert!(shown.contains("limited by the heap of java (pid 7)"), "{shown}");
    assert_eq!(parse(&json(&run).unwrap()).unwrap(), run, "what was not known stays told when written again");
}
