//! Hosts that are reached by ssh: the program is used or copied there, over one connection.
//!
//! Host keys, users, keys and jumps are ssh's own business, as its configuration has them. It never asks anything
//! (`BatchMode`), and one connection serves all that is done (`ControlMaster`), through a socket in a folder of ours alone.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::system::uname;

use crate::endpoint::{Endpoint, SshHost};
use crate::link::OWN_PROGRAM;
use crate::protocol;
use crate::stream::last_lines;
use crate::trouble::StartError;

/// How long ssh may take to connect, seconds.
const CONNECT_S: u32 = 10;

/// How long the connection stays open when nobody uses it, seconds: longer than from one command to the next.
const PERSIST_S: u32 = 20;

/// What a shell there is asked first: what the host is, and whether it has nstar. An agent greets, and ends with its input.
/// Scripts hold no single quotation mark, so that any login shell passes them on.
const ASK: &str = "uname -m; nstar agent </dev/null 2>/dev/null | head -n 1; exit 0";

/// Makes a folder that only this user may enter, and puts there what comes. Prints hash and folder.
const COPY: &str = "umask 077; d=$(mktemp -d) || exit 1; cat >$d/nstar && chmod 700 $d/nstar && sha256sum $d/nstar \
                    && echo $d && exit 0; rm -rf $d; exit 1";

/// A connection to a host.
#[derive(Debug)]
pub(crate) struct Connection {
    endpoint: Endpoint,
    host: SshHost,
    /// Holds the socket, and what ssh itself says.
    folder: PathBuf,
}

impl Connection {
    /// A connection that opens with the first command.
    pub(crate) fn new(endpoint: &Endpoint, host: &SshHost) -> Result<Self, StartError> {
        let folder = private_folder()?;
        Ok(Self { endpoint: endpoint.clone(), host: host.clone(), folder })
    }

    /// The command that runs an agent there: nstar of that host if it is of this version, and else a copy of this program,
    /// which is removed when it ends.
    pub(crate) fn agent(&self, with_sudo: bool) -> Result<Command, StartError> {
        let sudo = if with_sudo { "sudo -n " } else { "" };
        // It opens the connection, which goes on in the background: what ssh says is kept in a file, because nobody would read
        // a pipe to its end.
        let mut ask = self.ssh();
        ask.arg("-E").arg(self.log());
        let asked = output(self.with_script(ask, ASK, Stdio::null()))?;
        if asked.status.code() == Some(255) {
            return Err(self.not_reached());
        }
        let said = String::from_utf8_lossy(&asked.stdout);
        let mut lines = said.lines();
        let machine = lines.next().unwrap_or_default().trim();
        if lines.next().is_some_and(|line| line.trim() == protocol::greeting().trim()) {
            return Ok(self.command(&format!("exec {sudo}nstar agent")));
        }
        let ours = uname().machine().to_string_lossy().into_owned();
        if machine != ours {
            let theirs = last_lines(machine.as_bytes());
            return Err(StartError::OtherArchitecture {
                endpoint: Box::new(self.endpoint.clone()),
                theirs,
                ours,
            });
        }
        let folder = self.copy()?;
        Ok(self.command(&format!(
            "trap \"rm -rf {folder}\" EXIT; trap \"exit 1\" HUP INT TERM; {sudo}{folder}/nstar agent"
        )))
    }

    /// Copies this program there. Returns the folder it is in.
    fn copy(&self) -> Result<String, StartError> {
        let program = File::open(OWN_PROGRAM)
            .map_err(|source| StartError::Here { what: "cannot read this program", source })?;
        let copied = self.run(COPY, program.into())?;
        let stderr = last_lines(&copied.stderr);
        let not_copied =
            || StartError::NotCopied { endpoint: Box::new(self.endpoint.clone()), stderr: stderr.clone() };
        if !copied.status.success() {
            return Err(not_copied());
        }
        let said = String::from_utf8_lossy(&copied.stdout);
        let mut lines = said.lines();
        let hash = lines.next().and_then(|line| line.split_whitespace().next()).unwrap_or_default();
        let folder = lines.next().filter(|folder| is_plain(folder)).ok_or_else(not_copied)?;
        if hash == own_hash()? {
            return Ok(folder.to_owned());
        }
        // Nothing is left behind; whether that works changes nothing about the answer.
        let _ = self.run(&format!("rm -rf {folder}"), Stdio::null());
        Err(StartError::OtherHash { endpoint: Box::new(self.endpoint.clone()) })
    }

