//! What servers give up: root, new privileges, core dumps, files that are not theirs, system calls that they never make. And
//! how they are started and watched by a manager of services.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::OwnedFd,
        unix::{
            fs::{FileExt, MetadataExt, PermissionsExt},
            net::{UnixDatagram, UnixListener},
        },
    },
    path::Path,
    process::{Child, Command, Stdio},
};

use engine::Model;

use super::serve::{HEALTH, ask, listening};
use crate::common::support::{PATIENCE, Place, is_root_or_skip};

/// Models that serve in threads, in loops, and in processes.
const MODELS: [&str; 3] = ["threads", "epoll", "prefork"];
/// A user that every Linux has and that owns nothing.
const USER: &str = "nobody";
/// An address of loopback whose privileged port no other test takes.
const PRIVILEGED: &str = "127.0.0.77:81";

/// What the status of a process or thread says after this word.
fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
}

/// The status of every thread of a process and of those that it started; of one that has ended, nothing.
fn tasks(pid: u32) -> Vec<String> {
    let Ok(listed) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut all = Vec::new();
    for task in listed.filter_map(Result::ok).map(|entry| entry.path()) {
        let children = fs::read_to_string(task.join("children")).unwrap_or_default();
        let started = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        all.extend(started.flat_map(tasks));
        // The thread of a connection may end while it is looked at.
        all.extend(fs::read_to_string(task.join("status")));
    }
    all
}

/// Makes a folder that belongs to the user, in a place that all may enter.
fn make_for_user(place: &Place, folder: &str) {
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).expect("a folder for all");
    fs::create_dir(place.path(folder)).expect("a folder");
    let given = Command::new("chown").args([USER, folder]).current_dir(place.path(".")).status();
    assert!(given.expect("coreutils").success());
}

#[test]
fn a_server_that_root_starts_becomes_the_user_it_is_given_once_it_is_bound() {
    if !is_root_or_skip("a_server_that_root_starts_becomes_the_user_it_is_given_once_it_is_bound") {
        return;
    }
    let place = Place::beside_others();
    ["shared", "data"].iter().for_each(|folder| make_for_user(&place, folder));
    let user = fs::metadata(place.path("data")).expect("a folder").uid().to_string();
    for engine in MODELS {
        let words = format!(
            "serve files --root shared --accounts sqlite:data/a.db --listen {PRIVILEGED} --user {USER} --engine {engine} \
             --workers 2"
        );
        let words = if engine == "prefork" { words } else { words.replace(" --workers 2", "") };
        let mut server = place.nstar(words.split_whitespace().map(String::from)).start();
        let greeting = server.first_line();
        assert!(greeting.contains("user nobody, no new privileges, no core dumps"), "{greeting}");
        let health = ask(PRIVILEGED, HEALTH);
        assert!(health.contains("\r\n\r\nok\nprocess: user nobody, no new privileges"), "{health}");
        let tasks = tasks(server.pid());
        assert!(!tasks.is_empty());
        for task in tasks {
            assert!(field(&task, "Uid").split_whitespace().all(|id| id == user), "{task}");
            assert_eq!(field(&task, "CapEff"), "0000000000000000");
            assert_eq!(field(&task, "NoNewPrivs"), "1");
            assert!(!field(&task, "Groups").split_whitespace().any(|group| group == "0"), "{task}");
        }
        assert_eq!(fs::metadata(place.path("data/a.db")).expect("a database").uid().to_string(), user);
        server.signal("TERM");
        server.finish().exits(0);
    }
}

/// Secrets that a server generates belong to its user, and are opened only once it has become that.
#[test]
fn root_starts_a_server_again_whose_secrets_belong_to_its_user() {
    if !is_root_or_skip("root_starts_a_server_again_whose_secrets_belong_to_its_user") {
        return;
    }
    let place = Place::beside_others();
    for (server, secret) in [("accounts", "a.db.admin"), ("booking", "a.db.key")] {
        make_for_user(&place, server);
        let words = format!(
            "serve {server} --database {server}/a.db --listen 127.0.0.1:0 --user {USER} --until-stdin-closes"
        );
        for _ in 0..2 {
            place.nstar(words.split_whitespace().map(String::from)).run().exits(0).says("user nobody");
        }
        let owner = fs::metadata(place.path(server).join(secret)).expect("a secret").uid();
        assert_ne!(owner, 0, "{server}");
    }
}

