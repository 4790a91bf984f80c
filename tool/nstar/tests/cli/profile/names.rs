//! Where the names of functions come from: tables, debugging information, the kernel, and what runtimes write. And who reads them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{is_sampled_or_skip, serve, share_with};
use crate::common::{
    support::{Outcome, Place, Server, free_port, is_root_or_skip},
    verdict::HTTP,
};

/// Computes before each answer, in one function. Whoever runs it says at which port.
const COMPUTES: &str = r#"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void hot_function_of_this_server(void) {
    for (volatile int left = 1000000; left > 0; left--) {}
}

static void *answer(void *of) {
    static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    char request[4096];
    int connection = (int)(long)of;
    while (read(connection, request, sizeof request) > 0) {
        hot_function_of_this_server();
        if (send(connection, response, sizeof response - 1, MSG_NOSIGNAL) < 0) break;
    }
    close(connection);
    return 0;
}

int main(int count, char **words) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[count - 1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 64)) return 1;
    for (;;) {
        pthread_t thread;
        long connection = accept(listener, 0, 0);
        if (connection < 0) continue;
        if (pthread_create(&thread, 0, answer, (void *)connection)) return 1;
        pthread_detach(thread);
    }
}
"#;

/// Whether a program is installed. Under CI it must be; elsewhere its absence is told and the test skipped.
fn is_installed_or_skip(test: &str, name: &str) -> bool {
    let installed = Command::new(name).arg("--version").output().is_ok();
    assert!(
        installed || std::env::var_os("CI").is_none(),
        "{test} needs {name}, and CI must have it: run scripts/setup-tests"
    );
    if !installed {
        eprintln!("SKIPPED {test}: {name} is not installed (scripts/setup-tests)");
    }
    installed
}

/// That server, compiled; `None` where there is no compiler.
pub(super) fn compiled(test: &str, place: &Place) -> Option<PathBuf> {
    if !is_installed_or_skip(test, "cc") {
        return None;
    }
    let (source, program) = (place.write("computes.c", COMPUTES), place.path("computes"));
    succeeds(Command::new("cc").args(["-g", "-O0", "-pthread", "-o"]).args([&program, &source]));
    Some(program)
}