    fn run(&self, script: &str, input: Stdio) -> Result<Output, StartError> {
        output(self.with_script(self.ssh(), script, input))
    }

    fn command(&self, script: &str) -> Command {
        self.with_script(self.ssh(), script, Stdio::null())
    }

    /// ssh that runs a script there in `sh`, whatever the login shell is.
    fn with_script(&self, mut ssh: Command, script: &str, input: Stdio) -> Command {
        ssh.arg("--").arg(&self.host.host).arg(format!("sh -c '{script}'")).stdin(input);
        ssh
    }

    /// ssh with all options.
    fn ssh(&self) -> Command {
        let mut ssh = Command::new("ssh");
        // Ctrl-C is for nstar, which still wants its last samples.
        ssh.process_group(0);
        ssh.args(["-T", "-o", "BatchMode=yes", "-o", "ControlMaster=auto"]);
        ssh.args([
            "-o",
            &format!("ConnectTimeout={CONNECT_S}"),
            "-o",
            &format!("ControlPersist={PERSIST_S}"),
        ]);
        ssh.arg("-o").arg(format!("ControlPath={}", self.folder.join("socket").display()));
        if let Some(user) = &self.host.user {
            ssh.args(["-l", user]);
        }
        if let Some(port) = self.host.port {
            ssh.args(["-p", &port.to_string()]);
        }
        ssh
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn not_reached(&self) -> StartError {
        let said = std::fs::read(self.log()).unwrap_or_default();
        StartError::NotReached { endpoint: Box::new(self.endpoint.clone()), stderr: last_lines(&said) }
    }
}

/// Closes the connection, and leaves nothing.
impl Drop for Connection {
    fn drop(&mut self) {
        let mut close = self.ssh();
        close.args(["-O", "exit", "--", &self.host.host]).stdin(Stdio::null());
        // It fails where there is no connection any more.
        let _ = close.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn output(mut command: Command) -> Result<Output, StartError> {
    command.output().map_err(|source| StartError::NotRun { program: "ssh".to_owned(), source })
}

/// A new folder that only this user may enter. Its path is short: that of a socket may have 108 bytes.
fn private_folder() -> Result<PathBuf, StartError> {
    let made = Command::new("mktemp").args(["-d", "-t", "nstar.XXXXXXXX"]).stdin(Stdio::null()).output();
    let failed = |source| StartError::Here { what: "cannot make a temporary folder", source };
    let made = made.map_err(failed)?;
    if !made.status.success() {
        return Err(failed(std::io::Error::other(last_lines(&made.stderr))));
    }
    Ok(Path::new(String::from_utf8_lossy(&made.stdout).trim_end()).to_owned())
}

/// The SHA-256 of this program, in hexadecimal digits.
fn own_hash() -> Result<String, StartError> {
    let failed = |source| StartError::Here { what: "cannot run `sha256sum`", source };
    let program = File::open(OWN_PROGRAM).map_err(failed)?;
    let summed = Command::new("sha256sum").stdin(program).output().map_err(failed)?;
    let said = String::from_utf8_lossy(&summed.stdout);
    Ok(said.split_whitespace().next().unwrap_or_default().to_owned())
}

/// Whether a path needs no quotation marks in a shell.
fn is_plain(path: &str) -> bool {
    path.len() > 1
        && path.starts_with('/')
        && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+,:=@".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_shell_would_read_otherwise_is_not_used() {
        assert!(is_plain("/tmp/tmp.aB3_x-1"));
        for path in ["", "/", "tmp/x", "/tmp/a b", "/tmp/$(reboot)", "/tmp/a'b", "/tmp/a;b", "/tmp/\u{e9}"] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn scripts_can_be_passed_on_by_any_login_shell() {
        for script in [ASK, COPY] {
            assert!(!script.contains(['\'', '!', '\n']), "{script}");
        }
    }

    #[test]
    fn the_hash_is_that_of_this_program() {
        let hash = own_hash().unwrap();
        assert!(hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{hash}");
    }
}
