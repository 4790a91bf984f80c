//! The command-line client of a database, as a child process that reads statements from a pipe.

use std::{
    env,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use analysis::run::{DatabaseClient, DatabaseTrouble};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::url::{Address, DatabaseUrl, Encryption};

/// How long a client tries to connect, seconds.
const CONNECT_S: u8 = 5;
/// The most of what a client says on stderr that is repeated, characters.
const SAID_MAX: usize = 400;
/// How long to wait for the output of a client that has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Where systems keep the authorities they trust, as one file in PEM: Debian, Fedora, Alpine and FreeBSD.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// A running client. Ends when dropped, and by itself when this process does.
#[derive(Debug)]
pub(super) struct Client {
    client: DatabaseClient,
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// Read, and not yet asked for.
    read: Vec<u8>,
}

impl Client {
    /// Starts the client of a database; it connects meanwhile.
    pub(super) fn start(url: &DatabaseUrl) -> Result<Self, DatabaseTrouble> {
        let (client, mut command) = command(url)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Messages that users can search for, and no signal from the terminal: the last question comes after it.
        command.env("LC_ALL", "C").process_group(0);
        let not_started =
            |error: io::Error| DatabaseTrouble::NotStarted { client, os_error: error.raw_os_error() };
        let mut child = command.spawn().map_err(not_started)?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                Ok(Self { client, child, stdin, stdout, stderr, read: Vec::new() })
            }
            _ => Err(DatabaseTrouble::Ended { client, stderr: String::new() }),
        }
    }

    /// Sends statements.
    pub(super) fn send(&mut self, statements: &str) -> Result<(), DatabaseTrouble> {
        writeln!(self.stdin, "{statements}").map_err(|_| self.ended())
    }

    /// Reads lines up to the one that is `end`, which is left out.
    ///
    /// # Errors
    /// Also where the client ends before that; `lines` holds what it had answered by then.
    pub(super) fn read_until(
        &mut self,
        end: &str,
        limit: Duration,
        lines: &mut Vec<String>,
    ) -> Result<(), DatabaseTrouble> {
        let deadline = Instant::now() + limit;
        loop {
            while let Some(at) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=at).collect();
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                if line == end {
                    return Ok(());
                }
                lines.push(line);
            }
            match read_before(&mut self.stdout, &mut self.read, deadline) {
                Ok(0) => return Err(self.ended()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(DatabaseTrouble::TimedOut { limit_s: limit.as_secs() });
                }
                Err(_) => return Err(self.ended()),
            }
        }
    }

    /// An answer that makes no sense.
    pub(super) fn misread(&self) -> DatabaseTrouble {
        DatabaseTrouble::Unparsable { client: self.client }
    }

    fn ended(&mut self) -> DatabaseTrouble {
        let mut said = Vec::new();
        let deadline = Instant::now() + LAST_WORDS;
        while read_before(&mut self.stderr, &mut said, deadline).is_ok_and(|count| count > 0) {}
        DatabaseTrouble::Ended {
            client: self.client,
            stderr: error_message(&String::from_utf8_lossy(&said), self.client.program()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what there is, waiting for it until the deadline. 0: the other end is closed.
fn read_before(
    from: &mut (impl Read + std::os::fd::AsFd),
    to: &mut Vec<u8>,
    deadline: Instant,
) -> io::Result<usize> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::TimedOut)?;
    let ready = match poll(&mut [PollFd::new(&*from, PollFlags::IN)], Some(&left)) {
        Err(rustix::io::Errno::INTR) => return read_before(from, to, deadline),
        ready => ready?,
    };
    if ready == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut buffer = [0; 4096];
    let count = from.read(&mut buffer)?;
    to.extend_from_slice(&buffer[..count]);
    Ok(count)
}

/// Extracts the error from a client's output, in one line: without its own name, and without warnings that came before
/// the error. Empty where it printed nothing.
fn error_message(said: &str, program: &str) -> String {
    let said = said.find("ERROR").map_or(said, |error| &said[error..]);
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix(program).map_or(line.as_str(), |rest| rest.trim_start_matches(": "));
    let line = line.strip_prefix("error: ").unwrap_or(line);
    line.chars().take(SAID_MAX).collect()
}

fn command(url: &DatabaseUrl) -> Result<(DatabaseClient, Command), DatabaseTrouble> {
    let roots = match &url.encryption {
        Encryption::Verified { roots } => Some(roots.as_deref().unwrap_or_else(|| authorities())),
        Encryption::Unsaid | Encryption::Disabled => None,
    };
    match &url.address {
        Address::Postgres { url: address } => {
            let client = installed(&[DatabaseClient::Psql])?;
            let mut command = Command::new(client.program());
            // Ignores settings files, and never asks for a password.
            command.args(["-X", "-w", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", address]);
            command.env("PGCONNECT_TIMEOUT", CONNECT_S.to_string());
            if let Some(password) = &url.password {
                command.env("PGPASSWORD", password);
            }
            match roots {
                Some(roots) => {
                    command.env("PGSSLMODE", "verify-full").env("PGSSLROOTCERT", roots);
                }
                None if url.encryption == Encryption::Disabled => {
                    command.env("PGSSLMODE", "disable");
                }
                None => {}
            }
            Ok((client, command))
        }
        Address::Mysql { user, host, port, socket, database } => {
            let client = installed(&[DatabaseClient::Mariadb, DatabaseClient::Mysql])?;
            let mut command = Command::new(client.program());
            match &url.password {
                // A password from a settings file would take precedence.
                Some(password) => command.arg("--no-defaults").env("MYSQL_PWD", password),
                None => &mut command,
            };
            command.args(["--batch", "--raw", "--unbuffered", "--skip-column-names", "--skip-reconnect"]);
            command.arg(format!("--connect-timeout={CONNECT_S}")).arg(format!("--user={user}"));
            match socket {
                Some(path) => command.arg("--protocol=SOCKET").arg(format!("--socket={path}")),
                None => command.args([
                    "--protocol=TCP".to_owned(),
                    format!("--host={host}"),
                    format!("--port={port}"),
                ]),
            };
            // MariaDB's client and MySQL's have different words for encryption. Each passes over those of the other.
            match roots {
                Some(roots) => command
                    .args([
                        "--loose-ssl",
                        "--loose-ssl-verify-server-cert",
                        "--loose-ssl-mode=VERIFY_IDENTITY",
                    ])
                    .arg(format!("--ssl-ca={roots}")),
                None => command.args([
                    "--loose-skip-ssl",
                    "--loose-ssl-mode=DISABLED",
                    "--loose-get-server-public-key",
                ]),
            };
            command.arg(format!("--database={database}"));
            Ok((client, command))
        }
    }
}

/// The first of the clients that is on PATH.
fn installed<const N: usize>(clients: &[DatabaseClient; N]) -> Result<DatabaseClient, DatabaseTrouble> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = |client: &DatabaseClient| {
        env::split_paths(&path).any(|folder| folder.join(client.program()).is_file())
    };
    let found = clients.iter().copied().find(on_path);
    found.ok_or(DatabaseTrouble::NotInstalled { client: clients[0] })
}

/// The file of the authorities that this host trusts.
fn authorities() -> &'static str {
    AUTHORITIES.into_iter().find(|file| Path::new(file).exists()).unwrap_or(AUTHORITIES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(url: &str) -> Option<(String, String)> {
        let url: DatabaseUrl = url.parse().expect("a URL");
        let (_, command) = command(&url).ok()?;
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let settings: Vec<_> = command
            .get_envs()
            .map(|(name, value)| format!("{}={}", name.display(), value.unwrap_or_default().display()))
            .collect();
        Some((words.join(" "), settings.join(" ")))
    }

    #[test]
    fn a_password_is_in_no_argument() {
        for url in ["mysql://ann:hush@db/x", "postgres://ann:hush@db/x?sslmode=disable"] {
            let Some((words, settings)) = line(url) else { return };
            assert!(!words.contains("hush") && settings.contains("hush"), "{words}; {settings}");
        }
    }

    #[test]
    fn encryption_is_passed_on() {
        let Some((_, settings)) = line("postgres://ann@db/x?sslmode=verify-full&sslrootcert=/a.pem") else {
            return;
        };
        assert!(settings.contains("PGSSLMODE=verify-full") && settings.contains("PGSSLROOTCERT=/a.pem"));
        let Some((words, _)) = line("mysql://ann@db/x?require_ssl=true&sslrootcert=/a.pem") else { return };
        assert!(words.contains("ssl-verify-server-cert") && words.contains("--ssl-ca=/a.pem"), "{words}");
    }

    #[test]
    fn an_error_message_is_one_line_without_warnings() {
        let said = "psql: error: connection to server at \"::1\", port 1 failed: Connection refused\n\tIs it running?\n";
        assert_eq!(
            error_message(said, "psql"),
            "connection to server at \"::1\", port 1 failed: Connection refused Is it running?"
        );
        let said = "mariadb: unknown option '--loose-x'\nERROR 1045 (28000): Access denied\n";
        assert_eq!(error_message(said, "mariadb"), "ERROR 1045 (28000): Access denied");
        assert_eq!(error_message("", "psql"), "");
    }
}
