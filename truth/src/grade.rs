//! What nstar said of a case, held against what is true.

use serde_json::Value;

use crate::{Trouble, case::Case};

/// From this probability on, or from medium confidence in words, a verdict is said to be sure.
const SURE: f64 = 0.8;
/// What a case calls the generator's host.
const GENERATOR: &str = "generator";
/// Kinds that are inconclusive by definition: the maximum of a server that never saturates, or that the generator is too weak
/// for, is not known.
const OPEN: [&str; 2] = ["none", "generator"];
/// The doubts that say that the server or the machine changed.
const CHANGES: [&str; 4] = ["changed", "dip", "jump", "maximum-unknown"];
/// How far the throughput may be from the truth.
const THROUGHPUT_TOLERANCE: f64 = 0.03;

/// What nstar said.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Kind of the bottleneck.
    pub kind: String,
    /// Its holder, without the number of the process.
    pub holder: String,
    /// The host of the holder, where that is another than the generator's.
    pub on: Option<String>,
    /// Whether another host than the generator's was observed.
    pub behind: bool,
    /// Whether the holder is on the generator's host, and the other one was observed.
    pub astray: bool,
    /// Maximum throughput, requests a second.
    pub throughput: f64,
    /// N*, if one was found.
    pub users: Option<u64>,
    /// The interval of N*, if one was found.
    pub users_ci: Option<[u64; 2]>,
    /// How sure it was, in its own words or as a probability.
    pub confidence: String,
    /// The same as a probability, 0 to 1; `None` where it is in words.
    pub probability: Option<f64>,
    /// Whether it counts as sure.
    pub sure: bool,
    /// Whether it said that the run is inconclusive.
    pub inconclusive: bool,
    /// The kinds between which it is undecided, where it has no other doubt.
    pub between: Vec<String>,
    /// Whether it said that the server or the machine changed meanwhile.
    pub changes: bool,
    /// How long the run took in all, seconds.
    pub elapsed_s: f64,
}

/// How a verdict compares with the truth, as far as kind and holder go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Kind and holder are right.
    Right,
    /// Nothing was claimed.
    Inconclusive,
    /// Something else was claimed.
    Wrong,
    /// Something else was claimed, and said to be sure.
    SurelyWrong,
}

impl Grade {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Inconclusive => "inconclusive",
            Self::Wrong => "wrong",
            Self::SurelyWrong => "wrong, sure",
        }
    }
}

impl Said {
    /// Reads it from a run file.
    ///
    /// # Errors
    /// Where the file lacks the verdict, or how long it took.
    pub fn read(run: &Value) -> Result<Self, Trouble> {
        let verdict = &run["verdict"];
        let bottleneck = &verdict["bottleneck"];
        let lacks = || Trouble::Case("the run file holds no verdict".into());
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(lacks);
        let end = |place: usize| verdict["users_at_saturation_ci"][place].as_u64();
        let holder = text(&bottleneck["holder"])?;
        let probability = ["confidence", "probability"].iter().find_map(|key| bottleneck[*key].as_f64());
        let (confidence, sure) = confidence(probability, bottleneck);
        let behind = sees_another_host(run);
        let mut doubts = verdict["doubts"].as_array().into_iter().flatten();
        Ok(Self {
            kind: text(&bottleneck["kind"])?,
            holder: holder.split(" (pid").next().unwrap_or_default().to_owned(),
            on: host_of(&bottleneck["identity"]).map(str::to_owned),
            behind,
            astray: behind && is_here(&bottleneck["identity"]),
            throughput: verdict["throughput_max_per_s"].as_f64().ok_or_else(lacks)?,
            users: verdict["users_at_saturation"].as_u64(),
            users_ci: end(0).zip(end(1)).map(|(low, high)| [low, high]),
            confidence,
            probability,
            sure,
            inconclusive: verdict["inconclusive"].as_array().is_some_and(|doubts| !doubts.is_empty()),
            between: undecided_between(&verdict["doubts"]),
            changes: doubts.any(says_that_it_changed),
            elapsed_s: run["elapsed_s"].as_f64().ok_or_else(lacks)?,
        })
    }

