//! A tier behind the server that is on a third host: is it the same that the server was seen to call?

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::far::{CALLER, DAEMON, HIDDEN, Network, nstar_is_hidden_or_skip, succeeds};
use crate::common::{
    support::{Place, Server, free_port, is_root_or_skip, signal, tool_program},
    verdict::{HTTP, ONE_MUTEX, verdict},
};

/// A server that forwards each request over one of sixteen connections that it keeps.
const FORWARDS: &str = r#"
import os
host, port = os.environ["BEHIND"].split()
def call():
    behind = socket.create_connection((host, int(port)))
    behind.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return behind
pool = queue.Queue()
for _ in range(16): pool.put(call())
def forward():
    behind = pool.get()
    behind.sendall(b"GET / HTTP/1.1\r\nHost: behind\r\n\r\n")
    behind.recv(4096)
    pool.put(behind)
serve(keep, forward)
"#;

/// Runs a server, entering with the words of `$6`, and beside it what starts agents.
const BOTH: &str = r#"$6 python3 -c "$1" "$2" & exec python3 -c "$3" "$4" "$5""#;

/// A host with a server and what observes it, both of which see nothing of other hosts.
struct Host {
    // It ends before the network that it is in.
    server: Server,
    _network: Network,
    observe: String,
}

impl Host {
    fn start(place: &Place, network: Network, name: &str, program: &str, behind: &str) -> Self {
        Self::start_with(place, network, (name, &[]), program, behind)
    }

    /// The same with a wrapper around all that runs there.
    fn start_with(
        place: &Place,
        network: Network,
        (name, wrapper): (&str, &[&str]),
        program: &str,
        behind: &str,
    ) -> Self {
        let at = ("", network.address);
        Self::start_at(place, network, (name, wrapper), (program, behind), at)
    }

    /// The same where the server is entered with these words, and has this address.
    fn start_at(
        place: &Place,
        network: Network,
        (name, wrapper): (&str, &[&str]),
        (program, behind): (&str, &str),
        (enter, address): (&str, [u8; 4]),
    ) -> Self {
        let (port, socket) = (free_port(), place.path(&format!("{name}.sock")));
        let (at, tool) = (socket.display().to_string(), tool_program().display().to_string());
        let program = format!("{}{program}", HTTP.replace("127.0.0.1", "0.0.0.0"));
        let port_word = port.to_string();
        let words = ["sh", "-c", BOTH, "sh", &program, &port_word, DAEMON, &at, &tool, enter];
        let mut command: Command = network.on_host(name, place, &[wrapper, &HIDDEN[..], &words[..]].concat());
        command.env("BEHIND", behind);
        let server = Server::at((address, port).into(), command);
        let caller = place.write("caller.py", CALLER);
        Self { server, _network: network, observe: format!("python3 {} {at}", caller.display()) }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // What waits for a namespace of processes to end heeds no other signal.
        signal(self.server.pid(), "KILL");
    }
}

/// Joins two networks by a link of their own. Returns the address of the second on it; `None` where that cannot be done.
pub(super) fn join(one: &Network, other: &Network) -> Option<String> {
    let [_, _, subnet, _] = other.address;
    let (link, peer) = (format!("{}c", one.name), format!("{}d", one.name));
    let made = [
        format!("ip link add {link} netns {} type veth peer name {peer} netns {}", one.name, other.name),
        format!("ip -n {} addr add 198.19.{subnet}.1/24 dev {link}", one.name),
        format!("ip -n {} addr add 198.19.{subnet}.2/24 dev {peer}", other.name),
        format!("ip -n {} link set {link} up", one.name),
        format!("ip -n {} link set {peer} up", other.name),
    ];
    let made = made.iter().all(|command| succeeds(&command.split(' ').collect::<Vec<_>>()));
    made.then(|| format!("198.19.{subnet}.2"))
}

/// Leads whatever the network calls at a service address to this one. Whether that can be done; if not it is said.
fn translates(network: &Network, to: &str, port: u16) -> bool {
    assert!(succeeds(&["ip", "-n", &network.name, "route", "add", SERVICE, "via", to]), "no route");
    leads(&network.name, ("output", SERVICE), (to, port))
}

/// Leads what calls the network at a published port of its address to another port of it.
pub(super) fn publishes(network: &str, address: &str, port: u16) -> bool {
    leads(network, ("prerouting", address), (address, port))
}

/// Leads connections to an address, at a hook, to a port of another.
pub(super) fn leads(network: &str, (hook, from): (&str, &str), (to, port): (&str, u16)) -> bool {
    let rules = format!(
        "table ip nat {{\n chain {hook} {{\n  type nat hook {hook} priority -100;\n  ip daddr {from} tcp dport \
         {SERVICE_PORT} dnat to {to}:{port}\n }}\n}}\n"
    );
    takes(network, &rules)
}

