//! The program as a server that is killed.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a program that sees another start of the machine.
const WITH_BOOT: &str = r#"mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@""#;

/// A server, killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    stdout: Option<ChildStdout>,
}

impl Server {
    /// Starts `PROGRAM serve WORDS`. What it writes to the log goes to a file. `boot` is a file with what the server is to
    /// take for the start of the machine, which takes root.
    pub(crate) fn start(
        program: &Path,
        words: &[OsString],
        log: &Path,
        boot: Option<&Path>,
    ) -> io::Result<Self> {
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let mut command = match boot {
            None => Command::new(program),
            Some(boot) => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", WITH_BOOT]).arg(boot).arg(program);
                command
            }
        };
        let mut child = command
            .arg("serve")
            .args(words)
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let stdout = child.stdout.take();
        Ok(Self { child, stdout })
    }

    /// Waits until it listens. `None` if it ends instead.
    pub(crate) fn listening(&mut self) -> Option<SocketAddr> {
        let stdout = self.stdout.take()?;
        let (tell, told) = mpsc::channel();
        // Ends with the server at the latest.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let line = told.recv_timeout(PATIENCE).ok()?;
        line.split_whitespace().find_map(|word| word.split_once("://")?.1.parse().ok())
    }

    /// Kills it, as SIGKILL does, and waits for its end.
    pub(crate) fn kill(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
