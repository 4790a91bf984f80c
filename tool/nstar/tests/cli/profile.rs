//! Where the processor time goes: the function that it is spent in is named. And where threads sleep.

mod names;
mod rights;

use std::{
    hint::black_box,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::Value;

use crate::common::{
    support::{Place, Server, is_root_or_skip},
    verdict::HTTP,
};
use crate::observe::far::{Far, HIDDEN, nstar_is_hidden_or_skip};

/// Where this process, as a server, spends its time.
#[inline(never)]
fn hot_function_of_this_server(turns: u64) -> u64 {
    let mut left = black_box(turns);
    while left > 0 {
        left -= 1;
    }
    left
}

/// What calls it.
#[inline(never)]
fn answer_slowly(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut request = [0; 1024];
    while stream.read(&mut request)? > 0 {
        black_box(hot_function_of_this_server(2_000_000));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
    }
    Ok(())
}

/// Serves in this process. Returns its URL.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || answer_slowly(&mut stream));
        }
    });
    url
}

/// Whether anything could be sampled; says so if the kernel lets nothing be.
fn is_sampled_or_skip(profile: &Value) -> bool {
    let troubles = profile["troubles"].to_string();
    let refused = troubles.contains("\"refused\"") || troubles.contains("\"unavailable\"");
    if refused {
        eprintln!("SKIPPED: the kernel lets nothing be sampled here: {troubles}");
    }
    !refused
}