/// Passes connections on to another network in the name of this one, as for containers. Whether that can be done.
fn masquerades(network: &str) -> bool {
    let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    assert!(succeeds(&["ip", "netns", "exec", network, "sh", "-c", forward]), "it does not forward");
    let chain = "chain postrouting {\n  type nat hook postrouting priority 100;\n  masquerade\n }";
    takes(network, &format!("table ip nat {{\n {chain}\n}}\n"))
}

/// Gives a network rules of nftables. Whether that can be done; if not it is said.
fn takes(network: &str, rules: &str) -> bool {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut nft = Command::new("ip");
    nft.args(["netns", "exec", network, "nft", "-f", "-"]).env("PATH", path);
    let run = nft.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let translated = run.and_then(|mut nft| {
        nft.stdin.take().expect("stdin").write_all(rules.as_bytes())?;
        nft.wait()
    });
    let made = translated.is_ok_and(|status| status.success());
    assert!(
        made || std::env::var_os("CI").is_none(),
        "address translation needs nftables, and CI must have it"
    );
    if !made {
        eprintln!("SKIPPED: it needs nftables with address translation; see make setup");
    }
    made
}

/// What a front calls, and nobody has. 203.0.113.0/24 is for documentation (RFC 5737).
const SERVICE: &str = "203.0.113.10";
/// The port at which what is translated is called.
pub(super) const SERVICE_PORT: u16 = 5432;

/// Sweeps until the edge from the front to what it calls is seen; on a busy machine the observers may hardly have had a look.
fn measured(place: &Place, wrapper: &[&str], words: &[&str], is_seen: impl Fn(&Value) -> bool) -> Value {
    let measured = || {
        let outcome = place.wrapped(wrapper, words).run();
        println!("{outcome}");
        assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
        place.run_file()
    };
    (0..3).map(|_| measured()).find(is_seen).unwrap_or_else(measured)
}

pub(super) fn list(run: &Value, key: &str) -> Vec<Value> {
    run["topology"][key].as_array().cloned().unwrap_or_default()
}

/// Whether the server, which is node 1, was seen to call node 2, over how many connections.
fn is_called(run: &Value) -> bool {
    let is_seen = |edge: &Value| edge["to"] == 2 && edge["from"][0] == 1 && edge["connections"].is_number();
    list(run, "edges").iter().any(is_seen)
}

/// Two hosts whose networks are joined, and the address of the second on the link.
fn two_networks() -> Option<(Network, Network, String)> {
    let (front, behind) = (Network::make()?, Network::make()?);
    let address = join(&front, &behind)?;
    Some((front, behind, address))
}

fn database(place: &Place, network: Network) -> Host {
    Host::start(place, network, "db", &ONE_MUTEX.replace("answer", "keep"), "")
}

/// Checks that the server on `web` calls the tier on `db` at its own address.
fn is_joined(run: &Value, address: &str) {
    let topology = &run["topology"];
    let nodes = list(run, "nodes");
    let hosts = nodes.iter().map(|node| node["processes"]["on"].clone()).collect::<Vec<_>>();
    assert_eq!(hosts, [Value::Null, "web".into(), "db".into()], "{topology}");
    let edge = list(run, "edges").into_iter().find(|edge| edge["to"] == 2).expect("an edge");
    assert_eq!((&edge["from"][0], &edge["connections"]), (&1.into(), &16.0.into()), "{topology}");
    assert_eq!(edge["address"]["address"], address, "{topology}");
    assert_eq!(nodes[2]["processes"]["role"], "downstream", "{topology}");
    // Whatever is named, nobody calls a tier that is observed an upstream that is not.
    assert_ne!(verdict(run)["bottleneck"]["kind"], "upstream", "{}", verdict(run));
}

/// A sweep that sees nothing but through the agents of both hosts.
fn sweep(place: &Place, web: &Host, db: &Host, is_seen: impl Fn(&Value) -> bool) -> Value {
    let url = web.server.url("/");
    let words = ["sweep", &url, "-c", "1,8", "-d", "1s", "--observe", &web.observe, "--observe", &db.observe];
    measured(place, &HIDDEN, &words, is_seen)
}

fn can_run(test: &str) -> bool {
    is_root_or_skip(test) && nstar_is_hidden_or_skip(test)
}

#[test]
fn a_tier_on_a_third_host_is_the_one_that_the_server_calls() {
    if !can_run("a_tier_on_a_third_host_is_the_one_that_the_server_calls") {
        return;
    }
    let place = Place::beside_sleepers();
    let Some((front, behind, address)) = two_networks() else { return };
    let db = database(&place, behind);
    let port = db.server.address.port();
    let web = Host::start(&place, front, "web", FORWARDS, &format!("{address} {port}"));
    let run = sweep(&place, &web, &db, is_called);
    is_joined(&run, &format!("{address}:{port}"));
}

