//! A folder, a part of the machine, and real servers to drive.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::{
    io,
    net::{SocketAddr, TcpStream},
    ops::Deref,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::machine::{Company, Machine};
use super::program::tree::children;
pub(crate) use super::program::*;

/// A folder of its own, the program run in it, and a part of the machine.
pub(crate) struct Place {
    folder: Folder,
    _machine: Machine,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Place {
    /// A place with the machine to itself, for a test that relies on what it measures.
    pub(crate) fn new() -> Self {
        Self::in_company(Company::None)
    }

    /// A place for a test whose server sleeps, beside a few others of this kind.
    pub(crate) fn beside_sleepers() -> Self {
        Self::in_company(Company::Sleepers)
    }

    /// A place beside other tests, for one that holds whatever is measured.
    pub(crate) fn beside_others() -> Self {
        Self::in_company(Company::Any)
    }

    fn in_company(company: Company) -> Self {
        let machine = Machine::shared_with(company);
        Place { folder: Folder::new(), _machine: machine }
    }

    /// `nstar sweep` of a server, to its end.
    pub(crate) fn sweep<'a>(&self, server: &Server, args: impl IntoIterator<Item = &'a str>) -> Outcome {
        let words = ["sweep".to_string(), server.url("/")].into_iter();
        self.nstar(words.chain(args.into_iter().map(String::from))).run()
    }

    /// The run file written here.
    pub(crate) fn run_file(&self) -> Value {
        let text = std::fs::read_to_string(self.path("run.json")).expect("a run file");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// A server of somebody else's, stopped when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    child: Child,
    folder: Option<TempDir>,
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// nginx with one worker and a 1 KiB file at `/`, on the given processors.
    pub(crate) fn nginx(processors: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let port = free_port();
        std::fs::write(folder.path().join("index.html"), vec![b'x'; 1024]).expect("a file");
        let configuration = nginx_configuration(folder.path(), port);
        std::fs::write(folder.path().join("nginx.conf"), configuration).expect("a file");
        let mut command = Command::new("taskset");
        command.args(["-c", processors, "nginx", "-p"]).arg(folder.path()).args([
            "-e",
            "error.log",
            "-c",
            "nginx.conf",
        ]);
        command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
        Self::spawn(command, port, Some(folder))
    }

    /// A Python program that is given its port as its first argument.
    pub(crate) fn python(program: &str) -> Self {
        Self::python_with(program, &[])
    }

    /// The same with variables in its environment.
    pub(crate) fn python_with(program: &str, variables: &[(&str, &str)]) -> Self {
        let port = free_port();
        let mut command = Command::new("python3");
        command.args(["-c", program, &port.to_string()]).envs(variables.iter().copied());
        Self::spawn(command, port, None)
    }

    /// `python3 -m http.server` on a folder with one small page.
    pub(crate) fn python_http() -> Self {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("index.html"), "hello").expect("a file");
        let port = free_port();
        let mut command = Command::new("python3");
        command.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]).arg(folder.path());
        command.arg(port.to_string());
        Self::spawn(command, port, Some(folder))
    }

    fn spawn(command: Command, port: u16, folder: Option<TempDir>) -> Self {
        let mut server = Self::at(([127, 0, 0, 1], port).into(), command);
        server.folder = folder;
        server
    }

    /// Any program that serves this address.
    pub(crate) fn at(address: SocketAddr, mut command: Command) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}; run make setup"));
        let mut server = Server { address, child, folder: None };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let listens = TcpStream::connect(server.address).is_ok();
            let ended = server.child.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < deadline, "{command:?} does not listen: {ended:?}");
            if listens {
                return server;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx's master ends its workers when told to; nothing else here has children.
        signal_if_alive(&mut self.child);
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }
}

fn signal_if_alive(child: &mut Child) {
    if matches!(child.try_wait(), Ok(None)) {
        signal(child.id(), "TERM");
    }
}

