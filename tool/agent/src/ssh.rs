//! Hosts that are reached by ssh: the program is used or copied there, over one connection.
//!
//! Host keys, users, keys and jumps are ssh's own business, as its configuration has them. It never asks anything
//! (`BatchMode`), and one connection serves all that is done (`ControlMaster`), through a socket in a folder of ours alone.
//!
//! A copy goes to a temporary folder and is removed with the agent, or to the user's cache, where it stays. Whichever it is,
//! it runs only with the hash of what was sent. One that does not come whole, because nstar was stopped, is removed there.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::system::uname;

use crate::endpoint::{Endpoint, SshHost};
use crate::own_program::OwnProgram;
use crate::protocol;
use crate::stream::{STOP_CHECK, last_lines, named};
use crate::trouble::StartError;

/// How long ssh may take to connect, seconds.
const CONNECT_S: u32 = 10;

/// How long the connection stays open when nobody uses it, seconds: longer than from one command to the next.
const PERSIST_S: u32 = 20;

/// The folder there that holds a copy which was kept, in quotation marks of a shell. Versions have one each.
const KEPT: &str = concat!("\"${XDG_CACHE_HOME:-$HOME/.cache}/nstar/agent-", env!("CARGO_PKG_VERSION"), "\"");

/// What a shell there is asked first: what the host is, whether it has nstar, and the hash of a copy that was kept. An agent
/// greets, and ends with its input. Scripts hold no single quotation mark, so that any login shell passes them on.
fn ask() -> String {
    format!(
        "uname -m; nstar agent </dev/null 2>/dev/null | head -n 1; k={KEPT}; test -x \"$k/nstar\" && sha256sum <\"$k/nstar\"; \
         exit 0"
    )
}

/// Makes a folder that only this user may enter, and puts there what comes, if it is so many bytes. Prints hash and folder. Where
/// nobody reads that any more, nothing stays.
fn copy_to_remove(bytes: u64) -> String {
    format!(
        "trap \"\" PIPE; umask 077; d=$(mktemp -d) || exit 1; cat >$d/nstar && test $(wc -c <$d/nstar) -eq {bytes} \
         && chmod 700 $d/nstar && sha256sum $d/nstar && echo $d && exit 0; rm -rf $d; exit 1"
    )
}

/// The same in the folder of copies that are kept, beside the one that may run now. Prints hash and name.
fn copy_to_keep(bytes: u64) -> String {
    format!(
        "trap \"\" PIPE; umask 077; k={KEPT}; mkdir -p \"$k\" && t=$(mktemp \"$k/new.XXXXXXXX\") || exit 1; cat >\"$t\" \
         && test $(wc -c <\"$t\") -eq {bytes} && chmod 700 \"$t\" && sha256sum <\"$t\" && echo /${{t##*/}} && exit 0; \
         rm -f \"$t\"; exit 1"
    )
}

/// How an agent is run on a host that is reached by ssh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BySsh {
    /// Whether it runs as root, through `sudo -n`, so that it sees everything.
    pub with_sudo: bool,
    /// Whether a copy of this program stays there, for a quick start the next time.
    pub keep_copy: bool,
}

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

    /// The command that runs an agent there: nstar of that host if it is of this version, else a copy of this program that was
    /// kept, and else a new one, which is removed when it ends or kept.
    pub(crate) fn agent(&self, how: BySsh, stop: &AtomicBool) -> Result<Command, StartError> {
        let sudo = if how.with_sudo { "sudo -n " } else { "" };
        let program = OwnProgram::get().map_err(unread)?;
        let hash = OwnHash::begin(&program)?;
        // It opens the connection, which goes on in the background: what ssh says is kept in a file, because nobody would read
        // a pipe to its end.
        let mut ask = self.ssh();
        ask.arg("-E").arg(self.log());
        let asked = output(self.with_script(ask, &self::ask(), Stdio::null()), stop)?;
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
        let hash = hash.finish()?;
        let sent = Sent { program: &program, hash: &hash, stop };
        if said.lines().any(|line| line.split_whitespace().next() == Some(sent.hash)) {
            return Ok(self.command(&format!("exec {sudo}{KEPT}/nstar agent")));
        }
        if how.keep_copy {
            let script = copy_to_keep(program.bytes);
            let name = self.copy(&sent, &script, |name| format!("rm -f {KEPT}{name}"))?;
            let run = format!("mv -f {KEPT}{name} {KEPT}/nstar && exec {sudo}{KEPT}/nstar agent");
            return Ok(self.command(&run));
        }
        let script = copy_to_remove(program.bytes);
        let folder = self.copy(&sent, &script, |folder| format!("rm -rf {folder}"))?;
        Ok(self.command(&format!(
            "trap \"rm -rf {folder}\" EXIT; trap \"exit 1\" HUP INT TERM; {sudo}{folder}/nstar agent"
        )))
    }

    /// Copies this program there by a script that prints its hash, and where it is. Returns where it is; a copy with another
    /// hash than what was sent is removed again.
    fn copy(
        &self,
        sent: &Sent<'_>,
        script: &str,
        removal: impl Fn(&str) -> String,
    ) -> Result<String, StartError> {
        let program = sent.program.open().map_err(unread)?;
        let copied = self.run(script, program.into(), sent.stop)?;
        let stderr = last_lines(&copied.stderr);
        let not_copied =
            || StartError::NotCopied { endpoint: Box::new(self.endpoint.clone()), stderr: stderr.clone() };
        if !copied.status.success() {
            return Err(not_copied());
        }
        let said = String::from_utf8_lossy(&copied.stdout);
        let mut lines = said.lines();
        let theirs = lines.next().and_then(|line| line.split_whitespace().next()).unwrap_or_default();
        let place = lines.next().filter(|place| is_plain(place)).ok_or_else(not_copied)?;
        if theirs == sent.hash {
            return Ok(place.to_owned());
        }
        // Nothing is left behind; whether that works changes nothing about the answer.
        let _ = self.run(&removal(place), Stdio::null(), sent.stop);
        Err(StartError::OtherHash { endpoint: Box::new(self.endpoint.clone()) })
    }

    fn run(&self, script: &str, input: Stdio, stop: &AtomicBool) -> Result<Output, StartError> {
        output(self.with_script(self.ssh(), script, input), stop)
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

/// What is sent, and until when.
struct Sent<'a> {
    program: &'a OwnProgram,
    hash: &'a str,
    stop: &'a AtomicBool,
}

