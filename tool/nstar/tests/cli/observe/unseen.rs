//! What an agent may not see, or sees change, is told with the name of its host.

use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use super::far::{CALLER, DAEMON, Daemon, Far, HIDDEN, Observed, nstar_is_hidden_or_skip, succeeds};
use crate::common::{
    support::{Outcome, Place, free_port, is_root_or_skip, tool_program},
    verdict::HTTP,
};
use crate::hops::{FOUR_WORKERS, FRONT};
use crate::namespaces::{AS_NOBODY, tool_for_all};

/// Answers after a moment, however many ask.
const SLEEPS: &str = "serve(keep, lambda: time.sleep(0.01))";

fn can_run(test: &str) -> bool {
    is_root_or_skip(test) && nstar_is_hidden_or_skip(test)
}

/// A load that sees nothing of the server but through an agent, and warns of this kind. It is made again where it does not: on a
/// busy machine the agent may hardly have had a look.
fn load(place: &Place, (url, for_s): (&str, &str), observe: &str, kind: &str) -> (Outcome, Value) {
    let words = ["load", url, "-c", "2", "-d", for_s, "-o", "run.json", "--observe", observe];
    let loaded = || (place.wrapped(HIDDEN, words).run(), place.run_file());
    let is_told = |run: &Value| run["warnings"].to_string().contains(&format!("\"kind\":\"{kind}\""));
    let (outcome, run) = (0..5).map(|_| loaded()).find(|(_, run)| is_told(run)).unwrap_or_else(loaded);
    println!("{outcome}");
    (outcome, run)
}

/// The first cause of this kind among the warnings.
fn cause<'a>(run: &'a Value, kind: &str) -> &'a Value {
    let mut causes = run["warnings"].as_array().expect("warnings").iter().map(|warning| &warning["cause"]);
    causes.find(|cause| cause["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {}", run["warnings"]))
}

/// The agent runs beside the container that the server is in, as a user who may not enter it.
#[test]
fn a_namespace_that_an_agent_may_not_enter_is_told_with_its_host() {
    let test = "a_namespace_that_an_agent_may_not_enter_is_told_with_its_host";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_others();
    // Not what root alone may run.
    let nobody = [&["env", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"], &AS_NOBODY[..]].concat();
    let Some(far) = Far::serving(&place, SLEEPS, &nobody) else { return };
    let tool = tool_for_all(&place).display().to_string();
    let observed = Observed::by(&place, &far.network, |at| {
        let program = [&nobody[..], &["python3", "-c", DAEMON, at, &tool]].concat();
        far.network.beside("far", &place, &program)
    });
    let (outcome, run) = load(&place, (&far.url(), "500ms"), &observed, "sockets-unread");
    let outcome = outcome.exits(0).complains("may not be entered (Operation not permitted");
    outcome.complains("python3 on far (pid").complains("Run the agent on far as root");
    let told = cause(&run, "sockets-unread");
    assert_eq!((&told["on"], &told["reason"]["kind"]), (&"far".into(), &"namespace-closed".into()), "{told}");
}

#[test]
fn a_server_that_was_replaced_elsewhere_is_told_with_its_host() {
    let test = "a_server_that_was_replaced_elsewhere_is_told_with_its_host";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_others();
    // Each serves for a while, and another takes its place.
    let again = ["sh", "-c", "while :; do timeout 3 \"$@\"; done", "sh"];
    let Some(far) = Far::serving(&place, SLEEPS, &again) else { return };
    let observed = far.through_a_daemon(&place);
    let (outcome, run) = load(&place, (&far.url(), "6s"), &observed, "server-replaced");
    let told = cause(&run, "server-replaced");
    assert_eq!((&told["before"]["on"], &told["after"]["on"]), (&"far".into(), &"far".into()), "{told}");
    assert_ne!(told["before"]["pid"], told["after"]["pid"], "{told}");
    outcome.says("on far (pid");
}

/// The agent and the front belong to a user namespace that the server behind is not in.
#[test]
fn a_tier_that_an_agent_may_not_watch_is_told_with_its_host() {
    let test = "a_tier_that_an_agent_may_not_watch_is_told_with_its_host";
    if !can_run(test) {
        return;
    }
    if !succeeds(&["unshare", "--user", "true"]) {
        eprintln!("SKIPPED {test}: it needs user namespaces");
        return;
    }
    let place = Place::beside_others();
    let Some(far) = Far::serving(&place, FOUR_WORKERS, &[]) else { return };
    let front = format!("{HTTP}{FRONT}").replace("(\"127.0.0.1\", int(sys", "(\"0.0.0.0\", int(sys");
    let front = place.write("front.py", front).display().to_string();
    let address = SocketAddr::new(far.address().ip(), free_port());
    let (socket, tool) = (place.path("far.sock"), tool_program().display().to_string());
    let at = socket.display().to_string();
    // The front ends with the daemon.
    let script = format!(
        "BEHIND={} setpriv --pdeathsig KILL python3 {front} {} & exec python3 -c \"$1\" {at} {tool}",
        far.address().port(),
        address.port()
    );
    let program = ["unshare", "--user", "sh", "-c", &script, "sh", DAEMON];
    let begun = || socket.exists() && TcpStream::connect(address).is_ok();
    let daemon = Daemon::start(far.network.on_far(&place, &program)).once(begun);
    let caller = place.write("caller.py", CALLER);
    let observe = format!("python3 {} {at}", caller.display());
    let (outcome, run) = load(&place, (&format!("http://{address}/"), "3s"), &observe, "tiers-not-watched");
    drop(daemon);
    let told = cause(&run, "tiers-not-watched");
    let expected = format!("127.0.0.1:{}", far.address().port());
    let expected = json!([{ "family": "tcp", "address": expected }]);
    assert_eq!((&told["on"], &told["addresses"]), (&"far".into(), &expected), "{told}");
    assert!(run["warnings"].to_string().contains("of the host far that may not be watched"), "{outcome}");
}