    /// Holds kind and holder against the truth.
    pub fn grade(&self, case: &Case) -> Grade {
        // A server whose capacity changes has no one answer: to say that it changes is right, and to find nothing is not.
        if case.kind.holds("changes") && self.changes {
            return Grade::Right;
        }
        let is_named = |holder: &String| self.holder.starts_with(holder);
        let holder = case.holder.is_empty() || (self.is_placed(case) && case.holder.iter().any(is_named));
        if holder && self.leaves_open(case) {
            return Grade::Right;
        }
        let decides = !self.inconclusive || OPEN.contains(&self.kind.as_str());
        match case.kind.holds(&self.kind) && holder && decides {
            true => Grade::Right,
            false if self.inconclusive || self.kind == "unknown" => Grade::Inconclusive,
            false => self.wrong(),
        }
    }

    /// Whether the holder is on the right host.
    fn is_placed(&self, case: &Case) -> bool {
        match &case.on {
            Some(host) => self.on.as_deref().unwrap_or(GENERATOR) == host,
            None => !self.astray,
        }
    }

    /// Whether it named a bottleneck. That there is none is never said for certain: with more users there may be one.
    pub fn claims(&self) -> bool {
        !self.inconclusive && self.kind != "unknown"
    }

    /// Whether it is undecided between what is true and what shows alike.
    fn leaves_open(&self, case: &Case) -> bool {
        let is_named = |wanted: &str| self.between.iter().any(|kind| kind == wanted);
        let is_true_named = self.between.iter().any(|kind| case.kind.holds(kind));
        is_true_named && case.alike.as_deref().is_some_and(is_named)
    }

    fn wrong(&self) -> Grade {
        if self.sure { Grade::SurelyWrong } else { Grade::Wrong }
    }

    /// Whether the throughput is right.
    pub fn has_throughput(&self, truth: f64) -> bool {
        (self.throughput / truth - 1.0).abs() <= THROUGHPUT_TOLERANCE
    }

    /// Whether the interval of N* holds the truth.
    pub fn has_users(&self, truth: u32) -> bool {
        self.users_ci.is_some_and(|[low, high]| (low..=high).contains(&truth.into()))
    }
}

/// The kinds of the two explanations of a doubt that says that neither is probable enough, where it is the only doubt.
fn undecided_between(doubts: &Value) -> Vec<String> {
    let Some([doubt]) = doubts.as_array().map(Vec::as_slice) else { return Vec::new() };
    if doubt["kind"] != "undecided" {
        return Vec::new();
    }
    let kinds = ["best", "next"].map(|one| doubt[one]["kind"].as_str().map(str::to_owned));
    kinds.into_iter().flatten().collect()
}

/// Whether a doubt says that the server or the machine changed. A jump or dip that responses held back explain is no change.
fn says_that_it_changed(doubt: &Value) -> bool {
    doubt["held_back"].is_null() && CHANGES.iter().any(|kind| doubt["kind"] == *kind)
}

/// Whether any resource is on another host than the generator's.
fn sees_another_host(run: &Value) -> bool {
    let steps = run["steps"].as_array().into_iter().flatten();
    let resources = steps.filter_map(|step| step["resources"].as_array()).flatten();
    resources.map(|resource| &resource["identity"]).any(is_elsewhere)
}

fn is_elsewhere(identity: &Value) -> bool {
    host_of(identity).is_some()
}

/// The host, where it is another than the generator's.
fn host_of(identity: &Value) -> Option<&str> {
    identity["on"].as_str().or_else(|| identity["of"]["on"].as_str())
}

/// Whether it is known and on the generator's host. Of a listen queue the port alone is known.
fn is_here(identity: &Value) -> bool {
    identity.is_object() && identity["type"] != "listen-queue" && !is_elsewhere(identity)
}

