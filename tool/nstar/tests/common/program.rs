//! Runs the real programs. Shared by every suite that does so, in the tool and in the testbed.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::{
    ffi::{OsStr, OsString},
    fmt,
    io::{BufRead, BufReader, Read},
    net::{TcpListener, UdpSocket},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, OnceLock, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

#[path = "build.rs"]
mod build;
#[path = "tree.rs"]
pub(crate) mod tree;

/// A generous bound on anything a test waits for: reached only by what would never happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A folder of its own, and the program run in it.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// `nstar ARGS`, to be run here. The testbed's commands, `lab`, `serve` and `share`, go to `nstar-lab` itself.
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
        let mut args = args.into_iter().map(|arg| arg.as_ref().to_owned()).peekable();
        let command = args.peek().and_then(|arg| arg.to_str()).unwrap_or_default();
        words.push(match command {
            "lab" | "serve" | "share" => lab_program().into(),
            _ => tool_program().into(),
        });
        words.extend(args.skip_while(|arg| arg == "lab"));
        self.call(words)
    }

    /// Any command, to be run here.
    pub(crate) fn call<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Nstar {
        let words = words.into_iter().map(|word| word.as_ref().into()).collect();
        Nstar { words, folder: self.0.path().into() }
    }
}

/// The tool. The testbed's tests find it beside their own program.
pub(crate) fn tool_program() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let beside = || {
        let program = lab_program().with_file_name("nstar");
        build::nstar(&program);
        program
    };
    option_env!("CARGO_BIN_EXE_nstar").map_or_else(|| FOUND.get_or_init(beside).clone(), PathBuf::from)
}

/// The testbed's program, which only its own tests run.
pub(crate) fn lab_program() -> PathBuf {
    match option_env!("CARGO_BIN_EXE_nstar-lab") {
        Some(program) => program.into(),
        None => panic!("tests of the tool do without the testbed"),
    }
}

/// One call of a program.
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

    /// Waits for the first line on stderr that holds the word; ends the program if it never comes.
    pub(crate) fn wait_for_stderr(&mut self, word: &str) -> String {
        self.stderr_until(word).unwrap_or_else(|said| panic!("never said '{word}': {said}"))
    }

    /// What it said on stderr until the word; as an error where it ended, or had to be ended, without it.
    pub(crate) fn stderr_until(&mut self, word: &str) -> Result<String, String> {
        let pid = self.pid();
        let (found, search) = mpsc::channel::<()>();
        let watchdog = thread::spawn(move || {
            if search.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                signal(pid, "KILL");
            }
        });
        let said = self.read_stderr_until(word);
        drop(found);
        watchdog.join().expect("the watchdog");
        said
    }

    fn read_stderr_until(&mut self, word: &str) -> Result<String, String> {
        let stderr = self.child.stderr.as_mut().expect("stderr");
        let mut said = String::new();
        let mut reader = BufReader::with_capacity(1, stderr);
        loop {
            let mut line = String::new();
            let ended = reader.read_line(&mut line).expect("stderr") == 0;
            said.push_str(&line);
            if ended {
                return Err(said);
            }
            if line.contains(word) {
                return Ok(said);
            }
        }
    }

    /// Waits until a server says where it listens.
    pub(crate) fn listening(&mut self) -> String {
        let line = self.first_line();
        let address = line.split_whitespace().find_map(|word| word.split_once("://"));
        let Some((_, address)) = address else {
            let mut said = String::new();
            let _ = self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
            panic!("no address in '{line}' of {:?}: {said}", self.call.words);
        };
        address.to_string()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Outcome {
        let stdout = collect(self.child.stdout.take().expect("stdout"));
        let stderr = collect(self.child.stderr.take().expect("stderr"));
        let ended = wait(&mut self.child);
        let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().expect("reader"));
        let words = &self.call.words;
        let status = ended.unwrap_or_else(|threads| {
            panic!("still running after {:?}: {words:?}\n{stdout}\n{stderr}\n{threads}", 2 * PATIENCE)
        });
        Outcome { call: self.call.clone(), status, stdout, stderr }
    }
}

/// A test that fails leaves nothing behind.
impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, where all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("a pipe");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits until it ends. Where that takes too long it is killed, and the error says what its threads were waiting for.
fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let deadline = Instant::now() + 2 * PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return Ok(status);
        }
        if Instant::now() > deadline {
            let threads = tree::states(child.id());
            let _ = child.kill();
            return Err(threads);
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
    /// What it said on stdout, in one line.
    pub(crate) fn in_one_line(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

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
        self.has_not_panicked()
    }

    #[track_caller]
    pub(crate) fn has_not_panicked(self) -> Self {
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

/// Whether this is root. Under CI root is a must, elsewhere its absence is told and the test skipped.
pub(crate) fn is_root_or_skip(test: &str) -> bool {
    let root = is_root();
    assert!(root || std::env::var_os("CI").is_none(), "{test} needs root, and CI must run it as root");
    if !root {
        eprintln!("SKIPPED {test}: it needs root");
    }
    root
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A port that nobody listens on, and that no other caller gets while this process runs.
///
/// Ports of this range are given neither to connections nor to listeners on port 0, nor do experiments start databases on
/// them: a port that is looked at now and used only later must not become another's meanwhile, or the test drives whatever
/// listens there. A UDP socket on the same port keeps other processes of tests away from it.
pub(crate) fn free_port() -> u16 {
    static KEPT: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    const FIRST: u16 = 2_000;
    const COUNT: u16 = 6_000;
    // Not where the process before this one began: its connections may linger.
    let offset = (std::process::id() % u32::from(COUNT)) as u16;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    for step in 0..COUNT {
        let port = FIRST + (offset + step) % COUNT;
        if let Ok(socket) = UdpSocket::bind(("127.0.0.1", port))
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
        {
            kept.push(socket);
            return port;
        }
    }
    panic!("no port from {FIRST} on is free");
}
