//! Servers behind a front: does the verdict name the one at which requests queue?

use serde_json::Value;

use super::observe::far::{HIDDEN, nstar_is_hidden_or_skip, succeeds};
use crate::common::{
    support::{Place, Server, free_port},
    verdict::{HTTP, ONE_MUTEX, is_open, is_said, kind, named, named_by, verdict},
};

/// A front without a limit of its own: a thread per connection, which forwards each request over a connection of its own
/// to the port that the environment names.
pub(crate) const FRONT: &str = r#"
import os
def forward():
    with socket.create_connection(("127.0.0.1", int(os.environ["BEHIND"]))) as behind:
        behind.sendall(b"GET / HTTP/1.1\r\nHost: behind\r\n\r\n")
        while behind.recv(4096): pass
serve(keep, forward)
"#;

/// A front that reads every request, and forwards it over one of four connections that it keeps. Its name is that of a proxy: of
/// another program it is open whether connections or workers are too few.
const FOUR_CONNECTIONS: &str = r#"
import os
with open("/proc/self/comm", "w") as name: name.write("haproxy")
def call():
    behind = socket.create_connection(("127.0.0.1", int(os.environ["BEHIND"])))
    behind.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return behind
pool = queue.Queue()
for _ in range(4): pool.put(call())
def forward():
    behind = pool.get()
    behind.sendall(b"GET / HTTP/1.1\r\nHost: behind\r\n\r\n")
    behind.recv(4096)
    pool.put(behind)
serve(keep, forward)
"#;

/// Every request takes 20 ms, however many there are.
const NO_LIMIT: &str = "serve(keep, lambda: time.sleep(0.02))";

/// Four requests at a time take 20 ms each: at most 200 requests a second.
pub(crate) const FOUR_WORKERS: &str = r#"
workers = threading.Semaphore(4)
def work():
    with workers: time.sleep(0.02)
serve(answer, work)
"#;

/// A front before a server.
struct Tiers {
    front: Server,
    behind: Server,
}

impl Tiers {
    fn start(front: &str, behind: &str) -> Self {
        let behind = Server::python(&format!("{HTTP}{behind}"));
        let port = behind.address.port().to_string();
        let front = Server::python_with(&format!("{HTTP}{front}"), &[("BEHIND", &port)]);
        Self { front, behind }
    }

    /// Sweeps them, and checks kind and holder.
    fn expect(&self, expected: &str, held_by: &Server) {
        let place = Place::beside_sleepers();
        let Some(run) = named(&place, &self.front.url("/"), &["-c", "1..32", "-d", "2s"]) else { return };
        self.are_drawn(&run, &place);
        // Never the front, only because it is the one in sight.
        let Some(holder) = holder(&run) else {
            eprintln!("UNDECIDED: where requests queue was not seen: {}", verdict(&run));
            return;
        };
        let is_right = (kind(&run), holder) == (expected, u64::from(held_by.pid()));
        // A busy host leaves it open.
        assert!(is_right || is_open(&run, &[expected]), "{expected}: {}", verdict(&run));
    }
}

impl Tiers {
    /// Checks that the run file tells who calls whom, and that the page shows it.
    fn are_drawn(&self, run: &Value, place: &Place) {
        let topology = &run["topology"];
        let list = |key: &str| topology[key].as_array().cloned().unwrap_or_default();
        let (nodes, edges) = (list("nodes"), list("edges"));
        let place_of = |server: &Server| {
            let pid = Value::from(server.pid());
            nodes.iter().position(|node| node["processes"]["pid"] == pid).expect("a node")
        };
        let (front, behind) = (place_of(&self.front), place_of(&self.behind));
        assert_eq!((&nodes[0]["kind"], nodes.len()), (&"generator".into(), 3), "{topology}");
        for (from, to, server) in [(0, front, &self.front), (front, behind, &self.behind)] {
            let edge = edges.iter().find(|edge| edge["to"] == to).expect("an edge");
            assert_eq!(edge["from"], serde_json::json!([from]), "{topology}");
            let port = format!(":{}", server.address.port());
            assert!(edge["address"]["address"].as_str().expect("an address").ends_with(&port), "{edge}");
        }
        let page = std::fs::read_to_string(place.path("report.html")).expect("a page");
        assert!(page.contains("Who talks to whom"), "{page}");
    }
}