fn unread(source: std::io::Error) -> StartError {
    StartError::Here { what: "cannot read this program", source }
}

/// Runs a command that leads a group of processes to its end, or ends them all where somebody asks to stop.
fn output(mut command: Command, stop: &AtomicBool) -> Result<Output, StartError> {
    let failed = |source| StartError::NotRun { program: "ssh".to_owned(), source };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let group = Pid::from_child(&child);
    let (ended, waiting) = channel();
    named("nstar-ssh", move || drop(ended.send(child.wait_with_output()))).map_err(failed)?;
    loop {
        match waiting.recv_timeout(STOP_CHECK) {
            Ok(output) => return output.map_err(failed),
            Err(_) if stop.load(Ordering::Relaxed) => {
                // What it connects through goes with it. Where it has just ended there is nothing to end.
                let _ = kill_process_group(group, Signal::KILL);
                return Err(StartError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(std::io::Error::other("nobody waits for it")));
            }
        }
    }
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

/// The SHA-256 of this program as it is sent, computed while something else is done.
struct OwnHash(Child);

impl OwnHash {
    fn begin(program: &OwnProgram) -> Result<Self, StartError> {
        let program = program.open().map_err(Self::failed)?;
        let mut sum = Command::new("sha256sum");
        sum.stdin(program).stdout(Stdio::piped()).stderr(Stdio::null());
        sum.spawn().map(Self).map_err(Self::failed)
    }

    /// In hexadecimal digits.
    fn finish(mut self) -> Result<String, StartError> {
        let mut said = String::new();
        if let Some(stdout) = &mut self.0.stdout {
            stdout.read_to_string(&mut said).map_err(Self::failed)?;
        }
        let hash = said.split_whitespace().next();
        hash.map(str::to_owned).ok_or_else(|| Self::failed(std::io::Error::other("it printed nothing")))
    }

    fn failed(source: std::io::Error) -> StartError {
        StartError::Here { what: "cannot run `sha256sum`", source }
    }
}

/// Ends what nobody asked for in the end.
impl Drop for OwnHash {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a path needs no quotation marks in a shell.
fn is_plain(path: &str) -> bool {
    path.len() > 1
        && path.starts_with('/')
        && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+,:=@".contains(c))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;
    use std::time::{Duration, Instant};

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
        for script in [&ask(), &copy_to_remove(9), &copy_to_keep(9), KEPT] {
            assert!(!script.contains(['\'', '!', '\n']), "{script}");
        }
    }

    #[test]
    fn the_hash_is_that_of_what_is_sent() {
        let program = OwnProgram::get().unwrap();
        let hash = OwnHash::begin(&program).unwrap().finish().unwrap();
        assert!(hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{hash}");
        let mut again = Command::new("sha256sum");
        let again = again.stdin(program.open().unwrap()).output().unwrap();
        assert!(again.stdout.starts_with(hash.as_bytes()), "{again:?}");
    }

    /// Runs a script as a host does that gets this much of a program. Returns what it printed, and what it left.
    fn received(script: &str, bytes: &[u8]) -> (String, Vec<PathBuf>) {
        let folder = private_folder().unwrap();
        let (input, mut sent) = std::io::pipe().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("TMPDIR", &folder).env("XDG_CACHE_HOME", &folder);
        let shell = shell.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        sent.write_all(bytes).unwrap();
        drop(sent);
        let said = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
        let found = Command::new("find").arg(&folder).args(["-type", "f"]).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        (said, found.lines().map(PathBuf::from).collect())
    }

    #[test]
    fn a_copy_that_comes_whole_stays_and_half_a_copy_is_removed() {
        for script in [copy_to_remove(9), copy_to_keep(9)] {
            let (said, left) = received(&script, b"a program");
            assert!(said.lines().count() == 2 && left.len() == 1, "{said} {left:?}");
            let (said, left) = received(&script, b"a prog");
            assert!(said.is_empty() && left.is_empty(), "{said} {left:?}");
        }
    }

    #[test]
    fn a_command_is_ended_with_what_it_started_once_somebody_asks_to_stop() {
        let (input, mut held) = std::io::pipe().unwrap();
        let mut silent = Command::new("sh");
        silent.args(["-c", "sleep 600; true"]).process_group(0).stdin(input);
        let ended = output(silent, &AtomicBool::new(true));
        assert!(matches!(ended, Err(StartError::Interrupted)), "{ended:?}");
        // Nobody holds the other end once both are gone.
        let begun = Instant::now();
        while held.write_all(b"x").is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(60), "they go on");
            thread::sleep(Duration::from_millis(5));
        }
        let mut quick = Command::new("echo");
        quick.arg("here").process_group(0);
        let said = output(quick, &AtomicBool::new(false)).unwrap();
        assert_eq!(said.stdout, b"here\n");
    }
}
