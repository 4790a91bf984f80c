//! `nstar predict`: what it answers, what it refuses, how it ends.

use serde_json::{Value, json};

use crate::common::support::Place;

/// A conclusive sweep of nginx on one processor.
const RUN: &str = include_str!("../../../report/tests/golden/run.json");

#[test]
fn a_change_is_answered_on_the_terminal_and_in_a_file() {
    let place = Place::beside_others();
    place.write("run.json", RUN);
    let predict = |more: &[&str]| place.nstar(["predict", "run.json"].iter().chain(more)).run();
    predict(&["--cpus", "nginx worker=2", "--users", "16", "-o", "then.json"])
        .exits(0)
        .says("With 2 processors for nginx worker: at most 68")
        .says("With 16 users:")
        .says("10 % less of")
        .says("Beyond what was measured");
    let written = std::fs::read_to_string(place.path("then.json")).expect("the file");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(written["schema"], "nstar.prediction/1");
    let max = written["after"]["throughput_max_per_s"]["value"].as_f64().expect("a number");
    assert!((max / 2.0 / 34_118.7 - 1.0).abs() < 0.01, "{max}");
    let goal = ["--goal", "throughput>=60000", "-j"];
    let found = predict(&goal).exits(0);
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON on stdout");
    assert_eq!(found["goal"]["options"][0]["change"]["cpus"], json!(2.0), "{}", found["goal"]);
    predict(&["--goal", "mean<=1us"]).exits(0).says("None of the");
}

#[test]
fn what_the_run_does_not_bear_is_refused_with_the_reason() {
    let place = Place::beside_others();
    place.write("run.json", RUN);
    let with = |name: &str, pointer: &str, value: Value| {
        let mut run: Value = serde_json::from_str(RUN).expect("JSON");
        *run.pointer_mut(pointer).expect(pointer) = value;
        place.write(name, run.to_string());
    };
    with("unbounded.json", "/verdict/bounded", json!(false));
    with("unknown.json", "/verdict/bottleneck/kind", json!("unknown"));
    with("open.json", "/load/loop_kind", json!("open"));
    place.write("cut.json", &RUN[..RUN.len() / 2]);
    let predict = |args: &[&str]| place.nstar(["predict"].iter().chain(args)).run();
    predict(&["unbounded.json"]).exits(4).complains("never stopped growing");
    predict(&["unknown.json"]).exits(4).complains("unknown");
    predict(&["open.json"]).exits(2).complains("sweep over users");
    predict(&["cut.json"]).exits(2).complains("cut.json: not a run file");
    predict(&["run.json", "--cpus", "web=2"]).exits(2).complains("no 'web'; it has nginx worker");
    predict(&["run.json", "--demand", "web.cpu=-3%"]).exits(2).complains("nginx worker.cpu");
    predict(&["run.json", "--workers", "nginx worker=2"]).exits(2).complains("does not show in this run");
    predict(&["run.json", "--upstream-delay", "db=+5ms"]).exits(2).complains("nothing that the server calls");
    predict(&["run.json", "--demand", "nginx worker.cpu=30%"]).exits(2).complains("in per cent");
    predict(&["run.json", "--goal", "p97<=3ms"]).exits(2).complains("is not a goal");
}

#[test]
fn a_thing_that_is_changed_twice_is_refused_and_several_changes_are_cautioned() {
    let place = Place::beside_others();
    place.write("run.json", RUN);
    let predict = |args: &[&str]| place.nstar(["predict", "run.json"].iter().chain(args)).run();
    let (cpus, less) = (["--cpus", "nginx worker=2"], ["--demand", "nginx worker.cpu=-30%"]);
    let twice = |one: [&str; 2], two: [&str; 2], said: &str| {
        predict(&[one, two].concat()).exits(2).complains(said);
    };
    twice(cpus, ["--cpus", "nginx worker=4"], "--cpus is given twice for 'nginx worker'");
    twice(less, less, "--demand is given twice for 'nginx worker.cpu'");
    twice(["--add-server", "1"], ["--add-server", "2"], "--add-server is given twice");
    twice(["--add-server", "1"], ["--add-server", "nginx worker=2"], "what may be the same servers");
    twice(["--link", "1Gbit"], ["--link", "lo=2Gbit"], "what may be the same link");
    twice(["--think", "1ms"], ["--think", "2ms"], "--think");
    predict(&[cpus, less].concat()).exits(0).says("Caution: What 2 changes at once do to one another");
    let one = predict(&["--cpus", "nginx worker=16", "-j"]).exits(0);
    assert!(!one.stdout.contains("several-changes") && !one.stdout.contains("far-beyond"), "{}", one.stdout);
    predict(&["--cpus", "nginx worker=16", "--demand", "lo.network=-90%"])
        .exits(0)
        .says("Caution: 2 changes at once promise");
}

#[test]
fn values_that_a_flag_does_not_take_are_refused_and_not_cut() {
    let place = Place::beside_others();
    place.write("run.json", RUN);
    let predict = |args: &[&str]| place.nstar(["predict", "run.json"].iter().chain(args)).run();
    predict(&["--add-server", "5000"]).exits(2).complains("'5000' is not a whole number from 1 to 1000");
    predict(&["--add-server", "=2"]).exits(2).complains("there is no name before '=2'");
    predict(&["--link", "2000000Gbit"]).exits(2).complains("not a rate from 1bit to 1000000Gbit");
    predict(&["--goal", "users>=50 at 10 users"]).exits(2).complains("write 'users>=N' alone");
}

