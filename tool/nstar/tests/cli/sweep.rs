//! The main job on servers nobody here wrote: does the verdict name what really stops them?

use serde_json::Value;

use crate::{
    common::support::{Place, Server, has_two_cores_or_skip, is_root_or_skip},
    common::verdict::{HTTP, kind, verdict},
};

/// Four workers, each asleep 5 ms per request: at most 800 requests per second, on an idle machine.
const FOUR_SLEEPERS: &str = r#"
workers = threading.Semaphore(4)
def work():
    with workers: time.sleep(0.005)
serve(keep, work)
"#;

/// Little's law, N = X (R + Z), within the intervals of X and R at every steady step.
fn assert_little_holds(run: &Value) {
    assert_eq!(run["laws"]["little_holds"], true, "{} {}", run["laws"], run["steps"]);
}

/// Where a step beside other programs breaks the law, the run warns of it.
fn assert_little_holds_or_is_doubted(run: &Value) {
    let warned =
        run["warnings"].as_array().expect("warnings").iter().any(|warning| warning["kind"] == "little");
    assert!(run["laws"]["little_holds"] == true || warned, "{} {}", run["laws"], run["warnings"]);
}

/// Sweeps until an answer can be relied on, a few times at most. On a machine that others keep busy none may come:
/// then each answer has at least said so itself, by exit code 4 or `unknown`, and the test says so too.
fn conclusive(place: &Place, server: &Server, args: &[&str]) -> Option<Value> {
    for _ in 0..4 {
        let outcome = place.sweep(server, args.iter().copied());
        let run = place.run_file();
        let open = verdict(&run)["inconclusive"].as_array().expect("reasons").len();
        assert_eq!(outcome.status.code(), Some(if open > 0 { 4 } else { 0 }), "{outcome}");
        assert_little_holds_or_is_doubted(&run);
        if open == 0 && kind(&run) != "unknown" {
            assert_little_holds(&run);
            println!("{outcome}");
            return Some(run);
        }
    }
    eprintln!("UNDECIDED: this machine was too busy for an answer to be relied on, and every answer said so");
    None
}

#[test]
fn nginx_on_one_core_is_named_with_its_processor() {
    if !has_two_cores_or_skip("nginx_on_one_core_is_named_with_its_processor") {
        return;
    }
    let place = Place::new();
    let nginx = Server::nginx("0");
    let Some(run) = conclusive(&place, &nginx, &["-c", "1..64", "-d", "1s", "--cpus", "1"]) else { return };
    assert_eq!(kind(&run), "cpu", "{}", run["verdict"]);
    let bottleneck = &verdict(&run)["bottleneck"];
    assert!(bottleneck["holder"].as_str().expect("a holder").starts_with("nginx"), "{bottleneck}");
    assert!(bottleneck["utilization"].as_f64().expect("a share") > 0.9, "{bottleneck}");
}

#[test]
fn a_server_that_sleeps_behind_four_workers_is_not_blamed_on_the_processor() {
    let place = Place::beside_sleepers();
    let server = Server::python(&format!("{HTTP}{FOUR_SLEEPERS}"));
    for _ in 0..2 {
        let outcome = place.sweep(&server, ["-c", "1..32", "-d", "1s"]);
        let run = place.run_file();
        // `none` and `generator` are inconclusive: what a busy machine may make of it, never a wrong cause.
        let honest = ["worker-pool", "unknown"].contains(&kind(&run)) || outcome.status.code() == Some(4);
        // That strangers fill the processors is said of them, not of the server.
        let blamed = ["cpu", "single-thread"].contains(&kind(&run))
            && verdict(&run)["bottleneck"]["holder"] != "other processes";
        assert!(honest && !blamed, "{outcome}");
        let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
        assert!(max < 808.0, "four workers at 5 ms give 800 a second at most: {max}\n{outcome}");
        if outcome.status.code() == Some(0) && kind(&run) != "unknown" {
            assert_little_holds(&run);
        }
        assert_little_holds_or_is_doubted(&run);
    }
}

#[test]
fn a_generator_with_a_tenth_of_a_core_blames_itself() {
    if !is_root_or_skip("a_generator_with_a_tenth_of_a_core_blames_itself") {
        return;
    }
    let place = Place::new();
    let quota = crate::common::support::Cgroup::of_a_core(0.1);
    let nginx = Server::nginx("0");
    let outcome = place
        .wrapped(
            ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", quota.tasks()],
            ["sweep", &nginx.url("/"), "-c", "1..16", "-d", "1s"],
        )
        .run();
    assert_eq!(kind(&place.run_file()), "generator", "{outcome}");
    outcome.exits(4);
}

#[test]
fn pythons_own_server_is_named() {
    let place = Place::new();
    let server = Server::python_http();
    let Some(run) = conclusive(&place, &server, &["-c", "1..16", "-d", "1s"]) else { return };
    let holder = verdict(&run)["bottleneck"]["holder"].as_str().expect("a holder");
    assert!(holder.starts_with("python3"), "{}", run["verdict"]);
    let page = std::fs::read_to_string(place.path("report.html")).expect("a report");
    assert!(page.contains("<html") && page.contains("python3"));
}