#[test]
fn no_server_leaves_core_dumps_or_takes_privileges() {
    let place = Place::beside_others();
    let mut server = place.nstar(["serve", "sink", "--listen", "127.0.0.1:0"]).start();
    listening(&mut server);
    let process = Path::new("/proc").join(server.pid().to_string());
    let limits = fs::read_to_string(process.join("limits")).expect("limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a limit");
    let core: Vec<_> = core.split_whitespace().skip(4).take(2).collect();
    assert!(core == ["1", "1"] || core == ["0", "0"], "{limits}");
    let status = fs::read_to_string(process.join("status")).expect("a status");
    assert_eq!(field(&status, "NoNewPrivs"), "1");
    server.signal("TERM");
    server.finish().exits(0);
}

/// Whether a text is anywhere in the memory of a process. `None` if that may not be read.
fn remembers(pid: u32, text: &[u8]) -> Option<bool> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let bounds = |line: &str| {
        let (from, until) = line.split_once(' ')?.0.split_once('-')?;
        Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(until, 16).ok()?))
    };
    let writable = maps.lines().filter(|line| line.contains(" rw"));
    Some(writable.filter_map(bounds).any(|(from, until)| {
        let mut part = vec![0; usize::try_from(until - from).expect("a length")];
        let length = memory.read_at(&mut part, from).unwrap_or(0);
        part[..length].windows(text.len()).any(|found| found == text)
    }))
}

#[test]
fn a_key_that_others_were_derived_from_is_wiped_from_memory() {
    let place = Place::beside_others();
    let words = ["serve", "booking", "--database", "b.db", "--listen", "127.0.0.1:0"];
    // Once the key is there, it is read and not generated.
    for _ in 0..2 {
        let mut server = place.nstar(words).start();
        listening(&mut server);
        let key = fs::read_to_string(place.path("b.db.key")).expect("a key");
        let admin = fs::read_to_string(place.path("b.db.admin")).expect("a token");
        // The allocator itself overwrites the beginning of what is freed.
        let rest = |text: &str| remembers(server.pid(), text.trim().split_at(16).1.as_bytes());
        let (key, admin) = (rest(&key), rest(&admin));
        match admin {
            None => eprintln!("SKIPPED: the memory of a process may not be read here"),
            Some(_) => {
                assert_eq!((key, admin), (Some(false), Some(true)), "the token is in use, the key no more")
            }
        }
        server.signal("TERM");
        server.finish().exits(0);
    }
}

#[test]
fn root_serves_others_only_as_a_user_that_was_named() {
    let place = Place::beside_others();
    let sink = |flags: &str| {
        let words = format!("serve sink --until-stdin-closes {flags}");
        place.nstar(words.split_whitespace().map(String::from)).run()
    };
    sink("--listen 127.0.0.1:0").exits(0);
    sink("--listen 0.0.0.0:0 --user root").exits(0);
    sink("--listen 127.0.0.1:0 --user no-such-user").exits(2).complains("no such user");
    if is_root_or_skip("root_serves_others_only_as_a_user_that_was_named") {
        sink("--listen 0.0.0.0:0").exits(2).complains("--user NAME");
        sink(&format!("--listen 0.0.0.0:0 --user {USER}")).exits(0).says("user nobody");
    }
}

