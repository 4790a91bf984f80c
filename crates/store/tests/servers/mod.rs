//! Database servers of the tests' own: in a temporary folder, on a free port, as an ordinary user.

use std::{
    cell::{Cell, RefCell},
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use store::Database;
use tempfile::TempDir;

/// A generous bound: reached only by what would never happen.
const PATIENCE: Duration = Duration::from_secs(120);
/// Connections that a server allows.
pub(crate) const CONNECTIONS: usize = 25;
/// Of the user `locked` of MariaDB. The other, `nstar`, needs none.
pub(crate) const PASSWORD: &str = "hush: hush@home/";
/// Whom servers run as where the tests run as root: nobody.
const NOBODY: u32 = 65_534;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Mariadb,
    Postgres,
}

/// A running server; killed when dropped.
pub(crate) struct DatabaseServer {
    kind: Kind,
    port: u16,
    child: RefCell<Option<Child>>,
    made: Cell<u32>,
    folder: TempDir,
}

impl DatabaseServer {
    /// Makes its files and starts it; `None`, told loudly, where it is not installed and this is not CI.
    pub(crate) fn start(kind: Kind) -> Option<Self> {
        let Some(program) = kind.program() else {
            assert!(std::env::var_os("CI").is_none(), "{kind:?} is missing: run scripts/setup-tests");
            eprintln!("SKIPPED: {kind:?} is missing, so nothing was tried on it: run scripts/setup-tests");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        if is_root() {
            chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { kind, port, child: RefCell::default(), made: Cell::new(0), folder };
        let made =
            as_nobody(&kind.maker(&program)).args(kind.make_arguments(&server.data())).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        server.restart();
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts it, again if need be, and waits until it answers.
    pub(crate) fn restart(&self) {
        self.kill();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut child = self.child.borrow_mut();
            // After a kill it may refuse to start until the last of its old processes has ended.
            let ended = child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
            if ended {
                *child = Some(self.spawn());
            }
            drop(child);
            if self.command("SELECT 1", None).status.success() {
                return;
            }
            assert!(Instant::now() < deadline, "{:?} does not start: {}", self.kind, self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// As a power cut would end it.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.borrow_mut().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn spawn(&self) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        as_nobody(&self.kind.program().unwrap())
            .args(self.kind.run_arguments(&self.data(), self.port))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Forgets all databases but the last and writes that one out: after a kill PostgreSQL syncs every file it has.
    pub(crate) fn settle(&self) {
        if self.kind != Kind::Postgres {
            return;
        }
        let mut command = self.client("CHECKPOINT", None);
        for number in 0..self.made.get().saturating_sub(1) {
            command.args(["-c", &format!("DROP DATABASE IF EXISTS test_{number} WITH (FORCE)")]);
        }
        let settled = command.args(["-c", "CHECKPOINT"]).output().unwrap();
        assert!(settled.status.success(), "{settled:?}");
    }

    /// A new, empty database.
    pub(crate) fn database(&self) -> Database {
        let name = format!("test_{}", self.made.get());
        self.made.set(self.made.get() + 1);
        let made = self.command(&format!("CREATE DATABASE {name}"), None);
        assert!(made.status.success(), "{made:?}");
        self.url(&name, "").parse().unwrap()
    }

    /// The URL of a database, with this password.
    pub(crate) fn url(&self, name: &str, password: &str) -> String {
        let (scheme, user) = match self.kind {
            Kind::Mariadb => ("mysql", "nstar"),
            Kind::Postgres => ("postgres", "nstar"),
        };
        let password = if password.is_empty() { String::new() } else { format!(":{password}") };
        format!("{scheme}://{user}{password}@127.0.0.1:{}/{name}", self.port)
    }

    /// Whether a wrong password is refused: PostgreSQL trusts everybody here.
    pub(crate) fn asks_for_passwords(&self) -> bool {
        self.kind == Kind::Mariadb
    }

    fn command(&self, sql: &str, name: Option<&str>) -> Output {
        self.client(sql, name).output().unwrap()
    }

    fn client(&self, sql: &str, name: Option<&str>) -> Command {
        let port = self.port.to_string();
        let mut command = Command::new(match self.kind {
            Kind::Mariadb => "mariadb",
            Kind::Postgres => "psql",
        });
        match self.kind {
            Kind::Mariadb => command.args([
                "--no-defaults",
                "-h127.0.0.1",
                "-unstar",
                "-P",
                &port,
                "-e",
                sql,
                name.unwrap_or(""),
            ]),
            Kind::Postgres => command.args([
                "-h",
                "127.0.0.1",
                "-U",
                "nstar",
                "-p",
                &port,
                "-X",
                "-q",
                "-c",
                sql,
                name.unwrap_or("postgres"),
            ]),
        };
        command
    }

    /// Takes connections until there are no more.
    pub(crate) fn take_all_connections(&self) -> Vec<Sleeper> {
        let sleep = match self.kind {
            Kind::Mariadb => "SELECT SLEEP(300)",
            Kind::Postgres => "SELECT pg_sleep(300)",
        };
        let mut sleepers = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while self.command("SELECT 1", None).status.success() {
            assert!(Instant::now() < deadline && sleepers.len() < 2 * CONNECTIONS, "there is no limit");
            let quiet = || Stdio::null();
            sleepers.push(Sleeper(self.client(sleep, None).stdout(quiet()).stderr(quiet()).spawn().unwrap()));
        }
        sleepers
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A client that holds a connection; ended when dropped.
pub(crate) struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Kind {
    fn program(self) -> Option<PathBuf> {
        let name = match self {
            Self::Mariadb => "mariadbd",
            Self::Postgres => "postgres",
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]).chain(debian_folders());
        folders
            .map(|folder| folder.join(name))
            .find(|program| program.exists())
            .map(|program| program.canonicalize().unwrap())
    }

    /// The program that makes a server's files.
    fn maker(self, program: &Path) -> PathBuf {
        match self {
            Self::Mariadb => "mariadb-install-db".into(),
            Self::Postgres => program.with_file_name("initdb"),
        }
    }

    fn make_arguments(self, data: &Path) -> Vec<String> {
        let data = data.display();
        let words: Vec<String> = match self {
            Self::Mariadb => vec![
                "--no-defaults".into(),
                format!("--datadir={data}"),
                "--skip-test-db".into(),
                "--auth-root-authentication-method=normal".into(),
            ],
            Self::Postgres => ["-U", "nstar", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]
                .map(String::from)
                .into_iter()
                .chain([data.to_string()])
                .collect(),
        };
        words
    }

    fn run_arguments(self, data: &Path, port: u16) -> Vec<String> {
        let data = data.display();
        match self {
            Self::Mariadb => {
                // Not a superuser: those have a connection more than the others.
                let user = |name: &str, how: &str| {
                    format!(
                        "CREATE USER IF NOT EXISTS {name}@'127.0.0.1' {how};\nGRANT ALL ON `test%`.* TO {name}@'127.0.0.1';\n"
                    )
                };
                let locked = user("locked", &format!("IDENTIFIED BY '{PASSWORD}'"));
                let init = PathBuf::from(format!("{data}/../init.sql"));
                fs::write(&init, user("nstar", "") + &locked).unwrap();
                vec![
                    "--no-defaults".into(),
                    format!("--datadir={data}"),
                    format!("--port={port}"),
                    "--bind-address=127.0.0.1".into(),
                    format!("--socket={data}/socket"),
                    "--skip-name-resolve".into(),
                    format!("--init-file={}", init.display()),
                    format!("--max-connections={CONNECTIONS}"),
                    "--innodb-buffer-pool-size=32M".into(),
                    "--innodb-log-file-size=16M".into(),
                ]
            }
            Self::Postgres => vec![
                "-D".into(),
                data.to_string(),
                "-p".into(),
                port.to_string(),
                "-h".into(),
                "127.0.0.1".into(),
                "-k".into(),
                data.to_string(),
                "-N".into(),
                CONNECTIONS.to_string(),
                "-c".into(),
                "superuser_reserved_connections=0".into(),
            ],
        }
    }
}

/// Where Debian keeps the programs of PostgreSQL.
fn debian_folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).collect()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// As nobody where this is root, and gone with this thread.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".into()]);
    }
    command.arg("--").arg(program).current_dir("/");
    command
}
