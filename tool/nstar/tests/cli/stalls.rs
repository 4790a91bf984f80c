//! Servers that answer nothing for a part of the time: what is told of it, and of what went on meanwhile.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::support::{Cgroup, Place, Server, free_port, is_root_or_skip};

/// One thread, which stops for 80 of every 500 ms where it is told to.
const PROGRAM: &str = r#"
import asyncio, sys, time
class Answers(asyncio.Protocol):
    def connection_made(self, transport): self.transport = transport
    def data_received(self, request):
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
def stop():
    time.sleep(0.08)
    asyncio.get_running_loop().call_later(0.42, stop)
async def serve():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answers, "127.0.0.1", int(sys.argv[1]), backlog=512)
    if len(sys.argv) > 2: loop.call_later(0.42, stop)
    await server.serve_forever()
asyncio.run(serve())
"#;

/// Loads a server a few times until stalls are told. On a machine that others keep busy, where neither it nor the generator
/// gets to run, they may not be, and the test says so.
fn told(place: &Place, server: &Server) -> Option<Value> {
    for _ in 0..3 {
        let outcome =
            place.nstar(["load", &server.url("/"), "-c", "2", "-d", "3s", "-o", "run.json"]).run().exits(0);
        let run = place.run_file();
        let warnings = run["warnings"].as_array().expect("warnings").iter();
        let found = warnings.filter(|warning| warning["kind"] == "stalls").collect::<Vec<_>>();
        if let [warning] = found.as_slice() {
            assert!(outcome.stdout.contains("nothing was answered in"), "{outcome}");
            return Some(warning["cause"].clone());
        }
        eprintln!("not yet: {outcome}");
    }
    eprintln!("UNDECIDED: on this machine no stalls stood out");
    None
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().expect("a number")
}

#[test]
fn a_server_that_stops_is_told_with_its_share_of_the_time() {
    let place = Place::new();
    let port = free_port();
    let mut command = Command::new("python3");
    command.args(["-c", PROGRAM, &port.to_string(), "stops"]);
    let server = Server::at(([127, 0, 0, 1], port).into(), command);
    let Some(cause) = told(&place, &server) else { return };
    assert!((0.05..0.5).contains(&number(&cause, "share")), "{cause}");
    assert!(number(&cause, "longest_s") >= 0.04 && number(&cause, "times") >= 3.0, "{cause}");
    // It sleeps: what others do to the disk may go with it by chance, but no quota, and no work of its own.
    let meanwhile = cause["meanwhile"]["kind"].as_str().expect("a kind");
    assert!(!["throttled", "collected", "worked-on", "not-watched"].contains(&meanwhile), "{cause}");
}

#[test]
fn a_server_whose_quota_is_used_up_is_told_with_its_cgroup() {
    let test = "a_server_whose_quota_is_used_up_is_told_with_its_cgroup";
    if !is_root_or_skip(test) {
        return;
    }
    if !Path::new("/sys/fs/cgroup/cpu").is_dir() {
        eprintln!("SKIPPED {test}: it needs version 1 of cgroups");
        return;
    }
    let place = Place::new();
    let quota = Cgroup::of_a_core(0.3);
    let server = quota.python(PROGRAM);
    let Some(cause) = told(&place, &server) else { return };
    let meanwhile = &cause["meanwhile"];
    assert_eq!(meanwhile["kind"], "throttled", "{cause}");
    assert_eq!(meanwhile["of"]["pid"], server.pid(), "{cause}");
    assert!(meanwhile["cgroup"].as_str().expect("a cgroup").contains("nstar-test"), "{cause}");
    drop(server);
}