/// A proxy on this machine brings the requests of others.
#[test]
fn root_serves_the_clients_of_a_proxy_only_as_a_user_that_was_named() {
    let place = Place::beside_others();
    fs::create_dir(place.path("shared")).expect("a folder");
    let behind = "--until-stdin-closes --listen 127.0.0.1:0 --trusted-proxy 127.0.0.1";
    for system in ["files --root shared --accounts none", "booking", "accounts"] {
        let serve = |user: &str| {
            let words = format!("serve {system} {behind} {user}");
            place.nstar(words.split_whitespace().map(String::from)).run()
        };
        serve("--user root").exits(0);
        if is_root_or_skip("root_serves_the_clients_of_a_proxy_only_as_a_user_that_was_named") {
            serve("").exits(2).complains("--user NAME");
        }
    }
}

#[test]
fn who_does_not_want_files_confined_says_so() {
    let place = Place::beside_others();
    let words = ["serve", "sink", "--listen", "127.0.0.1:0", "--until-stdin-closes"];
    let confined = place.nstar(words).run().exits(0);
    assert!(
        confined.stdout.contains("only its own files (Landlock)")
            || confined.stderr.contains("cannot confine the server to its own files"),
        "{confined}"
    );
    place.nstar(words.into_iter().chain(["--all-files"])).run().exits(0).says("all files of its user");
}

/// How many filters of system calls a process or thread has.
fn filters(status: &str) -> u32 {
    field(status, "Seccomp_filters").parse().expect("a number")
}

/// How many this process has, and so what it starts: a container may have set some.
fn own_filters() -> u32 {
    filters(&fs::read_to_string("/proc/self/status").expect("a status"))
}

/// Every model needs other calls.
#[test]
fn every_model_serves_without_the_system_calls_that_it_never_makes() {
    let place = Place::beside_others();
    for &model in Model::ALL {
        let workers = if model.has_workers() { "--workers 2" } else { "" };
        // Where io_uring is denied, the next one serves, and says the same.
        let words = format!("serve sink --listen 127.0.0.1:0 --engine {model},epoll {workers}");
        let mut server = place.nstar(words.split_whitespace().map(String::from)).start();
        let address = listening(&mut server);
        // Kept, so that the process of this connection is looked at too.
        let mut client = BufReader::new(TcpStream::connect(&address).expect("a connection"));
        client.get_ref().set_read_timeout(Some(PATIENCE)).expect("a time-out");
        client.get_mut().write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
        let mut status = String::new();
        client.read_line(&mut status).expect("an answer");
        assert!(status.starts_with("HTTP/1.1 200"), "{model}: {status}");
        let health = ask(&address, HEALTH);
        if health.contains("the kernel refuses seccomp") {
            return eprintln!("SKIPPED: this kernel has no seccomp");
        }
        assert!(health.contains("no system calls that servers never make (seccomp)"), "{model}: {health}");
        let tasks = tasks(server.pid());
        assert!(!tasks.is_empty());
        for task in tasks {
            assert_eq!(field(&task, "Seccomp"), "2", "{model}: {task}");
            assert!(filters(&task) > own_filters(), "{model}: {task}");
        }
        drop(client);
        server.signal("TERM");
        server.finish().exits(0);
    }
}

#[test]
fn who_wants_all_system_calls_says_so() {
    let place = Place::beside_others();
    let words = ["serve", "sink", "--listen", "127.0.0.1:0", "--all-system-calls"];
    let mut server = place.nstar(words).start();
    let health = ask(&listening(&mut server), HEALTH);
    assert!(health.contains("no core dumps, all system calls, "), "{health}");
    let tasks = tasks(server.pid());
    assert!(!tasks.is_empty() && tasks.iter().all(|task| filters(task) == own_filters()), "{tasks:?}");
    server.signal("TERM");
    server.finish().exits(0);
}

/// Starts a server with a descriptor to listen on, as systemd passes it.
fn activated(place: &Place, socket: OwnedFd, flags: &str) -> Child {
    let script = r#"exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3<&0 0</dev/null"#;
    let words = ["-c", script, "sh", env!("CARGO_BIN_EXE_nstar-lab"), "serve", "sink"];
    let mut command = Command::new("sh");
    command.args(words).args(flags.split_whitespace()).current_dir(place.path("."));
    command.stdin(socket).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh")
}

