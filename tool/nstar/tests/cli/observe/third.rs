//! A tier behind the server that is on a third host: is it the same that the server was seen to call?

use std::process::Command;

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

/// Runs a server, and beside it what starts agents.
const BOTH: &str = r#"python3 -c "$1" "$2" & exec python3 -c "$3" "$4" "$5""#;

/// A host with a server and what observes it, both of which see nothing of other hosts.
struct Host {
    // It ends before the network that it is in.
    server: Server,
    _network: Network,
    observe: String,
}

impl Host {
    fn start(place: &Place, network: Network, name: &str, program: &str, behind: &str) -> Self {
        let (port, socket) = (free_port(), place.path(&format!("{name}.sock")));
        let (at, tool) = (socket.display().to_string(), tool_program().display().to_string());
        let program = format!("{}{program}", HTTP.replace("127.0.0.1", "0.0.0.0"));
        let port_word = port.to_string();
        let words = ["sh", "-c", BOTH, "sh", &program, &port_word, DAEMON, &at, &tool];
        let mut command: Command = network.on_host(name, place, &[&HIDDEN[..], &words[..]].concat());
        command.env("BEHIND", behind);
        let server = Server::at((network.address, port).into(), command);
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
fn join(one: &Network, other: &Network) -> Option<String> {
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

#[test]
fn a_tier_on_a_third_host_is_the_one_that_the_server_calls() {
    let test = "a_tier_on_a_third_host_is_the_one_that_the_server_calls";
    if !is_root_or_skip(test) || !nstar_is_hidden_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let (Some(front), Some(behind)) = (Network::make(), Network::make()) else { return };
    let Some(address) = join(&front, &behind) else { return };
    let db = Host::start(&place, behind, "db", &ONE_MUTEX.replace("answer", "keep"), "");
    let port = db.server.address.port();
    let web = Host::start(&place, front, "web", FORWARDS, &format!("{address} {port}"));
    let url = web.server.url("/");
    let sweep = ["sweep", &url, "-c", "1,8", "-d", "1s", "--observe", &web.observe, "--observe", &db.observe];
    let measured = || {
        let outcome = place.wrapped(HIDDEN, sweep).run();
        println!("{outcome}");
        assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
        place.run_file()
    };
    // On a busy machine the observers may hardly have had a look: then once more.
    let called = |run: &Value| {
        let edges = run["topology"]["edges"].as_array().cloned().unwrap_or_default();
        edges.iter().any(|edge| edge["to"] == 2 && edge["from"][0] == 1)
    };
    let first = measured();
    let run = if called(&first) { first } else { measured() };
    let topology = &run["topology"];
    let list = |key: &str| topology[key].as_array().cloned().unwrap_or_default();
    let hosts = list("nodes").into_iter().map(|node| node["processes"]["on"].clone()).collect::<Vec<_>>();
    assert_eq!(hosts, [Value::Null, "web".into(), "db".into()], "{topology}");
    let edge = list("edges").into_iter().find(|edge| edge["to"] == 2).expect("an edge");
    assert_eq!((&edge["from"][0], &edge["connections"]), (&1.into(), &16.0.into()), "{topology}");
    assert_eq!(edge["address"]["address"], format!("{address}:{port}"), "{topology}");
    assert_eq!(list("nodes")[2]["processes"]["role"], "downstream", "{topology}");
    // Whatever is named, nobody calls a tier that is observed an upstream that is not.
    assert_ne!(verdict(&run)["bottleneck"]["kind"], "upstream", "{}", verdict(&run));
}