fn succeeds(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A server that gets its port as its last argument.
pub(super) fn started(mut command: Command) -> Server {
    let port = free_port();
    command.arg(port.to_string());
    Server::at(([127, 0, 0, 1], port).into(), command)
}

/// What a second of load shows of a server; `None` where the kernel lets nothing be sampled.
fn profiled(place: &Place, url: &str) -> Option<(Value, Outcome)> {
    let outcome = place.nstar(["load", url, "-c", "2", "-d", "1s", "--profile", "-o", "run.json"]).run();
    let run = place.run_file();
    let profile = &run["profile"];
    is_sampled_or_skip(profile).then(|| (profile["tiers"][0].clone(), outcome))
}

#[test]
fn a_server_without_tables_is_named_by_its_debugging_information() {
    let test = "a_server_without_tables_is_named_by_its_debugging_information";
    let place = Place::beside_others();
    let Some(program) = compiled(test, &place) else { return };
    succeeds(Command::new("strip").args(["--strip-all", "--keep-section=.debug_*"]).arg(&program));
    let server = started(Command::new(&program));
    let Some((tier, outcome)) = profiled(&place, &server.url("/")) else { return };
    let hottest = &tier["hottest"];
    assert_eq!(hottest["function"]["name"], "hot_function_of_this_server", "{hottest:#}\n{outcome}");
    assert_eq!(hottest["function"]["module"], "computes", "{hottest:#}");
    outcome.says("hot_function_of_this_server");
}

#[test]
fn a_stripped_server_is_told_by_the_place_of_its_code_and_no_name() {
    let test = "a_stripped_server_is_told_by_the_place_of_its_code_and_no_name";
    let place = Place::beside_others();
    let Some(program) = compiled(test, &place) else { return };
    succeeds(Command::new("strip").arg("--strip-all").arg(&program));
    let server = started(Command::new(&program));
    let Some((tier, outcome)) = profiled(&place, &server.url("/")) else { return };
    let function = &tier["hottest"]["function"];
    assert_eq!((&function["name"], &function["module"]), (&"".into(), &"computes".into()), "{tier:#}");
    let length = fs::metadata(&program).expect("a file").len();
    assert!(function["offset"].as_u64().is_some_and(|offset| offset < length), "{function:#}");
    let said = outcome.in_one_line();
    assert!(said.contains("is in code without a name at computes+0x"), "{outcome}");
}

/// Reads so much that the kernel has more to do for it than it has itself.
const READS: &str = r#"
zero, buffer = open("/dev/zero", "rb", buffering=0), bytearray(1 << 24)
serve(keep, lambda: zero.readinto(buffer))
"#;

#[test]
fn functions_of_the_kernel_are_named_with_what_the_program_called() {
    let test = "functions_of_the_kernel_are_named_with_what_the_program_called";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::beside_others();
    let server = Server::python(&format!("{HTTP}{READS}"));
    let Some((tier, outcome)) = profiled(&place, &server.url("/")) else { return };
    assert!(tier["kernel_share"].as_f64().is_some_and(|share| share > 0.5), "{tier:#}\n{outcome}");
    let function = &tier["hottest"]["function"];
    assert_eq!(function["kernel"], true, "{tier:#}");
    let name = function["name"].as_str().expect("a name");
    let table = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if !table.lines().any(|line| !line.starts_with("0000000000000000 ")) {
        eprintln!("SKIPPED {test}: the kernel tells no addresses, not even to root");
        return;
    }
    let is_listed = table.lines().any(|line| line.split_whitespace().nth(2) == Some(name));
    assert!(is_listed, "`{name}` is no function of this kernel");
    assert!(share_with(&tier, &["vfs_read", "ksys_read"]) > 0.5, "{tier:#}");
}

/// A server of Node's, which writes a map of what it compiled. A small function may become a part of the one that calls it.
const NODE: &str = r#"
function slowSquares(turns) {
    let sum = 0;
    for (let n = 0; n < turns; n++) sum = (sum + n * n) % 1000003;
    return sum;
}
function slowAnswer(request, response) { response.end(String(slowSquares(1e6))); }
require("http").createServer(slowAnswer).listen(Number(process.argv[2]), "127.0.0.1");
"#;

/// A file of somebody else's making, gone when dropped.
struct Left(PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn functions_that_node_compiles_as_it_goes_are_named_by_its_map() {
    let test = "functions_that_node_compiles_as_it_goes_are_named_by_its_map";
    if !is_installed_or_skip(test, "node") {
        return;
    }
    let place = Place::beside_others();
    let mut command = Command::new("node");
    let script = place.write("server.js", NODE);
    // Where it runs it keeps a log besides.
    command.arg("--perf-basic-prof").arg(&script).current_dir(script.parent().expect("a folder"));
    let server = started(command);
    let map = Left(Path::new("/tmp").join(format!("perf-{}.map", server.pid())));
    let Some((tier, outcome)) = profiled(&place, &server.url("/")) else { return };
    assert!(map.0.exists(), "Node writes it");
    let name = tier["hottest"]["function"]["name"].as_str().unwrap_or_default();
    assert!(name.starts_with("JS:"), "{tier:#}\n{outcome}");
    assert!(name.contains("slowSquares") || name.contains("slowAnswer"), "{tier:#}\n{outcome}");
    assert!(outcome.in_one_line().contains("is in `JS:"), "{outcome}");
}

/// Our own tests read what we write ourselves; this is whom it is for.
#[test]
fn pprof_itself_reads_the_samples() {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("SKIPPED pprof_itself_reads_the_samples: it needs Go, of which pprof is a part");
        return;
    }
    let (place, url) = (Place::new(), serve());
    let Some((tier, _)) = profiled(&place, &url) else { return };
    place.nstar(["report", "run.json", "--format", "pprof", "-o", "cpu.pb.gz"]).run().exits(0);
    let top = ["go", "tool", "pprof", "-symbolize=none", "-unit=ns", "-top", "cpu.pb.gz"];
    let outcome = place.call(top).run().exits(0).says("Type: cpu");
    let line = outcome.stdout.lines().find(|line| line.contains("hot_function_of_this_server"));
    let own = line.and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    let own_ns: f64 = own.trim_end_matches("ns").parse().unwrap_or_else(|_| panic!("no time: {outcome}"));
    let samples = tier["samples"].as_f64().expect("samples");
    let share = tier["hottest"]["share"].as_f64().expect("a share");
    let counted_ns = share * samples * 1e9 / 99.0;
    assert!((own_ns / counted_ns - 1.0).abs() < 0.02, "{own_ns} ns of {counted_ns} ns: {outcome}");
    let tags = ["go", "tool", "pprof", "-symbolize=none", "-tags", "cpu.pb.gz"];
    place.call(tags).run().exits(0).says("tier");
}
