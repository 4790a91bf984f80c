//! Servers that wait for the kernel: for a processor full of soft interrupts, for pages that a cgroup had no memory to keep.

use std::{
    fs,
    io::Write,
    iter::repeat_n,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::common::{
    support::{Place, Server, free_port, has_two_cores_or_skip, is_root_or_skip},
    verdict::{is_said, named_by, verdict},
};

/// One thread, which does one thing before each answer.
const ONE_THREAD: &str = r#"
import asyncio, os, random, sys
before = lambda: None
class Answers(asyncio.Protocol):
    def connection_made(self, transport): self.transport = transport
    def data_received(self, request):
        before()
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
async def serve():
    server = await asyncio.get_running_loop().create_server(Answers, "0.0.0.0", int(sys.argv[1]), backlog=512)
    await server.serve_forever()
"#;

/// Reads four pages at random of a file that it has written and read: 128 MB.
const READS_PAGES: &str = r#"
with open(sys.argv[2], "wb") as file:
    for _ in range(128): file.write(os.urandom(1 << 20))
    file.flush()
    os.fsync(file.fileno())
file = os.open(sys.argv[2], os.O_RDONLY)
while os.read(file, 1 << 20): pass
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
def before():
    for _ in range(4): os.pread(file, 4096, 4096 * random.randrange(128 << 8))
"#;

const RUN: &str = "asyncio.run(serve())";

/// Sweeps until a cause is named that can be relied on, twice at most.
fn named(place: &Place, url: &str, args: [&str; 4]) -> Option<Value> {
    let sweep = || ["sweep", url].into_iter().chain(args);
    named_by(place, 2, || place.wrapped(["taskset", "-c", "1"], sweep()).run())
}

fn succeeds(command: &str) -> bool {
    let words: Vec<&str> = command.split(' ').collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A network namespace behind a virtual link. Processor 0 handles what arrives at either end, and each packet goes through
/// filters that divide. How long a list of addresses takes would depend on what other programs leave in the caches.
struct Filtered {
    name: String,
    address: [u8; 4],
}

impl Filtered {
    /// `None` where the kernel cannot do this.
    fn make() -> Option<Self> {
        let pid = std::process::id();
        // 198.18.0.0/15 is for benchmarks (RFC 2544).
        let it = Self { name: format!("nsk{pid}"), address: [198, 19, (pid % 250) as u8, 2] };
        let (name, [a, b, c, _]) = (&it.name, it.address);
        let made = [
            format!("ip netns add {name}"),
            format!("ip link add {name}a type veth peer name {name}b netns {name}"),
            format!("ip addr add {a}.{b}.{c}.1/24 dev {name}a"),
            format!("ip link set {name}a up"),
            format!("ip -n {name} addr add {a}.{b}.{c}.2/24 dev {name}b"),
            format!("ip -n {name} link set {name}b up"),
            format!("tc -n {name} qdisc add dev {name}b ingress"),
        ];
        let steered = made.iter().all(|command| succeeds(command)) && it.on_processor_0();
        (steered && it.filter()).then_some(it)
    }

    fn on_processor_0(&self) -> bool {
        let name = &self.name;
        let steer = |end: &str| format!("echo 1 > /sys/class/net/{name}{end}/queues/rx-0/rps_cpus");
        let run = |command: &mut Command| command.status().is_ok_and(|status| status.success());
        run(Command::new("sh").args(["-c", &steer("a")]))
            && run(Command::new("ip").args(["netns", "exec", name, "sh", "-c", &steer("b")]))
    }

    fn filter(&self) -> bool {
        let program = NamedTempFile::new().expect("a file");
        fs::write(&program, divisions(1900)).expect("a file can be written");
        let filter = |preference: u32| {
            format!(
                "filter add dev {}b ingress protocol ip prio {preference} bpf bytecode-file {} flowid :1\n",
                self.name,
                program.path().display()
            )
        };
        let filters: String = (1..=60).map(filter).collect();
        let tc = Command::new("tc").args(["-n", &self.name, "-batch", "-"]).stdin(Stdio::piped()).spawn();
        let Ok(mut tc) = tc else { return false };
        let written = tc.stdin.take().is_some_and(|mut stdin| stdin.write_all(filters.as_bytes()).is_ok());
        tc.wait().is_ok_and(|status| status.success()) && written
    }
}

/// A classic BPF program, as `tc` reads it, that divides so many times and matches no packet.
fn divisions(count: usize) -> String {
    let (load, load_divisor, divide, no_match) = ("0 0 0 4294967291", "1 0 0 3", "60 0 0 0", "6 0 0 0");
    let program: Vec<&str> =
        [load, load_divisor].into_iter().chain(repeat_n(divide, count)).chain([no_match]).collect();
    format!("{},{}\n", program.len(), program.join(","))
}

impl Drop for Filtered {
    fn drop(&mut self) {
        succeeds(&format!("ip netns del {}", self.name));
    }
}

#[test]
fn a_processor_full_of_soft_interrupts_is_named() {
    let test = "a_processor_full_of_soft_interrupts_is_named";
    if !is_root_or_skip(test) || !has_two_cores_or_skip(test) {
        return;
    }
    let place = Place::new();
    let Some(filtered) = Filtered::make() else {
        eprintln!("SKIPPED {test}: it needs network namespaces, receive packet steering and packet filters");
        return;
    };
    let port = free_port();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &filtered.name, "taskset", "-c", "1", "python3", "-c"]);
    command.args([&format!("{ONE_THREAD}{RUN}"), &port.to_string()]);
    let server = Server::at((filtered.address, port).into(), command);
    let Some(run) = named(&place, &server.url("/"), ["-c", "1,2,4,8,16", "-d", "1s"]) else { return };
    if !is_said(&run, &["softirq"]) {
        return;
    }
    assert_eq!(verdict(&run)["bottleneck"]["holder"], "processor 0", "{}", verdict(&run));
}

