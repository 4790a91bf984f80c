//! The differences between the two servers: programs, arguments, URLs.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
};

use crate::settings::{DatabaseError, Password, Settings};

/// The names of a server's data folder and of its folder for temporary files, within its own folder.
pub(crate) const DATA: &str = "data";
pub(crate) const TEMPORARY: &str = "temporary";
/// The names of the files of a server's identity, within its folder.
pub(crate) const CERTIFICATE: &str = "certificate.pem";
pub(crate) const KEY: &str = "key.pem";

/// A kind of database server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// MariaDB.
    Mariadb,
    /// PostgreSQL.
    Postgres,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mariadb => "MariaDB",
            Self::Postgres => "PostgreSQL",
        }
    }

    /// The path of the server's program.
    ///
    /// # Errors
    /// When it is not installed. The error says how to install it.
    pub fn program(self) -> Result<PathBuf, DatabaseError> {
        let (program, package) = match self {
            Self::Mariadb => ("mariadbd", "mariadb-server"),
            Self::Postgres => ("postgres", "postgresql"),
        };
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain(["/usr/sbin".into()]).chain(debian_folders());
        folders
            .map(|folder| folder.join(program))
            .find_map(|program| program.canonicalize().ok())
            .ok_or(DatabaseError::NotInstalled { kind: self.name(), program, package })
    }

    /// The program that creates a server's files.
    pub(crate) fn initializer(self, program: &Path) -> PathBuf {
        match self {
            Self::Mariadb => "mariadb-install-db".into(),
            Self::Postgres => program.with_file_name("initdb"),
        }
    }

    pub(crate) fn initializer_arguments(self, folder: &Path) -> Vec<String> {
        let data = folder.join(DATA);
        let data = data.display();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Mariadb => {
                let mut all =
                    words(&["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
                all.push(format!("--datadir={data}"));
                all.push(temporary(folder));
                all
            }
            Self::Postgres => {
                let mut all =
                    words(&["-U", "postgres", "-A", "reject", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]);
                all.push(data.to_string());
                all
            }
        }
    }

    /// The statements by which the administrator lets the user `nstar` in, and nobody else; one per line.
    pub(crate) fn first_statements(self, password: &Password, network: bool) -> String {
        let password = password.text();
        let from = if network { "%" } else { "127.0.0.1" };
        match self {
            // Not an administrator, because those may open one connection more than others, and can write files.
            Self::Mariadb => format!(
                "DELETE FROM mysql.global_priv WHERE User IN ('root', '');\n\
                 FLUSH PRIVILEGES;\n\
                 CREATE USER IF NOT EXISTS nstar@'{from}' IDENTIFIED BY '{password}';\n\
                 GRANT ALL ON `nstar%`.* TO nstar@'{from}';\n\
                 GRANT PROCESS, RELOAD ON *.* TO nstar@'{from}';\n"
            ),
            // A superuser could run programs by COPY .. TO PROGRAM. Before version 15 only superusers can checkpoint.
            Self::Postgres => format!(
                "CREATE ROLE nstar LOGIN CREATEDB PASSWORD '{password}'\n\
                 DO 'BEGIN IF to_regrole(''pg_checkpoint'') IS NOT NULL THEN GRANT pg_checkpoint TO nstar; END IF; END'\n"
            ),
        }
    }

    /// The arguments with which the server executes statements from its stdin as its administrator, without listening.
    /// `None` if it reads them from `init.sql` whenever it starts.
    pub(crate) fn statement_arguments(self, folder: &Path) -> Option<Vec<String>> {
        let data = folder.join(DATA).display().to_string();
        let words = ["--single", "-c", "exit_on_error=on", "-D", &data, "postgres"];
        (self == Self::Postgres).then(|| words.map(str::to_owned).to_vec())
    }

    /// The variable from which the command-line clients take the password.
    pub(crate) fn password_variable(self) -> &'static str {
        match self {
            Self::Mariadb => "MYSQL_PWD",
            Self::Postgres => "PGPASSWORD",
        }
    }

    pub(crate) fn run_arguments(self, folder: &Path, port: u16, settings: &Settings) -> Vec<String> {
        let (connections, memory) = (settings.connections, settings.memory_mib);
        let address = if settings.network { "0.0.0.0" } else { "127.0.0.1" };
        let data = folder.join(DATA);
        let data = data.display();
        let mut all = match self {
            Self::Mariadb => vec![
                "--no-defaults".into(),
                format!("--datadir={data}"),
                temporary(folder),
                format!("--port={port}"),
                format!("--bind-address={address}"),
                format!("--socket={data}/socket"),
                "--skip-name-resolve".into(),
                format!("--init-file={}", folder.join("init.sql").display()),
                format!("--max-connections={connections}"),
                format!("--innodb-buffer-pool-size={memory}M"),
                format!("--innodb-log-file-size={}M", memory.div_ceil(2)),
            ],
            Self::Postgres => {
                let mut all: Vec<String> = vec!["-D".into(), data.to_string()];
                all.extend(["-p".into(), port.to_string(), "-h".into(), address.into()]);
                all.extend(["-k".into(), data.to_string(), "-N".into(), connections.to_string()]);
                all.extend(["-c".into(), "superuser_reserved_connections=0".into()]);
                all.extend(["-c".into(), format!("shared_buffers={memory}MB")]);
                all
            }
        };
        if settings.identity.is_some() {
            all.extend(self.identity_arguments(folder));
        }
        all
    }

    fn identity_arguments(self, folder: &Path) -> Vec<String> {
        let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
        let (certificate, key) = (certificate.display(), key.display());
        match self {
            Self::Mariadb => vec![format!("--ssl-cert={certificate}"), format!("--ssl-key={key}")],
            Self::Postgres => {
                ["ssl=on".into(), format!("ssl_cert_file={certificate}"), format!("ssl_key_file={key}")]
                    .into_iter()
                    .flat_map(|setting| ["-c".into(), setting])
                    .collect()
            }
        }
    }

    /// The command-line client, and its arguments for a database. The statements are added to the arguments or written to
    /// its stdin.
    pub(crate) fn client(self, port: u16, database: Option<&str>) -> (&'static str, Vec<String>) {
        let port = port.to_string();
        let (program, words) = match self {
            Self::Mariadb => {
                let at = [
                    "--no-defaults",
                    "-n",
                    "-h127.0.0.1",
                    "-unstar",
                    "-P",
                    &port,
                    "-D",
                    database.unwrap_or(""),
                ];
                ("mariadb", at.to_vec())
            }
            Self::Postgres => {
                let database = database.unwrap_or("postgres");
                (
                    "psql",
                    vec!["-h", "127.0.0.1", "-U", "nstar", "-w", "-p", &port, "-X", "-q", "-d", database],
                )
            }
        };
        (program, words.into_iter().map(str::to_owned).collect())
    }

    /// The client's flag for a statement to execute.
    pub(crate) fn statement_flag(self) -> &'static str {
        match self {
            Self::Mariadb => "-e",
            Self::Postgres => "-c",
        }
    }

    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Self::Mariadb => "mysql",
            Self::Postgres => "postgres",
        }
    }
}

/// The option for a folder of its own for temporary files. When MariaDB starts, it removes all temporary tables in that
/// folder, even those of other servers.
fn temporary(folder: &Path) -> String {
    format!("--tmpdir={}", folder.join(TEMPORARY).display())
}

/// The folders in which Debian keeps PostgreSQL's programs.
fn debian_folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).collect()
}
