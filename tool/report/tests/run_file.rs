//! The run file: what is written is what is read, and the schema describes it.

use report::{ReadError, json, parse, schema};
use serde_json::Value;

mod samples;

const SHIPPED: &str = include_str!("../../../docs/run.schema.json");

#[test]
fn what_is_written_is_read_back() {
    for (name, run) in samples::all() {
        let text = json(&run).unwrap();
        assert_eq!(parse(&text).unwrap(), run, "{name}");
    }
}

#[test]
fn what_kinds_of_request_cost_is_written_with_the_names_of_tiers() {
    let run = samples::mix_with_costs();
    let text = json(&run).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.pointer("/requests/1/demands/1/holder"), Some(&Value::from("db (pid 900)")));
    assert_eq!(value.pointer("/requests/1/demands/1/demand_us"), Some(&Value::from(640.0)));
    assert_eq!(parse(&text).unwrap(), run);
}

#[test]
fn a_file_of_this_version_stays_readable() {
    let text = include_str!("golden/run.json");
    let run = parse(text).unwrap();
    assert_eq!(run, samples::cpu());
    assert_eq!(json(&run).unwrap(), text);
}

#[test]
fn a_file_from_before_fields_were_added_stays_readable() {
    let added = ["\"sent_bytes_per_s\"", "\"errors_per_s\""];
    let text = include_str!("golden/run.json");
    let before: Vec<_> = text.lines().filter(|line| !added.iter().any(|name| line.contains(name))).collect();
    assert!(before.len() < text.lines().count());
    assert_eq!(parse(&before.join("\n")).unwrap(), samples::cpu());
}

/// It has none, and gets none when it is written again.
#[test]
fn a_file_from_before_p95_was_kept_stays_readable() {
    let text = include_str!("golden/run.json");
    let older: String =
        text.lines().filter(|line| !line.contains("\"p95\"")).map(|line| format!("{line}\n")).collect();
    let run = parse(&older).unwrap();
    assert!(run.steps.iter().all(|step| step.response_time_us.p95.is_none()));
    assert_eq!(json(&run).unwrap(), older);
    assert!(samples::cpu().steps.iter().all(|step| step.response_time_us.p95.is_some()));
}

#[test]
fn the_shipped_schema_is_up_to_date() {
    assert!(SHIPPED == schema(), "run: cargo run -p report --example schema > docs/run.schema.json");
}

#[test]
fn runs_satisfy_the_schema() {
    let validator = jsonschema::validator_for(&serde_json::from_str(SHIPPED).unwrap()).unwrap();
    for (name, run) in samples::all() {
        let value: Value = serde_json::from_str(&json(&run).unwrap()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0], "{name}");
    }
}

#[test]
fn the_schema_refuses_what_is_not_a_run() {
    let validator = jsonschema::validator_for(&serde_json::from_str(SHIPPED).unwrap()).unwrap();
    for (pointer, wrong) in [
        ("/schema", Value::from("nstar.run/2")),
        ("/steps/0/users", Value::from(-1)),
        ("/verdict/bottleneck/kind", Value::from("weather")),
        ("/verdict/throughput_max_ci_per_s", Value::from(vec![1.0])),
    ] {
        assert!(!validator.is_valid(&changed(pointer, wrong)), "{pointer}");
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let without = |pointer: &str, field: &str| {
        let mut value = changed("/seed", Value::from(1));
        value.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field);
        value.to_string()
    };
    let cases = [
        ("cut short", json(&samples::cpu()).unwrap()[..200].to_owned()),
        ("not an object", "[1, 2]".into()),
        ("no schema", without("", "schema")),
        ("another version", changed("/schema", Value::from("nstar.run/9")).to_string()),
        ("missing field", without("/steps/2", "throughput_per_s")),
        ("wrong type", changed("/steps/2/response_time_us/p99", Value::from("fast")).to_string()),
        ("missing at the top", without("", "verdict")),
    ];
    // Lines and columns move with every sample.
    let said = cases.map(|(name, text)| {
        let error = parse(&text).unwrap_err().to_string();
        format!("{name}: {}", error.split(" at line").next().unwrap_or_default())
    });
    insta::assert_snapshot!("read_errors", said.join("\n"));
}

#[test]
fn errors_are_told_apart_by_type() {
    assert!(matches!(parse(""), Err(ReadError::NotJson { .. })));
    assert!(matches!(parse("{}"), Err(ReadError::NotARun)));
    assert!(matches!(parse(r#"{"schema": 3}"#), Err(ReadError::Version { .. })));
    assert!(matches!(parse(r#"{"schema": "nstar.run/1"}"#), Err(ReadError::Field { .. })));
}

fn changed(pointer: &str, to: Value) -> Value {
    let mut value: Value = serde_json::to_value(samples::cpu()).expect("a run is JSON");
    *value.pointer_mut(pointer).expect("a path of the run file") = to;
    value
}
