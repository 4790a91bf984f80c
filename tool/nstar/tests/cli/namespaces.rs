//! Servers in a network namespace of their own.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::common::{
    program::tree::children,
    support::{Place, Server, free_port, is_root_or_skip, tool_program},
    verdict::{HTTP, is_said, named_by, verdict},
};
use crate::hops::FOUR_WORKERS;

/// A network namespace behind a virtual link, gone when dropped.
pub(crate) struct Apart {
    pub(crate) name: String,
    address: [u8; 4],
}

impl Apart {
    /// `None` where the kernel cannot do this. The number tells several of one process apart.
    fn make(number: u8) -> Option<Self> {
        let pid = std::process::id();
        // 198.18.0.0/15 is for benchmarks (RFC 2544).
        let it =
            Self { name: format!("nsa{pid}{number}"), address: [198, 18, (pid % 250) as u8, 4 * number + 2] };
        let (name, [a, b, c, d]) = (&it.name, it.address);
        let made = [
            format!("ip netns add {name}"),
            format!("ip link add {name}a type veth peer name {name}b netns {name}"),
            format!("ip addr add {a}.{b}.{c}.{}/30 dev {name}a", d - 1),
            format!("ip link set {name}a up"),
            format!("ip -n {name} addr add {a}.{b}.{c}.{d}/30 dev {name}b"),
            format!("ip -n {name} link set {name}b up"),
        ];
        made.iter().all(|command| succeeds(command)).then_some(it)
    }

    /// A Python program that serves every address of the namespace, as a user if not as root.
    pub(crate) fn serve(&self, program: &str, user: &[&str]) -> Server {
        let port = free_port();
        let program = format!("{HTTP}{program}").replace("(\"127.0.0.1\", int", "(\"0.0.0.0\", int");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).args(user);
        command.args(["python3", "-c", &program, &port.to_string()]);
        // Not what root alone may run.
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
        Server::at((self.address, port).into(), command)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        succeeds(&format!("ip netns del {}", self.name));
    }
}

pub(crate) fn succeeds(command: &str) -> bool {
    let words: Vec<&str> = command.split(' ').collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The namespace; `None` without root or where it cannot be made, which is said.
pub(crate) fn apart_or_skip(test: &str, number: u8) -> Option<Apart> {
    if !is_root_or_skip(test) {
        return None;
    }
    let made = Apart::make(number);
    if made.is_none() {
        eprintln!("SKIPPED {test}: it needs network namespaces");
    }
    made
}

/// Runs a command as nobody.
pub(crate) const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// The tool where anybody may run it.
pub(crate) fn tool_for_all(place: &Place) -> PathBuf {
    let program = place.path("nstar-for-all");
    // Copied by another program: a descriptor that writes to it could be inherited by a child of another test.
    let mut install = Command::new("install");
    let copied = install.args(["-m", "755"]).args([&tool_program(), &program]).status();
    assert!(copied.expect("coreutils").success(), "no copy");
    let folder = program.parent().expect("a folder");
    fs::set_permissions(folder, Permissions::from_mode(0o777)).expect("a folder for all");
    program
}

fn warning_of_sockets(run: &Value) -> Option<&Value> {
    let mut warnings = run["warnings"].as_array().expect("warnings").iter();
    warnings.find(|warning| warning["cause"]["kind"] == "sockets-unread")
}

#[test]
fn a_namespace_that_may_not_be_entered_is_told_and_the_rest_goes_on() {
    let test = "a_namespace_that_may_not_be_entered_is_told_and_the_rest_goes_on";
    let Some(apart) = apart_or_skip(test, 1) else { return };
    let place = Place::beside_others();
    let program = tool_for_all(&place);
    let server = apart.serve("serve(keep, lambda: time.sleep(0.01))", &AS_NOBODY);
    let url = server.url("/");
    let load = ["load", &url, "-c", "2", "-d", "500ms", "-o", "run.json"];
    let program = program.display().to_string();
    let refused = "may not be entered (Operation not permitted";

    let outcome = place.call(AS_NOBODY.into_iter().chain([program.as_str()]).chain(load)).run();
    let outcome = outcome.exits(0).complains(refused).complains("Run nstar as root");
    let run = place.run_file();
    let warning = warning_of_sockets(&run).unwrap_or_else(|| panic!("no warning: {outcome}"));
    let reason = &warning["cause"]["reason"];
    assert_eq!(
        (&reason["kind"], &reason["pid"]),
        (&"namespace-closed".into(), &server.pid().into()),
        "{warning}"
    );
    assert_eq!((&reason["os_error"], &reason["tables"]), (&1.into(), &true.into()), "{warning}");
    let resources = run["steps"][0]["resources"].to_string();
    assert!(resources.contains("python3"), "the server is watched all the same: {resources}");

    fs::remove_file(place.path("run.json")).expect("a run file");
    let outcome = place.nstar(load).run().exits(0);
    assert!(!outcome.stderr.contains(refused), "root may: {outcome}");
    assert_eq!(warning_of_sockets(&place.run_file()), None, "{outcome}");
}

/// A front without a limit of its own: a thread per connection, which forwards each request over a connection of its own.
const FRONT: &str = r#"
import os
def forward():
    with socket.create_connection((os.environ["HOST"], int(os.environ["PORT"]))) as behind:
        behind.sendall(b"GET / HTTP/1.1\r\nHost: behind\r\n\r\n")
        while behind.recv(4096): pass
serve(keep, forward)
"#;

#[test]
fn a_tier_that_nobody_observes_is_named_by_its_address() {
    let test = "a_tier_that_nobody_observes_is_named_by_its_address";
    let Some(apart) = apart_or_skip(test, 2) else { return };
    let place = Place::beside_sleepers();
    let upstream = apart.serve(FOUR_WORKERS, &[]);
    // Whoever is in a namespace of process numbers sees none of those outside.
    let port = free_port();
    let mut command = Command::new("unshare");
    command.args([
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "python3",
        "-c",
        &format!("{HTTP}{FRONT}"),
    ]);
    command.arg(port.to_string()).env("HOST", upstream.address.ip().to_string());
    command.env("PORT", upstream.address.port().to_string());
    let front = Server::at(([127, 0, 0, 1], port).into(), command);
    let Some(inside) = children(front.pid()).first().map(u32::to_string) else { panic!("no front") };
    let (folder, url) = (place.path("").display().to_string(), front.url("/"));
    // Entering the other mounts leaves the folder.
    let there =
        ["nsenter", "--target", &inside, "--pid", "--mount", "sh", "-c", "cd \"$0\" && exec \"$@\"", &folder];
    let sweep = || place.wrapped(there, ["sweep", &url, "-c", "1..32", "-d", "2s"]).run();
    let Some(run) = named_by(&place, 4, sweep) else { return };
    if !is_said(&run, &["upstream"]) {
        return;
    }
    let identity = &verdict(&run)["bottleneck"]["identity"];
    assert_eq!(identity["address"]["address"], upstream.address.to_string(), "{}", verdict(&run));
}
