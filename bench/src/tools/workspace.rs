//! Where a benchmark runs: a temporary folder, the programs of this build, and servers on a processor of their own.

use std::{
    env, fs,
    io::Read,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tempfile::{NamedTempFile, TempDir};

use crate::tools::{cpu, effort::Result};

/// The processor of the servers.
pub(crate) const SERVERS: usize = 0;
/// The processor of the clients.
pub(crate) const CLIENTS: usize = 1;
/// Both processors, where servers and clients share them.
pub(crate) const SHARED: &str = "0,1";

/// Workers of the models that have a fixed number: more than the users of any case.
const WORKERS: &str = "40";

/// A temporary folder and the programs of this build.
pub(crate) struct Workspace {
    folder: TempDir,
    programs: PathBuf,
}

/// A running server, and where it listens.
pub(crate) struct ServerProcess {
    pub address: SocketAddr,
    child: Child,
}

impl Workspace {
    pub(crate) fn new() -> Result<Self> {
        allow_many_descriptors()?;
        let programs = env::current_exe()?.parent().ok_or("no folder of programs")?.to_path_buf();
        Ok(Workspace { folder: TempDir::new()?, programs })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of one of our own programs.
    pub(crate) fn ours(&self, name: &str) -> String {
        self.programs.join(name).display().to_string()
    }

    /// The command line of our own nstar, with flags that are separated by spaces.
    pub(crate) fn nstar(&self, flags: &str) -> Vec<String> {
        [self.ours("nstar")].into_iter().chain(flags.split_whitespace().map(String::from)).collect()
    }

    /// Writes a file of this many bytes and returns its path.
    pub(crate) fn file(&self, name: &str, bytes: usize) -> Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, vec![b'x'; bytes])?;
        Ok(path)
    }

    /// Starts a server on the servers' processor. `words` makes its command line from the address to listen at.
    pub(crate) fn serve(
        &self,
        words: impl FnOnce(SocketAddr) -> Result<Vec<String>>,
    ) -> Result<ServerProcess> {
        self.serve_on(&SERVERS.to_string(), words)
    }

    /// Starts a server on a list of processors.
    fn serve_on(
        &self,
        processors: &str,
        words: impl FnOnce(SocketAddr) -> Result<Vec<String>>,
    ) -> Result<ServerProcess> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let pinned = ["taskset", "-c", processors].map(String::from);
        self.serve_at(&[&pinned[..], &words(address)?].concat(), |_| Ok(address))
    }

    /// Starts a server whose address is known only once its process runs.
    pub(crate) fn serve_at(
        &self,
        words: &[String],
        address: impl FnOnce(u32) -> Result<SocketAddr>,
    ) -> Result<ServerProcess> {
        let [program, arguments @ ..] = words else { return Err("no program".into()) };
        let mut log = NamedTempFile::new_in(self.folder.path())?;
        let child = Command::new(program)
            .args(arguments)
            .env("PATH", programs_path())
            // A server may leave files in its working folder.
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.reopen()?)
            .spawn()
            .map_err(|error| format!("cannot start {words:?}: {error}"))?;
        let mut server = ServerProcess { address: ([127, 0, 0, 1], 0).into(), child };
        server.address = address(server.pid())?;
        bench::wait_for(server.address).map_err(|error| {
            let mut said = String::new();
            // Its log, as far as it can be read.
            let _ = log.read_to_string(&mut said);
            format!("{words:?} does not listen: {error}: {said}")
        })?;
        Ok(server)
    }

    /// Starts one of our servers with one event loop.
    pub(crate) fn serve_ours(&self, flags: &[&str]) -> Result<ServerProcess> {
        self.serve_nstar(&[flags, &["--loops", "1"]].concat())
    }

    /// Starts one of our servers on a concurrency model, with one loop if the model has loops.
    pub(crate) fn serve_ours_on(&self, model: &str, flags: &[&str]) -> Result<ServerProcess> {
        let flags = [flags, &["--engine", model]].concat();
        match model {
            "threads" | "processes" => self.serve_nstar(&flags),
            "pool" | "prefork" => self.serve_nstar(&[&flags[..], &["--workers", WORKERS]].concat()),
            _ => self.serve_ours(&flags),
        }
    }

    /// Starts one of our servers on a concurrency model, with the limits and time-outs that it has by default.
    pub(crate) fn serve_ours_as_shipped(&self, model: &str, flags: &[&str]) -> Result<ServerProcess> {
        self.serve_nstar(&[flags, &["--engine", model]].concat())
    }

    /// Starts one of our servers on both processors, which it shares with its clients.
    pub(crate) fn serve_ours_shared(&self, flags: &[&str]) -> Result<ServerProcess> {
        self.serve_on(SHARED, |address| Ok(self.nstar_words(flags, address)))
    }

    fn serve_nstar(&self, flags: &[&str]) -> Result<ServerProcess> {
        self.serve(|address| Ok(self.nstar_words(flags, address)))
    }

    fn nstar_words(&self, flags: &[&str], address: SocketAddr) -> Vec<String> {
        let (program, address) = (self.ours("nstar-lab"), address.to_string());
        let words = [&[&program, "serve"], flags, &["--listen", &address]].concat();
        words.into_iter().map(String::from).collect()
    }
}

impl ServerProcess {
    /// CPU time of the server and its descendants so far, in seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        cpu::of_tree(self.child.id())
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Fails only if the process has ended.
            let _ = kill_process(pid, Signal::TERM);
        }
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a program is on the path.
pub(crate) fn installed(program: &str) -> bool {
    env::split_paths(&programs_path()).any(|folder| folder.join(program).is_file())
}

/// The search path of programs, with the folders of administrators, where nginx is.
fn programs_path() -> String {
    format!("{}:/usr/sbin:/sbin", env::var("PATH").unwrap_or_default())
}

/// Raises this process's limit on descriptors as far as allowed; the programs it starts inherit it.
fn allow_many_descriptors() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}