#[test]
fn a_goal_for_p95_is_answered_and_a_file_that_lacks_it_is_told() {
    let place = Place::beside_others();
    place.write("run.json", RUN);
    let older: Vec<&str> = RUN.lines().filter(|line| !line.contains("\"p95\"")).collect();
    place.write("older.json", older.join("\n"));
    let predict = |file: &str| {
        place.nstar(["predict", file, "--goal", "p95<=1ms at 8 users", "--users", "8", "-j"]).run()
    };
    let found = predict("run.json").exits(0);
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON on stdout");
    assert_eq!(found["goal"]["reached"], json!(true), "{}", found["goal"]);
    let points = found["curve"].as_array().expect("a curve");
    let asked = points.iter().find(|point| point["asked"] == json!(true)).expect("8 users");
    let value = |percentile: &str| asked[percentile]["value"].as_f64().expect(percentile);
    assert!(value("p95_us") < value("p99_us"), "{asked}");
    predict("older.json").exits(2).complains("written before nstar kept that; sweep again");
}

/// The same sweep with two kinds of request: four in five read, for 20 us of CPU time each, the others write, for 65.5.
fn of_two_kinds() -> Value {
    let mut run: Value = serde_json::from_str(RUN).expect("JSON");
    let tier = json!({
        "type": "processes", "role": "server", "name": "nginx worker", "pid": 812, "processes": 1,
    });
    let share = |name: &str, share: f64, us: f64| {
        let demand = json!({
            "kind": "cpu", "holder": "", "identity": tier,
            "demand_us": us, "demand_ci_us": [us * 0.98, us * 1.02],
        });
        json!({
            "name": name, "asked_share": share, "share": share,
            "completed": 1_000, "replaced": 0, "demands": [demand],
        })
    };
    run["requests"] = json!([share("read", 0.8, 20.0), share("write", 0.2, 65.5)]);
    let step = run["steps"][0].clone();
    let kind = |name: &str, share: f64, mean: f64| {
        let mut time = step["response_time_us"].clone();
        (time["mean"], time["mean_ci"]) = (json!(mean), json!([mean * 0.98, mean * 1.02]));
        json!({
            "name": name, "completed": 1_000, "share": share,
            "throughput_per_s": 1_000.0, "response_time_us": time,
        })
    };
    run["steps"][0]["requests"] = json!([kind("read", 0.8, 92.0), kind("write", 0.2, 138.5)]);
    run
}

#[test]
fn another_mix_of_requests_is_answered() {
    let place = Place::beside_others();
    place.write("two.json", of_two_kinds().to_string());
    let predict = |more: &[&str]| place.nstar(["predict", "two.json"].iter().chain(more)).run();
    predict(&["--mix", "write=30%"])
        .exits(0)
        .says("With a mix of 30")
        .says("Caution: Each kind of request is taken to cost what it did")
        .says("takes of lo.network is not known");
    predict(&[]).exits(0).says("The mix of requests is taken to stay as it was.");
    let found = predict(&["--mix", "read=70%", "--mix", "write=30%", "--users", "8", "-j"]).exits(0);
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON on stdout");
    let max = |side: &str| found[side]["throughput_max_per_s"]["value"].as_f64().expect(side);
    let ratio = max("after") / max("before");
    assert!((ratio / (29.1 / 33.65) - 1.0).abs() < 0.01, "{ratio}");
    let shares = json!([{ "name": "read", "share": 0.7 }, { "name": "write", "share": 0.3 }]);
    assert_eq!(found["changes"], json!([{ "change": "mix", "shares": shares }]));
    let points = found["curve"].as_array().expect("a curve");
    assert!(points.iter().all(|point| point["p99_us"].is_null()), "no percentile of another mix");
    let goal = ["--mix", "write=30%", "--goal", "throughput>=50000", "-j"];
    let found = predict(&goal).exits(0);
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON on stdout");
    assert_eq!(found["goal"]["options"][0]["change"]["cpus"], json!(2.0), "{}", found["goal"]);
}

#[test]
fn a_mix_that_the_run_does_not_bear_is_refused_with_the_reason() {
    let place = Place::beside_others();
    place.write("run.json", RUN);
    place.write("two.json", of_two_kinds().to_string());
    let mut older = of_two_kinds();
    older["requests"].as_array_mut().expect("kinds").iter_mut().for_each(|kind| {
        kind.as_object_mut().expect("a kind").remove("demands");
    });
    place.write("older.json", older.to_string());
    let mut lock = of_two_kinds();
    lock["verdict"]["bottleneck"]["kind"] = json!("lock");
    place.write("lock.json", lock.to_string());
    let predict = |file: &str, mix: &str| place.nstar(["predict", file, "--mix", mix]).run();
    predict("run.json", "write=30%").exits(2).complains("one kind of request");
    predict("two.json", "rite=30%").exits(2).complains("no 'rite'; it has read, write");
    predict("two.json", "read=90%,write=20%").exits(2).complains("more than all requests");
    predict("two.json", "read=50%,write=20%").exits(2).complains("no other kind of request");
    predict("two.json", "read=50%,read=50%").exits(2).complains("'read' two shares");
    predict("two.json", "write=30").exits(2).complains("in per cent");
    predict("older.json", "write=30%").exits(2).complains("'write' takes of nginx worker.cpu is not known");
    predict("lock.json", "write=30%").exits(2).complains("nginx worker is a lock");
    let percentile = ["predict", "two.json", "--mix", "write=30%", "--goal", "p99<=1ms at 8 users"];
    place.nstar(percentile).run().exits(2).complains("the mix of requests");
}