/// A cgroup that may use 48 MB of memory, cached files included, and may read from a disk 1 000 times a second once told so.
struct LittleMemory {
    /// Of version 1 one for each controller, of version 2 one.
    folders: Vec<PathBuf>,
    reads: (PathBuf, String),
}

impl LittleMemory {
    /// `None` where no such cgroup can be made.
    fn make(folder: &Path) -> Option<Self> {
        let (root, name) = (Path::new("/sys/fs/cgroup"), format!("nstar-test-{}", std::process::id()));
        let number = device(folder)?;
        let (folders, limit, reads) = if root.join("memory").is_dir() {
            let folders = vec![root.join("memory").join(&name), root.join("blkio").join(&name)];
            let reads = folders[1].join("blkio.throttle.read_iops_device");
            (folders.clone(), folders[0].join("memory.limit_in_bytes"), (reads, format!("{number} 1000")))
        } else {
            fs::write(root.join("cgroup.subtree_control"), "+memory +io").ok()?;
            let group = root.join(&name);
            let reads = (group.join("io.max"), format!("{number} riops=1000"));
            (vec![group.clone()], group.join("memory.max"), reads)
        };
        let it = Self { folders, reads };
        it.folders.iter().try_for_each(fs::create_dir).ok()?;
        fs::write(limit, (48 << 20).to_string()).ok()?;
        Some(it)
    }

    /// Limits reads from now on.
    fn slow_down(&self) -> bool {
        fs::write(&self.reads.0, &self.reads.1).is_ok()
    }
}

impl Drop for LittleMemory {
    fn drop(&mut self) {
        // A group goes only once it is empty.
        let deadline = Instant::now() + Duration::from_secs(5);
        for folder in &self.folders {
            while fs::remove_dir(folder).is_err() && folder.is_dir() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// The number of the block device that a folder is on, such as `254:0`; `None` where it is in memory.
fn device(folder: &Path) -> Option<String> {
    let number = fs::metadata(folder).ok()?.dev();
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xfff00);
    (major > 0).then(|| format!("{major}:{minor}"))
}

#[test]
fn a_server_that_reads_again_what_its_cgroup_evicted_lacks_memory() {
    let test = "a_server_that_reads_again_what_its_cgroup_evicted_lacks_memory";
    if !is_root_or_skip(test) || !has_two_cores_or_skip(test) {
        return;
    }
    let place = Place::new();
    let folder = TempDir::new().expect("a folder");
    let Some(group) = LittleMemory::make(folder.path()) else {
        eprintln!("SKIPPED {test}: it needs a cgroup with a limit on memory, and temporary files on a disk");
        return;
    };
    let join: String =
        group.folders.iter().map(|at| format!("echo $$ > {}/cgroup.procs && ", at.display())).collect();
    let port = free_port();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{join} exec taskset -c 0 python3 -c \"$@\""), "sh"]);
    command
        .arg(format!("{ONE_THREAD}{READS_PAGES}{RUN}"))
        .arg(port.to_string())
        .arg(folder.path().join("pages"));
    let server = Server::at(([127, 0, 0, 1], port).into(), command);
    if !group.slow_down() {
        eprintln!("SKIPPED {test}: it needs a limit on what a cgroup may read from this disk");
        return;
    }
    let Some(run) = named(&place, &server.url("/"), ["-c", "1,2,4", "-d", "2500ms"]) else { return };
    if !is_said(&run, &["memory"]) {
        return;
    }
    let holder = verdict(&run)["bottleneck"]["holder"].as_str().expect("a holder");
    assert!(holder.starts_with("python3"), "{}", verdict(&run));
    drop(server);
}