#[test]
fn the_function_that_takes_the_processor_is_named() {
    let (place, url) = (Place::new(), serve());
    let load = ["load", &url, "-d", "2s", "--profile", "-o", "run.json"];
    let outcome = place.nstar(load).run();
    let run = place.run_file();
    let profile = &run["profile"];
    if !is_sampled_or_skip(profile) {
        return;
    }
    let hottest = &profile["tiers"][0]["hottest"];
    let function = hottest["function"]["name"].as_str().unwrap_or_default();
    assert!(function.contains("hot_function_of_this_server"), "{profile:#}\n{outcome}");
    outcome.says("hot_function_of_this_server");
    let folded = place.nstar(["report", "run.json", "--format", "folded"]).run().exits(0);
    folded.says("hot_function_of_this_server");
    place.nstar(["report", "run.json", "--format", "pprof", "-o", "cpu.pb.gz"]).run().exits(0);
    let packed = std::fs::read(place.path("cpu.pb.gz")).expect("a profile");
    assert!(packed.starts_with(&[0x1f, 0x8b]), "it is compressed");
    let page = std::fs::read_to_string(place.path("report.html")).expect("a page");
    assert!(page.contains("hot_function_of_this_server") && page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn a_load_by_time_is_sampled_after_it_was_measured_and_one_by_number_meanwhile() {
    let (place, url) = (Place::new(), serve());
    let sampled = |stop: [&str; 2]| {
        let words = ["load", &url, stop[0], stop[1], "--profile", "-o", "run.json"];
        let outcome = place.nstar(words).run();
        (place.run_file(), outcome)
    };
    let (run, outcome) = sampled(["-d", "1s"]);
    if !is_sampled_or_skip(&run["profile"]) {
        return;
    }
    outcome.complains("sampling where the processor time goes");
    let share = run["profile"]["throughput_share"].as_f64().expect("it is measured apart");
    assert!(share > 0.05 && share < 20.0, "{share}");
    let number = |value: &Value| value.as_f64().expect("a number");
    let step_s = number(&run["steps"][0]["elapsed_s"]);
    assert!(step_s < 1.3, "what is sampled is no part of it: {step_s} s");
    assert!(number(&run["elapsed_s"]) > 2.0 && number(&run["profile"]["elapsed_s"]) > 0.5);
    let (run, _) = sampled(["-n", "100"]);
    assert!(run["profile"]["throughput_share"].is_null(), "{:#}", run["profile"]);
    assert!(number(&run["profile"]["elapsed_s"]) > 0.0);
}

/// It looks after its steps, so that they are what they would be without.
#[test]
fn a_sweep_says_where_the_time_goes_at_its_verdict_and_what_looking_cost() {
    let (place, url) = (Place::new(), serve());
    let outcome = place.nstar(["sweep", &url, "-c", "1,2", "-d", "1s", "--profile"]).run();
    assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
    let run = place.run_file();
    let profile = &run["profile"];
    let steps = run["steps"].as_array().expect("steps").iter();
    let measured: Vec<u64> = steps.map(|step| step["users"].as_u64().expect("users")).collect();
    let wanted = run["verdict"]["users_at_saturation"].as_u64().unwrap_or(u64::MAX);
    let nearest = measured.into_iter().min_by_key(|users| users.abs_diff(wanted));
    assert_eq!(profile["users"].as_u64(), nearest, "N*, or all of them without one: {profile:#}\n{outcome}");
    if !is_sampled_or_skip(profile) {
        return;
    }
    let function = profile["tiers"][0]["hottest"]["function"]["name"].as_str().unwrap_or_default();
    assert!(function.contains("hot_function_of_this_server"), "{profile:#}\n{outcome}");
    // What of it is due to sampling depends on the machine, and on who else is busy there.
    let share = profile["throughput_share"].as_f64().expect("it is measured apart");
    assert!(share > 0.05 && share < 20.0, "{share}\n{outcome}");
    let said = outcome.in_one_line();
    let why = said.split_once("Why: ").map(|(_, why)| why).unwrap_or_default();
    assert!(why.contains("’s CPU is in `") && why.contains("hot_function_of_this_server`"), "{outcome}");
}

/// Divides long numbers, which takes a single function of Python's.
const DIVIDES: &str = "import math\nA, B = 3**20000, 7**12000\nserve(keep, lambda: math.gcd(A, B))\n";

#[test]
fn the_function_that_takes_the_processor_of_another_host_is_named_with_it() {
    let test = "the_function_that_takes_the_processor_of_another_host_is_named_with_it";
    if !is_root_or_skip(test) || !nstar_is_hidden_or_skip(test) {
        return;
    }
    let place = Place::beside_others();
    let Some(far) = Far::serving(&place, DIVIDES, &[]) else { return };
    let observe = far.through_a_daemon(&place);
    let url = far.url();
    let load = ["load", &url, "-c", "2", "-d", "1s", "--profile", "-o", "run.json", "--observe", &observe];
    let outcome = place.wrapped(HIDDEN, load).run();
    let run = place.run_file();
    let profile = &run["profile"];
    let slept = &profile["off_cpu"]["tiers"][0];
    assert_eq!(slept["processes"]["on"], "far", "{profile:#}\n{outcome}");
    if !is_sampled_or_skip(profile) {
        assert!(profile["troubles"].to_string().contains("far"), "it is told where: {profile:#}");
        return;
    }
    let tier = &profile["tiers"][0];
    assert_eq!(tier["processes"]["on"], "far", "{profile:#}\n{outcome}");
    assert_eq!(tier["hottest"]["function"]["name"], "_PyLong_GCD", "{tier:#}\n{outcome}");
    let said = outcome.in_one_line();
    assert!(said.contains("of python3 on far is in `_PyLong_GCD`"), "{outcome}");
    assert!(said.contains("threads of python3 on far slept"), "{outcome}");
    place.nstar(["report", "run.json", "--format", "folded"]).run().exits(0).says("python3 on far;");
}

/// The share of a tier's samples in whose stacks one of these functions is.
fn share_with(tier: &serde_json::Value, names: &[&str]) -> f64 {
    let list = |name: &str| tier[name].as_array().expect(name).clone();
    let functions = list("functions");
    let is_wanted = |call: &serde_json::Value| {
        let function = call.as_u64().and_then(|call| functions.get(usize::try_from(call).ok()?));
        function.and_then(|function| function["name"].as_str()).is_some_and(|name| names.contains(&name))
    };
    let (mut all, mut with) = (0.0, 0.0);
    for stack in list("stacks") {
        let samples = stack["samples"].as_f64().expect("samples");
        let is_with = stack["calls"].as_array().expect("calls").iter().any(is_wanted);
        (all, with) = (all + samples, if is_with { with + samples } else { with });
    }
    with / all
}

/// Debian's Python is built without frame pointers: a sample in ten led to where the program begins, or fewer.
#[test]
fn callers_are_found_where_programs_keep_no_frame_pointers() {
    let place = Place::beside_others();
    let serve =
        "listener = listen(64)\nwhile True: answer(listener.accept()[0], lambda: sum(range(50000)))\n";
    let server = Server::python(&format!("{HTTP}{serve}"));
    let load = ["load", &server.url("/"), "-c", "2", "-d", "2s", "--profile", "-o", "run.json"];
    let outcome = place.nstar(load).run();
    let run = place.run_file();
    let (tier, troubles) = (&run["profile"]["tiers"][0], run["profile"]["troubles"].to_string());
    if ["refused", "unavailable", "frame-pointers-alone"].iter().any(|trouble| troubles.contains(trouble)) {
        eprintln!("SKIPPED: the kernel lets no stacks be sampled here: {troubles}");
        return;
    }
    let cut_short = tier["cut_short"]["share"].as_f64().expect("it is known");
    let whole = share_with(tier, &["__libc_start_main", "Py_BytesMain", "Py_RunMain"]);
    assert!(cut_short < 0.3 && whole > 0.6, "{cut_short}, {whole}: {tier:#}\n{outcome}");
}

#[test]
fn where_threads_sleep_is_told() {
    let place = Place::beside_others();
    let server = Server::python(&format!("{HTTP}serve(keep, lambda: time.sleep(0.05))\n"));
    let outcome =
        place.nstar(["load", &server.url("/"), "-c", "4", "-d", "2s", "--profile", "-o", "run.json"]).run();
    let run = place.run_file();
    let seen = &run["profile"]["off_cpu"];
    let tier = &seen["tiers"][0];
    assert!(tier["asleep_share"].as_f64().is_some_and(|share| share > 0.5), "{run:#}\n{outcome}");
    outcome.says("Off CPU: ").says("threads slept");
    if seen["troubles"].to_string().contains("calls-refused") {
        eprintln!("SKIPPED: the kernel does not let this user see system calls");
        return;
    }
    let waits = tier["waits"].as_array().expect("waits");
    let calls: Vec<_> = waits.iter().filter_map(|wait| wait["call"].as_str()).collect();
    assert!(calls.contains(&"clock_nanosleep") || calls.contains(&"select"), "{tier:#}");
    assert!(calls.iter().any(|call| call.starts_with("accept")), "who accepts waits: {tier:#}");
    let page = std::fs::read_to_string(place.path("report.html")).expect("a page");
    assert!(page.contains("Where threads sleep") && page.len() < 1_000_000, "{} bytes", page.len());
    let folded = place.nstar(["report", "run.json", "--format", "folded-off-cpu"]).run();
    match tier["stacks"].is_null() {
        true => folded.exits(2).complains("as root"),
        false => folded.exits(0).says(";"),
    };
}

#[test]
fn a_run_without_a_profile_has_no_stacks() {
    let (place, url) = (Place::beside_others(), serve());
    place.nstar(["load", &url, "-n", "1", "-o", "run.json"]).run().exits(0);
    for format in ["folded", "folded-off-cpu", "pprof"] {
        place.nstar(["report", "run.json", "--format", format]).run().exits(2).complains("--profile");
    }
}

#[test]
fn an_experiment_profiles_each_variant_once() {
    let place = Place::new();
    let text = r#"
title = "A server of Python's, twice"
time = "1s"
rounds = 2
axis = { folder_of = ["/etc", "/usr"] }

[[process]]
name = "server"
command = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "${folder_of}", "${port.web}"]
ports = ["web"]

[[work]]
url = "http://127.0.0.1:${port.web}/"
users = 2
"#;
    std::fs::write(place.path("mine.toml"), text).expect("a file");
    let words = ["experiment", "mine.toml", "-d", "1s", "--share-cores", "--profile"];
    let outcome = place.nstar(words).run();
    let compared = place.run_file();
    let entries = compared["works"][0]["entries"].as_array().expect("variants");
    assert_eq!(entries.len(), 2, "{outcome}");
    let troubles = entries[0]["profile"]["troubles"].to_string();
    if troubles.contains("refused") || troubles.contains("unavailable") {
        eprintln!("SKIPPED: the kernel lets nothing be sampled here: {troubles}");
        return;
    }
    for entry in entries {
        let tier = &entry["profile"]["tiers"][0];
        assert!(
            tier["processes"]["name"].as_str().is_some_and(|name| name.starts_with("python")),
            "{tier:#}"
        );
        assert!(tier["hottest"]["share"].as_f64().is_some_and(|share| share > 0.0), "{tier:#}");
        assert!(tier["stacks"].is_null(), "they are in the run file: {tier:#}");
    }
    outcome.says("’s CPU is in");
    let runs = std::fs::read_dir(place.path("run.runs")).expect("a folder").flatten();
    let runs = runs.map(|file| std::fs::read_to_string(file.path()).expect("a file"));
    assert_eq!(runs.filter(|run| run.contains("\"stacks\"")).count(), 2, "in the first round alone");
}
