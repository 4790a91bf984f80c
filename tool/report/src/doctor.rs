//! Shows what on a host would spoil a measurement.

use analysis::doctor::{Certainty, Check, Examined, Fault};
use analysis::run::{AgentTrouble, HostName};
use schemars::JsonSchema;
use serde::Serialize;

use crate::sentences::doctor;
use crate::terminal::{TerminalOptions, plain};

/// A fault before a sweep, with its host unless that is this one, in ASCII: for stderr, which may be any terminal or a log.
#[must_use]
pub fn in_short(on: &HostName, fault: &Fault) -> String {
    let told = doctor::fault(fault);
    let (host, there) = match on {
        Some(host) => (format!("{host}: "), format!(" on {host}")),
        None => (String::new(), String::new()),
    };
    plain(&format!("{host}{} {} Mend{there}: {}", told.is, told.does, told.mend))
}

/// Why an agent found less than it was asked for, or told nothing: a part of a sentence, in ASCII.
#[must_use]
pub fn agent(host: &str, trouble: &AgentTrouble) -> String {
    plain(&doctor::agent(host, trouble))
}

/// What was found on hosts as text for a terminal, ending in a newline: each with its host, unless that is this one, what it is,
/// what it does to the figures, and what mends it; then what could not be looked at. `server` says whose processes were looked
/// at, if any were.
#[must_use]
pub fn terminal(hosts: &[&Examined], server: Option<&str>, options: &TerminalOptions) -> String {
    crate::terminal::doctor::text(hosts, server, options)
}

/// The version of what [`json`] writes.
const SCHEMA: &str = "nstar.doctor/1";

/// What was found on hosts, for programs.
#[derive(Debug, Serialize, JsonSchema)]
struct Document<'a> {
    /// The version of this form.
    schema: &'static str,
    /// What would spoil a measurement, or may, the surest first.
    findings: Vec<Finding<'a>>,
    /// What could not be looked at for want of a right.
    not_looked_at: Vec<NotLookedAt<'a>>,
}

/// Something that would spoil a measurement, or may.
#[derive(Debug, Serialize, JsonSchema)]
struct Finding<'a> {
    /// The name of the host; null for the one that nstar runs on.
    on: &'a HostName,
    /// How sure it is that it changes the figures.
    certainty: Certainty,
    /// Its kind and its numbers.
    fault: &'a Fault,
    /// What it is, in words.
    is: String,
    /// What it does to the figures, in words.
    does: &'static str,
    /// A command that mends it; or, where none does, what to do.
    mend: String,
}

/// A check that could not be made.
#[derive(Debug, Serialize, JsonSchema)]
struct NotLookedAt<'a> {
    /// The name of the host; null for the one that nstar runs on.
    on: &'a HostName,
    /// The check.
    check: Check,
    /// The number of the kernel's error, if the kernel gave one.
    os_error: Option<i32>,
}