/// The confidence as said, and whether that is sure: a probability where the file holds one, otherwise a word.
fn confidence(probability: Option<f64>, bottleneck: &Value) -> (String, bool) {
    match (probability, bottleneck["confidence"].as_str()) {
        (Some(probability), _) => (format!("{:.0} %", probability * 100.0), probability >= SURE),
        (None, Some(word)) => (word.to_owned(), ["high", "medium"].contains(&word)),
        (None, None) => ("?".to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(kind: &str, holder: &str) -> Case {
        let text = format!(
            "name = 'x'\ntiers = ['rust lock=10ms']\nkind = '{kind}'\nholder = ['{holder}']\nshows = ''\n"
        );
        toml::from_str(&text).expect("a case")
    }

    /// A verdict with doubts of these kinds.
    fn said(kind: &str, confidence: Value, doubts: &[&str]) -> Said {
        said_with(kind, confidence, doubts.iter().map(|kind| json!({ "kind": kind })).collect())
    }

    fn said_with(kind: &str, confidence: Value, doubts: Vec<Value>) -> Said {
        let sentences: Vec<_> = doubts.iter().map(|_| "In words.").collect();
        let run = json!({ "elapsed_s": 20.0, "verdict": {
            "users_at_saturation": 4, "users_at_saturation_ci": [3, 5], "throughput_max_per_s": 98.0,
            "bottleneck": { "kind": kind, "holder": "python3 (pid 12)", "confidence": confidence },
            "inconclusive": sentences, "doubts": doubts,
        }});
        Said::read(&run).expect("a verdict")
    }

    #[test]
    fn kind_and_holder_must_both_be_right() {
        let lock = said("lock", json!("medium"), &[]);
        assert_eq!(lock.grade(&case("lock", "python3")), Grade::Right);
        assert_eq!(lock.grade(&case("lock", "nginx")), Grade::SurelyWrong);
        assert_eq!(lock.grade(&case("worker-pool", "python3")), Grade::SurelyWrong);
    }

    #[test]
    fn who_claims_nothing_is_not_wrong() {
        let case = case("lock", "python3");
        assert_eq!(said("lock", json!("high"), &["not-steady"]).grade(&case), Grade::Inconclusive);
        assert_eq!(said("unknown", json!("low"), &[]).grade(&case), Grade::Inconclusive);
        assert_eq!(said("cpu", json!("low"), &[]).grade(&case), Grade::Wrong);
    }

    /// Two explanations that nothing tells apart were open in every round, and no verdict on such a server could be right.
    #[test]
    fn to_leave_open_which_of_two_that_show_alike_it_is_is_right() {
        let undecided = |next: &str| {
            let best = json!({ "kind": "connection-pool", "probability": 0.48 });
            json!({ "kind": "undecided", "best": best, "next": { "kind": next, "probability": 0.45 } })
        };
        let said = |doubts| said_with("connection-pool", json!(0.48), doubts);
        let plain = case("worker-pool", "python3");
        let case = Case { alike: Some("connection-pool".to_owned()), ..plain.clone() };
        let open = said(vec![undecided("worker-pool")]);
        assert_eq!(open.grade(&case), Grade::Right);
        assert_eq!(open.grade(&plain), Grade::Inconclusive);
        assert_eq!(said(vec![undecided("lock")]).grade(&case), Grade::Inconclusive);
        let more = vec![undecided("worker-pool"), json!({ "kind": "interference" })];
        assert_eq!(said(more).grade(&case), Grade::Inconclusive);
        assert_eq!(said(Vec::new()).grade(&case), Grade::Wrong, "it is claimed");
    }

    /// A verdict on a server on the host `far`, with what its file says of the holder.
    fn said_of_far(kind: &str, holder: &str, identity: Value) -> Said {
        let far = json!({ "type": "host", "on": "far" });
        let run = json!({
            "elapsed_s": 20.0,
            "verdict": {
                "throughput_max_per_s": 98.0, "inconclusive": [],
                "bottleneck": { "kind": kind, "holder": holder, "identity": identity, "confidence": 0.9 },
            },
            "steps": [{ "resources": [] }, { "resources": [{ "identity": far }] }],
        });
        Said::read(&run).expect("a verdict")
    }

    #[test]
    fn a_holder_on_another_host_is_known_by_its_name_there() {
        let python = json!({ "type": "processes", "name": "python3", "on": "far" });
        for holder in ["python3 on far (pid 12)", "python3 on far (3 processes)", "python3 (far)"] {
            let said = said_of_far("lock", holder, python.clone());
            assert!(said.behind && !said.holder.contains("pid"), "{said:?}");
            assert_eq!(said.grade(&case("lock", "python3")), Grade::Right, "{holder}");
            assert_eq!(said.grade(&case("lock", "nginx")), Grade::SurelyWrong, "{holder}");
        }
        let limit = json!({ "type": "io-limit", "device": "vda", "of": { "name": "server", "on": "far" } });
        let said = said_of_far("disk", "server on far (pid 12)", limit);
        assert_eq!(said.grade(&case("disk", "server")), Grade::Right);
    }

    #[test]
    fn a_namesake_on_the_generators_host_is_not_the_holder() {
        let host = said_of_far("cpu", "host", json!({ "type": "host" }));
        assert_eq!(host.grade(&case("cpu", "host")), Grade::SurelyWrong);
        let queue = said_of_far("accept-queue", "port 80", json!({ "type": "listen-queue", "port": 80 }));
        assert_eq!(queue.grade(&case("accept-queue", "port")), Grade::Right);
        let none = said_of_far("none", "", Value::Null);
        assert_eq!(none.grade(&case("none", "")), Grade::Right);
        // Where no other host was observed, all is on the generator's.
        let here = said("cpu", json!(0.9), &[]);
        assert!(!here.behind && !here.astray);
    }

    /// A case whose bottleneck is on this host.
    fn case_on(host: &str, kind: &str, holder: &str) -> Case {
        Case { on: Some(host.to_owned()), ..case(kind, holder) }
    }

    #[test]
    fn of_several_hosts_it_has_to_be_the_right_one() {
        let link = json!({ "type": "link", "name": "eth0", "on": "back" });
        let said = said_of_far("network", "eth0 on back", link);
        assert_eq!(said.grade(&case_on("back", "network", "eth0")), Grade::Right);
        assert_eq!(said.grade(&case_on("db", "network", "eth0")), Grade::SurelyWrong);
        assert_eq!(said.grade(&case_on("generator", "network", "eth0")), Grade::SurelyWrong);
    }

    /// It is told by a doubt, so that the run is inconclusive.
    #[test]
    fn a_generator_that_is_the_limit_has_to_be_said_to_be() {
        let case = case_on("generator", "generator", "generator");
        let run = |kind: &str, holder: &str, identity: Value| {
            let far = json!({ "type": "host", "on": "far" });
            let holder = json!({ "kind": kind, "holder": holder, "identity": identity, "confidence": 0.9 });
            json!({
                "elapsed_s": 20.0,
                "verdict": {
                    "throughput_max_per_s": 98.0, "inconclusive": ["In words."], "bottleneck": holder,
                    "doubts": [{ "kind": "generator-limit" }],
                },
                "steps": [{ "resources": [{ "identity": far }] }],
            })
        };
        let grade = |kind: &str, holder: &str, identity: Value| {
            Said::read(&run(kind, holder, identity)).expect("a verdict").grade(&case)
        };
        assert_eq!(grade("generator", "generator", json!({ "type": "generator" })), Grade::Right);
        let gate = json!({ "type": "processes", "name": "gate", "on": "front" });
        assert_eq!(grade("cpu", "gate on front", gate), Grade::Inconclusive);
    }

    #[test]
    fn a_probability_is_sure_from_four_in_five_on() {
        let case = case("lock", "python3");
        assert_eq!(said("cpu", json!(0.79), &[]).grade(&case), Grade::Wrong);
        assert_eq!(said("cpu", json!(0.80), &[]).grade(&case), Grade::SurelyWrong);
    }

    #[test]
    fn of_a_server_that_changes_it_is_right_to_say_so() {
        let case = case("changes", "python3");
        for doubt in CHANGES {
            let said = said("lock", json!(0.97), &["not-steady", doubt]);
            assert_eq!(said.grade(&case), Grade::Right, "{doubt}");
        }
        assert_eq!(said("lock", json!("low"), &[]).grade(&case), Grade::Wrong);
        assert_eq!(said("lock", json!(0.97), &[]).grade(&case), Grade::SurelyWrong);
        assert_eq!(said("unknown", json!("low"), &[]).grade(&case), Grade::Inconclusive);
    }

    /// Any doubt was right, also that there had been too few users.
    #[test]
    fn to_doubt_something_else_of_a_server_that_changes_is_inconclusive() {
        let case = case("changes", "python3");
        for (kind, doubt) in [("none", "never-bounded"), ("lock", "undecided"), ("lock", "interference")] {
            assert_eq!(said(kind, json!(0.97), &[doubt]).grade(&case), Grade::Inconclusive, "{doubt}");
        }
        let held_back = json!({ "kind": "jump", "held_back": [0.9, 0.1] });
        assert_eq!(said_with("lock", json!(0.97), vec![held_back]).grade(&case), Grade::Inconclusive);
    }

    #[test]
    fn numbers_are_right_within_their_tolerance() {
        let said = said("lock", json!("low"), &[]);
        assert!(said.has_throughput(100.0) && !said.has_throughput(102.0));
        assert!(said.has_users(3) && said.has_users(5) && !said.has_users(6));
    }
}
