//! Drives the real program, and real servers for it to drive.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A generous bound on anything a test waits for: reached only by what would never happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Loads that run side by side would measure each other, so one test has the machine at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// A folder of its own, the program run in it, and the machine to itself.
pub(crate) struct Place {
    folder: TempDir,
    _machine: MutexGuard<'static, ()>,
}

impl Place {
    pub(crate) fn new() -> Self {
        // A test that failed while it had the machine leaves nothing behind that another would mind.
        let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        Place { folder: TempDir::new().expect("a temporary folder"), _machine: machine }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// `nstar ARGS`, to be run here.
    pub(crate) fn nstar<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Nstar {
        self.wrapped::<&str, A>([], args)
    }

    /// `WRAPPER .. nstar ARGS`, such as `prlimit --nofile=64 nstar ..`.
    pub(crate) fn wrapped<W: AsRef<OsStr>, A: AsRef<OsStr>>(
        &self,
        wrapper: impl IntoIterator<Item = W>,
        args: impl IntoIterator<Item = A>,
    ) -> Nstar {
        let mut words: Vec<OsString> = wrapper.into_iter().map(|word| word.as_ref().into()).collect();
        words.push(env!("CARGO_BIN_EXE_nstar").into());
        words.extend(args.into_iter().map(|arg| arg.as_ref().into()));
        Nstar { words, folder: self.folder.path().into() }
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

/// One call of the program.
#[derive(Clone)]
pub(crate) struct Nstar {
    words: Vec<OsString>,
    folder: PathBuf,
}

impl Nstar {
    /// Runs it to its end.
    pub(crate) fn run(&self) -> Outcome {
        self.start().finish()
    }

    /// Starts it and lets it run.
    pub(crate) fn start(&self) -> Running {
        let child = Command::new(&self.words[0])
            .args(&self.words[1..])
            .current_dir(&self.folder)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {:?}: {error}", self.words));
        Running { child, call: self.clone() }
    }
}

/// A call under way.
pub(crate) struct Running {
    child: Child,
    call: Nstar,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// The first line on stdout.
    pub(crate) fn first_line(&mut self) -> String {
        let stdout = self.child.stdout.as_mut().expect("stdout");
        let mut line = String::new();
        // One byte at a time, so that nothing beyond the line is taken from what comes after.
        BufReader::with_capacity(1, stdout).read_line(&mut line).expect("stdout");
        line
    }

    /// Waits for the first line on stderr that holds the word.
    pub(crate) fn wait_for_stderr(&mut self, word: &str) -> String {
        let stderr = self.child.stderr.as_mut().expect("stderr");
        let mut said = String::new();
        let mut reader = BufReader::with_capacity(1, stderr);
        loop {
            let mut line = String::new();
            assert_ne!(reader.read_line(&mut line).expect("stderr"), 0, "never said '{word}': {said}");
            said.push_str(&line);
            if line.contains(word) {
                return said;
            }
        }
    }

    pub(crate) fn finish(mut self) -> Outcome {
        let stdout = collect(self.child.stdout.take().expect("stdout"));
        let stderr = collect(self.child.stderr.take().expect("stderr"));
        let status = wait(&mut self.child, &self.call);
        Outcome {
            call: self.call,
            status,
            stdout: stdout.join().expect("reader"),
            stderr: stderr.join().expect("reader"),
        }
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("a pipe");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, call: &Nstar) -> ExitStatus {
    let deadline = Instant::now() + 2 * PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("still running after {:?}: {:?}", 2 * PATIENCE, call.words);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// How a call ended. Printed whole when an expectation fails.
pub(crate) struct Outcome {
    call: Nstar,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "wrong exit code\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.stdout.contains(words), "stdout lacks '{words}'\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn complains(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "stderr lacks '{words}'\n{self}");
        assert!(!self.stderr.contains("panicked"), "a panic\n{self}");
        self
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "command: {:?}", self.call.words)?;
        writeln!(f, "in:      {}", self.call.folder.display())?;
        writeln!(f, "status:  {}", self.status)?;
        writeln!(f, "stdout:\n{}", self.stdout)?;
        writeln!(f, "stderr:\n{}", self.stderr)
    }
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status().expect("kill");
    assert!(status.success(), "kill -s {name} {pid}");
}

/// A port nobody listens on just now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// A server of somebody else's, stopped when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    child: Child,
    _folder: Option<TempDir>,
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
        let port = free_port();
        let mut command = Command::new("python3");
        command.args(["-c", program, &port.to_string()]);
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

    fn spawn(mut command: Command, port: u16, folder: Option<TempDir>) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}; run make setup"));
        let mut server = Server { address: ([127, 0, 0, 1], port).into(), child, _folder: folder };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(server.address).is_err() {
            let ended = server.child.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < deadline, "{command:?} does not listen: {ended:?}");
            thread::sleep(Duration::from_millis(10));
        }
        server
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
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    signal(pid, "KILL");
    children
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .for_each(|child| signal(child, "KILL"));
}

/// A cgroup with a tenth of a core, gone when dropped. Needs root and cgroup v1.
pub(crate) struct CpuQuota {
    folder: PathBuf,
    tasks: String,
}

impl CpuQuota {
    pub(crate) fn tenth_of_a_core() -> Self {
        let folder = PathBuf::from(format!("/sys/fs/cgroup/cpu/nstar-test-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a cgroup");
        std::fs::write(folder.join("cpu.cfs_period_us"), "100000").expect("a period");
        std::fs::write(folder.join("cpu.cfs_quota_us"), "10000").expect("a quota");
        let tasks = folder.join("cgroup.procs").display().to_string();
        CpuQuota { folder, tasks }
    }

    pub(crate) fn tasks(&self) -> &str {
        &self.tasks
    }
}

impl Drop for CpuQuota {
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

/// Whether this is root. Under CI root is a must, elsewhere its absence is told and the test skipped.
pub(crate) fn is_root_or_skip(test: &str) -> bool {
    let root = is_root();
    assert!(root || std::env::var_os("CI").is_none(), "{test} needs root, and CI must run it as root");
    if !root {
        eprintln!("SKIPPED {test}: it needs root");
    }
    root
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
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