/// What was found on hosts as JSON, ending in a newline: each fault with its kind, its numbers and its words, the surest first,
/// and the checks that could not be made. A host without a name is this one.
///
/// # Errors
/// Only where serde refuses a value, which no field of [`Fault`] gives cause for.
pub fn json(hosts: &[&Examined]) -> Result<String, serde_json::Error> {
    let found = hosts.iter().flat_map(|host| host.faults.iter().map(move |fault| finding(&host.on, fault)));
    let mut findings: Vec<Finding<'_>> = found.collect();
    findings.sort_by_key(|finding| finding.certainty);
    let unmade = hosts.iter().flat_map(|host| host.facts.unmade.iter().map(move |of| (&host.on, of)));
    let not_looked_at =
        unmade.map(|(on, of)| NotLookedAt { on, check: of.check, os_error: of.os_error }).collect();
    let document = Document { schema: SCHEMA, findings, not_looked_at };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

/// The JSON Schema of what [`json`] writes, as shipped in `docs/doctor.schema.json`.
#[must_use]
pub fn schema() -> String {
    crate::json::schema_of::<Document<'static>>(SCHEMA)
}

fn finding<'a>(on: &'a HostName, fault: &'a Fault) -> Finding<'a> {
    let doctor::Told { is, does, mend } = doctor::fault(fault);
    Finding { on, certainty: fault.certainty(), fault, is: plain(&is), does, mend: plain(&mend) }
}

#[cfg(test)]
mod tests {
    use analysis::counters::Role;
    use analysis::doctor::{Facts, Subject, Unmade};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_fault_of_another_host_is_told_with_its_name_and_where_to_mend_it() {
        let fault = Fault::ListenQueue { limit: 64 };
        let said = in_short(&Some("web".to_owned()), &fault);
        assert!(said.starts_with("web: Listen queues hold 64 "), "{said}");
        assert!(said.contains(" Mend on web: sysctl -w net.core.somaxconn=4096"), "{said}");
        let here = in_short(&None, &fault);
        assert!(here.starts_with("Listen queues hold 64 ") && here.contains(" Mend: sysctl"), "{here}");
    }

    #[test]
    fn for_programs_each_fault_has_its_kind_and_its_numbers() {
        let server = Subject::Server { name: "app".into(), pid: 7, role: Role::Server };
        let queue = Box::new(Fault::SynQueue { limit: 9 });
        let inside = Fault::Within { name: "app".into(), pid: 7, fault: queue };
        let files = |of| Fault::OpenFiles { of, processes: 1, limit: 64_000 };
        let faults = vec![files(server), files(Subject::Generator), inside];
        let unmade = vec![Unmade { check: Check::TimeWait, os_error: Some(1) }];
        let facts = Facts { unmade, ..Facts::default() };
        let web = Examined { on: Some("web".to_owned()), faults, facts };
        let here = Examined { faults: vec![Fault::Steal { share: 0.5 }], ..Examined::default() };
        let told: Value = serde_json::from_str(&json(&[&web, &here]).expect("JSON")).expect("JSON");
        assert_eq!(told["schema"], "nstar.doctor/1");
        let [steal, of_server, of_generator, inside] = [0, 1, 2, 3].map(|at: usize| &told["findings"][at]);
        assert_eq!(steal["fault"], json!({ "kind": "steal", "share": 0.5 }), "the surest first");
        assert_eq!((&steal["on"], &steal["certainty"]), (&Value::Null, &json!("sure")));
        let process = json!({ "name": "app", "pid": 7, "role": "server" });
        let limit = |of: Value| json!({ "kind": "open-files", "of": of, "processes": 1, "limit": 64_000 });
        assert_eq!((&of_server["fault"], &of_server["on"]), (&limit(process), &json!("web")));
        assert_eq!(of_generator["fault"], limit(Value::Null), "nothing for the generator");
        let queue = json!({ "kind": "syn-queue", "limit": 9 });
        assert_eq!(inside["fault"], json!({ "kind": "within", "name": "app", "pid": 7, "fault": queue }));
        assert!(of_server["is"].as_str().is_some_and(|is| is.is_ascii() && is.contains("64")), "{of_server}");
        let not_looked_at = json!([{ "on": "web", "check": "time-wait", "os_error": 1 }]);
        assert_eq!(told["not_looked_at"], not_looked_at);
    }

    #[test]
    fn what_programs_are_told_satisfies_its_schema_which_is_up_to_date() {
        let shipped = include_str!("../../../docs/doctor.schema.json");
        assert!(shipped == schema(), "run: cargo run -p report --example schema -- doctor");
        let unmade = [Some(1), None].map(|os_error| Unmade { check: Check::Clock, os_error }).into();
        let facts = Facts { unmade, ..Facts::default() };
        let here = Examined { faults: doctor::tests::every_fault(), facts, ..Examined::default() };
        let web = Examined { on: Some("web".to_owned()), ..here.clone() };
        let told: Value = serde_json::from_str(&json(&[&here, &web]).expect("JSON")).expect("JSON");
        let schema: Value = serde_json::from_str(shipped).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors: Vec<_> = validator.iter_errors(&told).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0]);
        let mut odd = told;
        odd["findings"][0]["fault"]["kind"] = "weather".into();
        assert!(!validator.is_valid(&odd), "kinds are told");
    }
}
