//! A shell that undoes what slows a tier, however nstar ends, and also where it is suspended.

use std::{
    env,
    ffi::OsString,
    fs::File,
    io::{ErrorKind, Read},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use analysis::run::LeftAloneReason;

/// The exit status of a shell that did not find a program (POSIX.1-2017, XCU 2.8.2).
const NOT_FOUND: i32 = 127;
/// What slows a tier is undone after this time at the latest: nstar may be suspended, and then tells nobody that it is over.
/// Tiers are slowed for 3 s at most, where a quota is handed out once a second.
const SECONDS_MAX: u32 = 10;

/// What slows a tier, and what undoes that: commands of a shell, with the arguments as `$1` and so on.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) begin: &'static str,
    /// Does no harm where it is done again, or nothing was begun.
    pub(super) undo: &'static str,
    pub(super) arguments: Vec<OsString>,
    /// The file by which the network namespace is entered to run them in; `None`: this process's own.
    pub(super) namespace: Option<PathBuf>,
    /// What the shell keeps open until it has undone what it did.
    pub(super) lock: Option<File>,
}

/// A shell that has slowed a tier, and undoes that once its stdin closes, which it does however nstar ends, or its time is up.
/// One process does both, so that none that nstar started before it died comes after what undoes it.
#[derive(Debug)]
pub(super) struct StandBy {
    shell: Child,
    script: Script,
}

impl StandBy {
    /// Slows the tier.
    ///
    /// # Errors
    /// The reason to leave it alone: a program is missing, or what slows it failed.
    pub(super) fn start(script: Script) -> Result<Self, LeftAloneReason> {
        Self::start_for(SECONDS_MAX, script)
    }

    fn start_for(seconds: u32, mut script: Script) -> Result<Self, LeftAloneReason> {
        let Script { begin, undo, .. } = script;
        // It is in a group of its own, so that neither Ctrl-C nor Ctrl-Z reaches it, and no signal ends it that can be ignored,
        // not even that nobody reads any longer what it says. The lock, which came as stderr, stays open beside that.
        let commands = format!(
            "trap '' HUP INT PIPE QUIT TERM; exec 3<&2 2>/dev/null; command -v timeout >/dev/null || exit {NOT_FOUND}; \
             {{ {begin}; }} >/dev/null || exit; echo; exec >/dev/null; timeout -s KILL {seconds} cat 3<&-; {undo}"
        );
        let mut shell = script.shell(&commands);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        shell.stderr(script.lock.take().map_or_else(Stdio::null, Stdio::from));
        let shell = shell.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => LeftAloneReason::ToolsMissing,
            _ => LeftAloneReason::NotAllowed,
        })?;
        let mut stand_by = Self { shell, script };
        let said = stand_by.shell.stdout.take();
        if said.is_some_and(|mut said| said.read(&mut [0]).is_ok_and(|bytes| bytes > 0)) {
            return Ok(stand_by);
        }
        match stand_by.shell.wait().ok().and_then(|status| status.code()) {
            Some(NOT_FOUND) => Err(LeftAloneReason::ToolsMissing),
            _ => Err(LeftAloneReason::NotAllowed),
        }
    }

    /// Undoes it. Returns whether the tier was slowed until now: the time may have been up, or somebody has ended the shell.
    pub(super) fn finish(mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }
}

impl Drop for StandBy {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        if !self.shell.wait().is_ok_and(|status| status.success()) {
            // Somebody ended it before it had undone anything.
            let _ = self.script.shell(self.script.undo).status();
        }
    }
}

impl Script {
    fn shell(&self, commands: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        if let Some(namespace) = &self.namespace {
            let mut entrance = OsString::from("--net=");
            entrance.push(namespace);
            shell = Command::new("nsenter");
            shell.arg(entrance).arg("/bin/sh");
        }
        // Arguments that are commands are split into words, and stay as they are otherwise.
        shell.args(["-f", "-c", commands, "sh"]).args(&self.arguments);
        // Administrators' tools may not be on the user's PATH.
        let path = env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        shell.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        shell
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, thread, time::Duration};

    use rustix::process::{Pid, Signal, kill_process};
    use tempfile::NamedTempFile;

    use super::*;
    use crate::confirm::lock::Lock;

    /// Writes a word into a file, and another one to undo it.
    fn script(begin: &'static str, file: &Path) -> Script {
        let undo = r#"printf %s full >"$1""#;
        Script { begin, undo, arguments: vec![file.into()], namespace: None, lock: None }
    }

    const SLOW: &str = r#"printf %s slow >"$1""#;

    fn holds(file: &NamedTempFile) -> String {
        fs::read_to_string(file).unwrap()
    }

    #[test]
    fn what_slows_is_undone_once_nstar_is_gone() {
        let file = NamedTempFile::new().unwrap();
        let mut stand_by = StandBy::start(script(SLOW, file.path())).unwrap();
        assert_eq!(holds(&file), "slow");
        let pid = Pid::from_child(&stand_by.shell);
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            kill_process(pid, signal).unwrap();
        }
        // As if by the end of this program: its end of the pipe closes.
        drop(stand_by.shell.stdin.take());
        assert!(stand_by.shell.wait().unwrap().success());
        assert_eq!(holds(&file), "full");
    }

    #[test]
    fn what_slows_is_undone_once_its_time_is_up() {
        let file = NamedTempFile::new().unwrap();
        let mut stand_by = StandBy::start_for(1, script(SLOW, file.path())).unwrap();
        // As if nstar were suspended: its end of the pipe stays open.
        while stand_by.shell.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(holds(&file), "full");
        assert!(!stand_by.finish(), "it was over before");
    }

    #[test]
    fn the_shell_holds_the_lock_until_it_has_undone_what_it_did() {
        let (file, limit) = (NamedTempFile::new().unwrap(), NamedTempFile::new().unwrap());
        let lock = Lock::on(limit.path()).unwrap();
        let of_shell = Some(lock.shared().unwrap());
        let stand_by = StandBy::start(Script { lock: of_shell, ..script(SLOW, file.path()) }).unwrap();
        drop(lock);
        assert_eq!(Lock::on(limit.path()).err(), Some(LeftAloneReason::ChangedByOthers));
        assert!(stand_by.finish());
        assert_eq!(holds(&file), "full");
        // What another test starts may share all open files, until it is a program of its own.
        while Lock::on(limit.path()).is_err() {}
    }

    #[test]
    fn it_is_undone_also_where_somebody_ends_the_shell() {
        let file = NamedTempFile::new().unwrap();
        let mut stand_by = StandBy::start(script(SLOW, file.path())).unwrap();
        stand_by.shell.kill().unwrap();
        stand_by.shell.wait().unwrap();
        assert_eq!(holds(&file), "slow");
        drop(stand_by);
        assert_eq!(holds(&file), "full");
    }

    #[test]
    fn what_cannot_be_begun_is_told() {
        let file = NamedTempFile::new().unwrap();
        let refused = |begin| StandBy::start(script(begin, file.path())).err();
        assert_eq!(refused("false"), Some(LeftAloneReason::NotAllowed));
        assert_eq!(refused("no-such-program-anywhere"), Some(LeftAloneReason::ToolsMissing));
    }
}
