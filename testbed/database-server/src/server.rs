//! A running server.

use std::{
    cell::RefCell,
    fs,
    io::{self, Write},
    net::TcpListener,
    ops::Range,
    os::unix::fs::{OpenOptionsExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{self, Child, Command, Output, Stdio},
    sync::atomic::{AtomicU16, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    kind::{CERTIFICATE, DATA, KEY, Kind, TEMPORARY},
    settings::{DatabaseError, Host, Password, Settings},
};

/// The user as which servers run if this process is root, because they refuse to run as root.
const NOBODY: u32 = 65_534;

/// How long a server may take to start, generously.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How long a server may take to end when told to.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// A server of its own is ready once it answers.
const ANSWERS: Ready = Ready { statement: "SELECT 1", word: "1" };

/// A running server with files of its own. Dropping it stops the server and removes the files.
#[derive(Debug)]
pub struct DatabaseServer {
    kind: Kind,
    program: PathBuf,
    settings: Settings,
    password: Password,
    port: u16,
    /// Arguments for one of several servers that are one database.
    replication: RefCell<Vec<String>>,
    ready: Ready,
    child: RefCell<Option<Child>>,
    folder: TempDir,
}

/// How a server is seen to be ready: the reply to a statement contains a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) statement: &'static str,
    pub(crate) word: &'static str,
}

impl DatabaseServer {
    /// Creates the server's files, starts it, and waits until it replies.
    ///
    /// # Errors
    /// When it is not installed or does not start. The error holds the last line that it printed.
    pub fn start(kind: Kind, settings: Settings) -> Result<Self, DatabaseError> {
        let server = Self::prepare(kind, settings)?;
        server.make_database()?;
        server.restart()?;
        Ok(server)
    }

    /// A server without a data folder.
    pub(crate) fn prepare(kind: Kind, settings: Settings) -> Result<Self, DatabaseError> {
        let program = kind.program()?;
        let io = |what| move |source| DatabaseError::Io { kind: kind.name(), what, source };
        let folder = tempfile::tempdir().map_err(io("make a folder"))?;
        let port = match settings.port {
            Some(port) => port,
            None => free_port().map_err(io("find a free port"))?,
        };
        let password = settings.password_or_random().map_err(io("make a password"))?;
        let (ready, replication, child) = (ANSWERS, RefCell::default(), RefCell::default());
        let server = Self { kind, program, settings, password, port, replication, ready, child, folder };
        server.make_files().map_err(io("prepare a folder"))?;
        Ok(server)
    }

    /// Fills the data folder of a new server.
    pub(crate) fn make_database(&self) -> Result<(), DatabaseError> {
        let initializer = self.kind.initializer(&self.program);
        self.run_program(
            "create its files",
            &initializer,
            &self.kind.initializer_arguments(self.folder.path()),
        )?;
        self.let_its_user_in()
    }

    /// Runs one of the server's programs to its end, as its user. The password is in the environment.
    pub(crate) fn run_program(
        &self,
        what: &'static str,
        program: &Path,
        arguments: &[String],
    ) -> Result<(), DatabaseError> {
        let mut command = command(self.settings.host, program, None);
        command.args(arguments).env(self.password_variable(), self.password());
        let output = command.output();
        let output = output.map_err(|source| DatabaseError::Io { kind: self.kind.name(), what, source })?;
        match output.status.success() {
            true => Ok(()),
            false => Err(self.failed(what, &String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// Sets the arguments for one of several servers that are one database, from the next start on.
    pub(crate) fn replicate(&self, arguments: Vec<String>) {
        self.replication.replace(arguments);
    }

    /// Sets how the server is seen to be ready.
    pub(crate) fn ready_when(&mut self, ready: Ready) {
        self.ready = ready;
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn sibling(&self, program: &str) -> PathBuf {
        self.program.with_file_name(program)
    }

    /// Which kind of server it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Starts the server, after killing it if it runs, and waits until it replies.
    ///
    /// # Errors
    /// When it does not start. The error holds the last line of its log.
    pub fn restart(&self) -> Result<(), DatabaseError> {
        self.kill();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut child = self.child.borrow_mut();
            // After a kill, the server may refuse to start until the last of its old processes has ended.
            if child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None))) {
                let source =
                    |source| DatabaseError::Io { kind: self.kind.name(), what: "run the program", source };
                *child = Some(self.spawn().map_err(source)?);
            }
            drop(child);
            if self.is_ready() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(self.failed("start", &self.log()));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether it answers, and as one of several takes changes.
    pub fn is_ready(&self) -> bool {
        let answer = self.client(self.ready.statement, None).output();
        answer.is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).contains(self.ready.word))
    }

    /// Kills the server, as a power cut would.
    pub fn kill(&self) {
        if let Some(mut child) = self.child.borrow_mut().take() {
            // Both fail only if the process has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Creates an empty database. Its name must begin with `nstar`.
    ///
    /// # Errors
    /// When the server refuses. The error holds the last line of its reply.
    pub fn create(&self, name: &str) -> Result<(), DatabaseError> {
        let made = self.run(&format!("CREATE DATABASE {name}"), None)?;
        let said = String::from_utf8_lossy(&made.stderr);
        if made.status.success() { Ok(()) } else { Err(self.failed("make a database", &said)) }
    }

    /// The URL of a database, without the password.
    pub fn url(&self, name: &str) -> String {
        format!("{}://nstar@{}:{}/{name}", self.kind.scheme(), self.settings.for_clients(), self.port)
    }

    /// The password of its user. It goes into no argument and no file that others may read.
    pub fn password(&self) -> &str {
        self.password.text()
    }

    /// The variable from which the database's own clients take the password.
    pub fn password_variable(&self) -> &'static str {
        self.kind.password_variable()
    }

    /// Executes a statement with the command-line client and returns the client's output.
    ///
    /// # Errors
    /// When the client cannot be run.
    pub fn run(&self, sql: &str, database: Option<&str>) -> Result<Output, DatabaseError> {
        let source = |source| DatabaseError::Io { kind: self.kind.name(), what: "run the client", source };
        self.client(sql, database).output().map_err(source)
    }

    /// Prepares the command-line client to execute a statement.
    pub fn client(&self, sql: &str, database: Option<&str>) -> Command {
        let mut command = self.session(database);
        command.args([self.kind.statement_flag(), sql]);
        command
    }

    /// Prepares the command-line client to execute the statements on its stdin.
    pub fn session(&self, database: Option<&str>) -> Command {
        let (program, arguments) = self.kind.client(self.port, database);
        let mut command = on_host(self.settings.host, program);
        command.args(arguments).env(self.password_variable(), self.password());
        command
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn make_files(&self) -> io::Result<()> {
        let folder = self.folder.path();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        if self.kind.statement_arguments(folder).is_none() {
            self.write_secret(&folder.join("init.sql"), &self.first_statements())?;
        }
        for name in [DATA, TEMPORARY] {
            fs::create_dir(folder.join(name))?;
            own(&folder.join(name))?;
        }
        let Some(identity) = &self.settings.identity else { return Ok(()) };
        for (name, text) in [(CERTIFICATE, &identity.certificate), (KEY, &identity.key)] {
            self.write_secret(&folder.join(name), text)?;
        }
        Ok(())
    }

    fn first_statements(&self) -> String {
        let own = self.kind.first_statements(&self.password, self.settings.network);
        own + &self.settings.first_statements
    }

    /// Writes a file that only the server may read.
    fn write_secret(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        own(path)
    }

    /// Creates the user of a server that does not do so from a file, and lets in whoever knows a password.
    fn let_its_user_in(&self) -> Result<(), DatabaseError> {
        let folder = self.folder.path();
        let Some(arguments) = self.kind.statement_arguments(folder) else { return Ok(()) };
        let what = "create its user";
        let io = |source| DatabaseError::Io { kind: self.kind.name(), what, source };
        let mut command = command(self.settings.host, &self.program, None);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(io)?;
        let written = child.stdin.take().map(|mut stdin| stdin.write_all(self.first_statements().as_bytes()));
        let output = child.wait_with_output().map_err(io)?;
        if !output.status.success() {
            // Not what it said: that may repeat the statement, and so the password.
            return Err(self.failed(what, "it refused; see that this version is supported (13 or later)"));
        }
        written.transpose().map_err(io)?;
        let rules = folder.join(DATA).join("pg_hba.conf");
        let clients = if self.settings.network { "0.0.0.0/0" } else { "127.0.0.1/32" };
        fs::write(rules, format!("host all all {clients} scram-sha-256\n")).map_err(io)
    }

    fn spawn(&self) -> io::Result<Child> {
        let log = fs::File::options().create(true).append(true).open(self.folder.path().join("log"))?;
        command(self.settings.host, &self.program, self.settings.processors.as_deref())
            .args(self.kind.run_arguments(self.folder.path(), self.port, &self.settings))
            .args(&*self.replication.borrow())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    }

    pub(crate) fn failed(&self, what: &'static str, said: &str) -> DatabaseError {
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        DatabaseError::Failed { kind: self.kind.name(), what, said: last.unwrap_or("it said nothing").into() }
    }

    /// Lets the server shut down in order, because a PostgreSQL whose first process is killed leaves shared memory behind.
    fn stop(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        let mut child = self.child.borrow_mut();
        let Some(child) = child.as_mut() else { return };
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // For PostgreSQL, SIGINT means to stop without waiting for clients. Sending fails only if it has already ended.
            let signal = if self.kind == Kind::Postgres { Signal::INT } else { Signal::TERM };
            let _ = kill_process(pid, signal);
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        self.stop();
        self.kill();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Prepares the command for a program on a host, `None` being this one.
fn on_host(host: Option<Host>, program: &str) -> Command {
    let Some(host) = host else { return Command::new(program) };
    let mut command = Command::new("nsenter");
    command.args(["--net", "--target", &host.process.to_string(), program]);
    command
}

/// Prepares the command for a server's program: as nobody if this process is root, killed when the starting thread ends,
/// and on certain processors if there are `processors`.
fn command(host: Option<Host>, program: &Path, processors: Option<&[usize]>) -> Command {
    let mut command = on_host(host, "setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".into()]);
    }
    command.arg("--");
    if let Some(processors) = processors {
        let list: Vec<String> = processors.iter().map(usize::to_string).collect();
        command.args(["taskset", "-c", &list.join(",")]);
    }
    command.arg(program).current_dir("/");
    command
}

/// Gives a file to the user as which the server runs.
fn own(path: &Path) -> io::Result<()> {
    if is_root() { chown(path, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
}

/// Ports below those that Linux gives to outgoing connections (ip(7), `ip_local_port_range`: 32768 to 60999). A server
/// that is slow to start could find one of those taken, even by a client that connects to see whether it is up.
const PORTS: Range<u16> = 10_000..32_000;
/// The distance between the first ports that consecutive processes try.
const APART: u32 = 97;

/// Returns a port on which nothing listens now, a different one each time.
///
/// # Errors
/// When there is none.
pub fn free_port() -> io::Result<u16> {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let (count, begin) = (u32::from(PORTS.end - PORTS.start), process::id().wrapping_mul(APART));
    let next = || {
        let offset = begin.wrapping_add(TAKEN.fetch_add(1, Relaxed).into()) % count;
        PORTS.start + u16::try_from(offset).unwrap_or_default()
    };
    let mut ports = PORTS.map(|_| next());
    let free = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, "all ports are in use"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_differ_and_are_free_and_no_outgoing_connection_may_get_them() {
        let taken = TcpListener::bind(("127.0.0.1", free_port().unwrap())).unwrap();
        let ports: BTreeSet<_> = (0..100).map(|_| free_port().unwrap()).collect();
        assert!(ports.len() == 100 && !ports.contains(&taken.local_addr().unwrap().port()));
        assert!(ports.iter().all(|port| PORTS.contains(port)));
    }
}