fn holder(run: &Value) -> Option<u64> {
    verdict(run)["bottleneck"]["identity"]["pid"].as_u64()
}

#[test]
fn a_lock_behind_an_idle_front_is_held_by_the_tier_behind() {
    let tiers = Tiers::start(FRONT, ONE_MUTEX);
    tiers.expect("lock", &tiers.behind);
}

#[test]
fn a_pool_behind_an_idle_front_is_held_by_the_tier_behind() {
    let tiers = Tiers::start(FRONT, FOUR_WORKERS);
    tiers.expect("worker-pool", &tiers.behind);
}

#[test]
fn too_few_connections_to_a_tier_with_room_are_a_connection_pool() {
    let tiers = Tiers::start(FOUR_CONNECTIONS, NO_LIMIT);
    tiers.expect("connection-pool", &tiers.front);
}

/// A front of its own for each sweep, where nstar runs, before a server elsewhere: what runs both, and the front's address.
fn front_before(behind: &Server, place: &Place) -> (String, String) {
    let front = place.write("front.py", format!("{HTTP}{FRONT}")).display().to_string();
    let (port, behind) = (free_port(), behind.address.port());
    let ready = format!("import socket; socket.create_connection(('127.0.0.1', {port}))");
    // The shell stays, so that nstar is not the first process of a namespace.
    let script = format!(
        "BEHIND={behind} python3 {front} {port} & until python3 -c \"{ready}\" 2> /dev/null; do sleep 0.1; done; \"$@\"; \
         status=$?; kill $!; exit $status"
    );
    (script, format!("http://127.0.0.1:{port}/"))
}

/// Its processes belong to a user namespace that nstar is not in, so that they may not be looked into.
#[test]
fn a_tier_that_may_not_be_watched_is_told_with_what_would_show_it() {
    if !succeeds(&["unshare", "--user", "true"]) {
        eprintln!(
            "SKIPPED a_tier_that_may_not_be_watched_is_told_with_what_would_show_it: it needs user namespaces"
        );
        return;
    }
    let behind = Server::python(&format!("{HTTP}{FOUR_WORKERS}"));
    let place = Place::beside_others();
    let (script, url) = front_before(&behind, &place);
    let args = ["load", &url, "-c", "4", "-d", "3s", "-o", "run.json"];
    let outcome = place.wrapped(["unshare", "--user", "sh", "-c", &script, "sh"], args).run();
    let run = place.run_file();
    let mut causes = run["warnings"].as_array().expect("warnings").iter().map(|warning| &warning["cause"]);
    let cause = causes.find(|cause| cause["kind"] == "tiers-not-watched");
    let expected = serde_json::json!([{ "family": "tcp", "address": behind.address.to_string() }]);
    assert_eq!(cause.map(|cause| &cause["addresses"]), Some(&expected), "{outcome}");
    outcome.says("Run nstar as root to see what they do.");
}

/// nstar sees the front, and of the server behind it nothing but the address that the front calls.
#[test]
fn an_upstream_that_nobody_observes_is_named_by_its_address() {
    if !nstar_is_hidden_or_skip("an_upstream_that_nobody_observes_is_named_by_its_address") {
        return;
    }
    let behind = Server::python(&format!("{HTTP}{FOUR_WORKERS}"));
    let place = Place::beside_sleepers();
    let (script, url) = front_before(&behind, &place);
    let wrapper = HIDDEN.into_iter().chain(["sh", "-c", &script, "sh"]);
    let sweep = || place.wrapped(wrapper.clone(), ["sweep", &url, "-c", "1..32", "-d", "2s"]).run();
    let Some(run) = named_by(&place, 4, sweep) else { return };
    if !is_said(&run, &["upstream"]) {
        return;
    }
    let bottleneck = &verdict(&run)["bottleneck"];
    assert_eq!(bottleneck["holder"], behind.address.to_string(), "{bottleneck}");
}
