//! Servers that are called at an address from which this host, or theirs, leads connections on: to another port, or elsewhere.
//!
//! nstar runs in a network of its own, where nobody else is called, and sees the processes of this machine.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;

use super::far::{Daemon, Far, Network};
use super::third::{SERVICE_PORT, join, leads, list, publishes};
use super::{holders, warnings};
use crate::common::{
    support::{Outcome, Place, is_root_or_skip},
    verdict::{ONE_MUTEX, is_said, named_by, verdict},
};

/// Answers after a moment, however many ask.
const SLEEPS: &str = "serve(keep, lambda: time.sleep(0.01))";

/// Serves a port of every address and answers nobody, as whoever passes on what is not led elsewhere.
const DECOY: &str = r#"
import pathlib, socket, sys, time
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
pathlib.Path(sys.argv[2]).touch()
time.sleep(3600)
"#;

/// Runs what follows in a network.
fn inside(network: &Network) -> [&str; 4] {
    ["ip", "netns", "exec", &network.name]
}

/// A short load from a network at an address.
fn load(place: &Place, wrapper: &[&str], address: SocketAddr) -> (Outcome, Value) {
    let url = format!("http://{address}/");
    let words = ["load", &url, "-c", "4", "-d", "1s", "-o", "run.json"];
    let outcome = place.wrapped(wrapper, words).run().exits(0);
    (outcome, place.run_file())
}

/// Loads until the server was looked at often enough, which a busy machine may keep nstar from, a few times at most.
fn loaded(place: &Place, from: &Network, address: SocketAddr, far: &Far) -> Value {
    let load = || load(place, &inside(from), address).1;
    (0..3).map(|_| load()).find(|run| is_seen(run, far)).unwrap_or_else(load)
}

/// Whether the server is among what was busy.
fn is_seen(run: &Value, far: &Far) -> bool {
    let pid = format!("(pid {})", far.pid());
    holders(run).iter().any(|holder| holder.contains(&pid))
}

/// Checks that the server is watched, and taken for what answers at the address that was called.
fn is_watched(run: &Value, far: &Far) {
    assert!(!warnings(run).contains("not-watched"), "{}", warnings(run));
    assert!(is_seen(run, far), "{:?}", holders(run));
    let nodes = list(run, "nodes");
    assert!(nodes.iter().all(|node| node["kind"] != "unobserved"), "{}", run["topology"]);
}

/// A server in a network of its own, where its own address leads on to it from the port of the service; `None` where that cannot be
/// had.
fn led_on_here(test: &str, program: &str) -> Option<(Place, Far)> {
    let (place, far) = serving(test, program)?;
    let port = far.address().port();
    leads(&far.network.name, ("output", "127.0.0.1"), ("127.0.0.1", port)).then_some((place, far))
}

/// A server in a network of its own, one that is joined to it, and the server's address on the link; `None` where that cannot be
/// had.
fn before_a_server(test: &str) -> Option<(Place, Far, Network, String)> {
    let (place, far) = serving(test, SLEEPS)?;
    let front = Network::make()?;
    let address = join(&front, &far.network)?;
    Some((place, far, front, address))
}

fn serving(test: &str, program: &str) -> Option<(Place, Far)> {
    if !is_root_or_skip(test) {
        return None;
    }
    let place = Place::beside_sleepers();
    let far = Far::serving(&place, program, &[])?;
    Some((place, far))
}

#[test]
fn a_server_behind_another_port_of_this_host_is_named() {
    let test = "a_server_behind_another_port_of_this_host_is_named";
    let Some((place, far)) = led_on_here(test, ONE_MUTEX) else { return };
    let url = format!("http://127.0.0.1:{SERVICE_PORT}/");
    let words = ["sweep", &url, "-c", "1..16", "-d", "2s"];
    let Some(run) = named_by(&place, 3, || place.wrapped(inside(&far.network), words).run()) else { return };
    is_watched(&run, &far);
    if is_said(&run, &["lock", "single-thread"]) {
        let bottleneck = &verdict(&run)["bottleneck"];
        let holder = bottleneck["holder"].as_str().expect("a holder");
        assert!(holder.contains(&format!("(pid {})", far.pid())), "{bottleneck}");
    }
    let edges = list(&run, "edges");
    let at = edges.iter().filter_map(|edge| edge["address"]["address"].as_str()).collect::<Vec<_>>();
    let service = format!("127.0.0.1:{SERVICE_PORT}");
    assert!(!at.contains(&service.as_str()), "its connections lead on: {}", run["topology"]);
}

#[test]
fn a_server_in_another_network_to_which_this_host_leads_is_watched() {
    let test = "a_server_in_another_network_to_which_this_host_leads_is_watched";
    let Some((place, far, front, address)) = before_a_server(test) else { return };
    // The front's own address on the link to the server.
    let own = [198, 19, far.network.address[2], 1];
    let published = SocketAddr::from((own, SERVICE_PORT));
    let to = (address.as_str(), far.address().port());
    if !leads(&front.name, ("output", &published.ip().to_string()), to) {
        return;
    }
    let run = loaded(&place, &front, published, &far);
    is_watched(&run, &far);
}

#[test]
fn a_server_that_its_own_network_leads_to_is_watched() {
    let test = "a_server_that_its_own_network_leads_to_is_watched";
    let Some((place, far, front, address)) = before_a_server(test) else { return };
    if !publishes(&far.network.name, &address, far.address().port()) {
        return;
    }
    let published = SocketAddr::new(address.parse().expect("an address"), SERVICE_PORT);
    let run = loaded(&place, &front, published, &far);
    is_watched(&run, &far);
}

/// As on a host of containers: what listens at a published port gets only what is not led into the container.
#[test]
fn what_listens_at_an_address_and_is_passed_by_is_not_the_server() {
    let test = "what_listens_at_an_address_and_is_passed_by_is_not_the_server";
    let Some((place, far)) = led_on_here(test, SLEEPS) else { return };
    let (mark, port) = (place.path("listens"), SERVICE_PORT.to_string());
    let mut decoy = Command::new("ip");
    decoy.args(&inside(&far.network)[1..]).args(["python3", "-c", DECOY, &port]).arg(&mark);
    let _decoy = Daemon::start(decoy).once(|| mark.exists());
    let run = loaded(&place, &far.network, ([127, 0, 0, 1], SERVICE_PORT).into(), &far);
    is_watched(&run, &far);
}

#[test]
fn where_translation_may_not_be_read_it_is_told_what_would_allow_it() {
    let test = "where_translation_may_not_be_read_it_is_told_what_would_allow_it";
    let Some((place, far)) = led_on_here(test, SLEEPS) else { return };
    let without = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let wrapper = [&inside(&far.network)[..], &without[..]].concat();
    let (outcome, run) = load(&place, &wrapper, ([127, 0, 0, 1], SERVICE_PORT).into());
    let mut causes = run["warnings"].as_array().expect("warnings").iter().map(|warning| &warning["cause"]);
    let cause = causes.find(|cause| cause["kind"] == "not-watched").unwrap_or_else(|| panic!("{outcome}"));
    let expected = format!("127.0.0.1:{SERVICE_PORT}");
    let reason = &cause["reason"];
    assert_eq!(
        (&reason["kind"], &reason["address"]),
        (&"translation-unread".into(), &expected.into()),
        "{cause}"
    );
    assert!(warnings(&run).contains("run nstar as root (CAP_NET_ADMIN"), "{}", warnings(&run));
}