#[test]
fn a_server_of_every_model_listens_on_the_socket_that_it_is_passed() {
    let place = Place::beside_others();
    for &model in Model::ALL {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address").to_string();
        // Several loops, workers or processes share it.
        let several = match (model.has_loops(), model.has_workers()) {
            (true, _) => "--loops 2",
            (_, true) => "--workers 2",
            _ => "",
        };
        // Where io_uring is denied, the next one serves.
        let flags = format!("--listen {address} --engine {model},epoll {several}");
        let mut server = activated(&place, socket.into(), &flags);
        let mut greeting = String::new();
        BufReader::new(server.stdout.as_mut().expect("stdout")).read_line(&mut greeting).expect("a line");
        assert!(greeting.contains(&address), "{model}: {greeting}");
        for _ in 0..4 {
            assert!(ask(&address, HEALTH).starts_with("HTTP/1.1 200"), "{model}");
        }
        crate::common::support::signal(server.id(), "TERM");
        assert!(server.wait().expect("its end").success(), "{model}");
    }
}

#[test]
fn a_socket_of_another_kind_or_address_is_refused_and_named() {
    let place = Place::beside_others();
    let listening = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let local = UnixListener::bind(place.path("socket")).expect("a socket");
    let sockets: [(OwnedFd, &str); 4] = [
        (UdpSocket::bind("127.0.0.1:0").expect("a port").into(), "is not a TCP socket; use ListenStream"),
        (local.into(), "is a Unix socket"),
        (fs::File::open("/dev/null").expect("a device").into(), "is not a socket"),
        (listening().into(), "--listen says 127.0.0.9:0"),
    ];
    for (socket, said) in sockets {
        let output = activated(&place, socket, "--listen 127.0.0.9:0").wait_with_output().expect("its end");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(said), "{said}: {stderr}");
    }
}

/// A manager of services, as far as servers tell it something.
pub(super) struct Manager {
    from_servers: UnixDatagram,
    /// The variable that tells a server where it listens.
    pub(super) socket: String,
}

impl Manager {
    pub(super) fn listen(place: &Place) -> Self {
        let path = place.path("notify");
        let from_servers = UnixDatagram::bind(&path).expect("a socket");
        from_servers.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self { from_servers, socket: format!("NOTIFY_SOCKET={}", path.display()) }
    }

    /// What it is told next.
    pub(super) fn told(&self) -> String {
        let mut message = [0; 1000];
        let length = self.from_servers.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..length]).into_owned()
    }
}

#[test]
fn a_manager_of_services_is_told_when_a_server_is_ready_and_when_it_stops() {
    let place = Place::beside_others();
    let manager = Manager::listen(&place);
    let words = ["serve", "sink", "--listen", "127.0.0.1:0"];
    let server = place.wrapped(["env", &manager.socket], words).start();
    let ready = manager.told();
    assert!(ready.starts_with("READY=1\n") && ready.contains("STATUS=listening on http://"), "{ready}");
    server.signal("TERM");
    assert_eq!(manager.told(), "STOPPING=1\n");
    server.finish().exits(0);
}

/// The configurations that packages bring are valid, and listen where the units say.
#[test]
fn shipped_configurations_are_valid_and_their_sockets_fit() {
    let place = Place::beside_others();
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    for system in ["files", "accounts", "booking", "sink", "index", "peer"] {
        let text =
            fs::read_to_string(packaging.join(format!("config/{system}.toml"))).expect("a configuration");
        let file = place.write("config.toml", text);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("permissions");
        let words = ["serve", system, "--config", "config.toml", "--print-config"];
        let printed = place.nstar(words).run().exits(0);
        let listen =
            printed.stdout.lines().find_map(|line| line.strip_prefix("listen = ")).expect("an address");
        let unit =
            fs::read_to_string(packaging.join(format!("systemd/nstar-{system}.socket"))).expect("a unit");
        assert!(unit.contains(&format!("ListenStream={}\n", listen.trim_matches('"'))), "{unit}");
    }
}