#[test]
fn a_tier_behind_a_service_address_is_the_one_that_answers() {
    if !can_run("a_tier_behind_a_service_address_is_the_one_that_answers") {
        return;
    }
    let place = Place::beside_sleepers();
    let Some((front, behind, address)) = two_networks() else { return };
    let db = database(&place, behind);
    let port = db.server.address.port();
    if !translates(&front, &address, port) {
        return;
    }
    let web = Host::start(&place, front, "web", FORWARDS, &format!("{SERVICE} {SERVICE_PORT}"));
    let run = sweep(&place, &web, &db, is_called);
    is_joined(&run, &format!("{address}:{port}"));

    // On one host too, where nothing but nstar itself observes.
    let url = web.server.url("/");
    let run = measured(&place, &[], &["sweep", &url, "-c", "1,8", "-d", "1s"], is_called);
    let nodes = list(&run, "nodes");
    let role = |node: usize| nodes.get(node).map(|node| node["processes"]["role"].clone());
    assert_eq!((nodes.len(), role(2)), (3, Some("downstream".into())), "{}", run["topology"]);
}

/// The host of the tier leads a port that nothing listens at to the one that it listens at, as for containers.
#[test]
fn a_tier_behind_a_published_port_is_the_one_that_answers() {
    if !can_run("a_tier_behind_a_published_port_is_the_one_that_answers") {
        return;
    }
    let place = Place::beside_sleepers();
    let Some((front, behind, address)) = two_networks() else { return };
    let name = behind.name.clone();
    let db = database(&place, behind);
    let port = db.server.address.port();
    if !publishes(&name, &address, port) {
        return;
    }
    let web = Host::start(&place, front, "web", FORWARDS, &format!("{address} {SERVICE_PORT}"));
    let run = sweep(&place, &web, &db, is_called);
    is_joined(&run, &format!("{address}:{port}"));
}

/// The tier has a network namespace of its own, and sees its clients only by an address of its host.
#[test]
fn a_tier_in_a_container_is_the_one_that_is_called_at_its_host() {
    if !can_run("a_tier_in_a_container_is_the_one_that_is_called_at_its_host") {
        return;
    }
    let place = Place::beside_sleepers();
    let Some((front, behind, address)) = two_networks() else { return };
    let Some(inner) = Network::make() else { return };
    let Some(inside) = join(&behind, &inner) else { return };
    let (name, enter) = (behind.name.clone(), format!("ip netns exec {}", inner.name));
    let program = ONE_MUTEX.replace("answer", "keep");
    let db = Host::start_at(&place, behind, ("db", &[]), (&program, ""), (&enter, inner.address));
    let port = db.server.address.port();
    if !leads(&name, ("prerouting", &address), (&inside, port)) || !masquerades(&name) {
        return;
    }
    let web = Host::start(&place, front, "web", FORWARDS, &format!("{address} {SERVICE_PORT}"));
    let run = sweep(&place, &web, &db, is_called);
    is_joined(&run, &format!("{inside}:{port}"));
}

/// The agent beside the front may not read connection tracking.
#[test]
fn what_is_translated_out_of_sight_is_not_joined_and_that_is_told() {
    if !can_run("what_is_translated_out_of_sight_is_not_joined_and_that_is_told") {
        return;
    }
    let place = Place::beside_sleepers();
    let Some((front, behind, address)) = two_networks() else { return };
    let db = database(&place, behind);
    if !translates(&front, &address, db.server.address.port()) {
        return;
    }
    let without = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let behind = format!("{SERVICE} {SERVICE_PORT}");
    let web = Host::start_with(&place, front, ("web", &without), FORWARDS, &behind);
    let told = |run: &Value| run["warnings"].to_string().contains("nothing-called") && is_called(run);
    let run = sweep(&place, &web, &db, told);
    let mut causes = run["warnings"].as_array().expect("warnings").iter().map(|one| &one["cause"]);
    let cause = causes.find(|cause| cause["trouble"]["kind"] == "nothing-called").expect("a warning");
    let service = Value::from(format!("{SERVICE}:{SERVICE_PORT}"));
    assert_eq!((&cause["host"], &cause["trouble"]["addresses"][0]), (&"db".into(), &service), "{cause}");
    let node = list(&run, "nodes").into_iter().find(|node| node["kind"] == "unobserved").expect("a node");
    assert_eq!(node["address"]["address"], service, "{node}");
    assert_eq!(node["translation_unread"], true, "where the front runs it may not be read: {node}");
}