/// Kills a process and its children, as a power cut would.
pub(crate) fn kill_tree(pid: u32) {
    let children = children(pid);
    signal(pid, "KILL");
    children.into_iter().for_each(|child| signal(child, "KILL"));
}

/// A limit of a cgroup: its controller, and the file that sets it and its text, of version 1 and of version 2.
pub(crate) struct Limit<'a> {
    pub(crate) controller: &'a str,
    pub(crate) files: [(&'a str, &'a str); 2],
}

/// A cgroup, of either version, with a limit, gone when dropped. Needs root.
pub(crate) struct Cgroup {
    folder: PathBuf,
    tasks: String,
    /// The file that holds the limit.
    limit: PathBuf,
}

/// Where cgroups of version 2 are mounted, and below it the controllers of version 1.
const CGROUPS: &str = "/sys/fs/cgroup";

impl Cgroup {
    /// With a part of a core.
    pub(crate) fn of_a_core(share: f64) -> Self {
        let quota_us = (100_000.0 * share) as u64;
        let root = Path::new(CGROUPS);
        if !root.join("cpu").is_dir() {
            // It may be enabled already.
            let _ = std::fs::write(root.join("cgroup.subtree_control"), "+cpu");
        }
        // The period of version 1 is a tenth of a second.
        let [of_version_1, of_version_2] = [quota_us.to_string(), format!("{quota_us} 100000")];
        let files = [("cpu.cfs_quota_us", &*of_version_1), ("cpu.max", &*of_version_2)];
        Self::limited(&Limit { controller: "cpu", files }).expect("a cgroup with a quota")
    }

    /// An error where no group with such a limit can be made, or not without a change to those around it.
    pub(crate) fn limited(limit: &Limit<'_>) -> io::Result<Self> {
        let of_version_1 = Path::new(CGROUPS).join(limit.controller);
        let [version_1, version_2] = limit.files;
        let (parent, (file, text)) =
            if of_version_1.is_dir() { (of_version_1, version_1) } else { (CGROUPS.into(), version_2) };
        let folder = parent.join(format!("nstar-test-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let tasks = folder.join("cgroup.procs").display().to_string();
        let group = Self { limit: folder.join(file), folder, tasks };
        std::fs::write(&group.limit, text)?;
        Ok(group)
    }

    pub(crate) fn tasks(&self) -> &str {
        &self.tasks
    }

    /// A Python program in it that is given its port as its first argument.
    pub(crate) fn python(&self, program: &str) -> Server {
        let port = free_port();
        let enter = "echo $$ > \"$0\" && exec python3 -c \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", enter, self.tasks(), program, &port.to_string()]);
        Server::at(([127, 0, 0, 1], port).into(), command)
    }

    /// The limit that is in force.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.limit).expect("a limit")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A group goes only once it is empty.
        let deadline = Instant::now() + Duration::from_secs(5);
        while std::fs::remove_dir(&self.folder).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn nginx_configuration(folder: &Path, port: u16) -> String {
    let user = if is_root() { "user root;" } else { "" };
    format!(
        "{user} daemon off; worker_processes 1; pid nginx.pid; error_log error.log;
         events {{ worker_connections 4096; }}
         http {{ access_log off; sendfile on; open_file_cache max=100; keepalive_requests 1000000000;
           client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0}; uwsgi_temp_path {0}; scgi_temp_path {0};
           server {{ listen 127.0.0.1:{port}; root {0}; }} }}",
        folder.display()
    )
}

/// How many processors this test may use; under CI there must be two.
pub(crate) fn has_two_cores_or_skip(test: &str) -> bool {
    let enough = thread::available_parallelism().is_ok_and(|cores| cores.get() >= 2);
    assert!(enough || std::env::var_os("CI").is_none(), "{test} needs two processors, and CI must have them");
    if !enough {
        eprintln!("SKIPPED {test}: it needs two processors");
    }
    enough
}
