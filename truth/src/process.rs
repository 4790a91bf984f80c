//! Processes of a case: started where the case says, and ended with it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::Trouble;

/// How long a program may take to listen.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a program may take to end when asked to.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// The time between two looks at whether something has happened.
const LOOK: Duration = Duration::from_millis(20);

/// A running process. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command with its output in a file of the folder. It ends when the thread that started it does.
    pub(crate) fn start(
        words: &[String],
        folder: &Path,
        environment: &[(&str, String)],
    ) -> Result<Self, Trouble> {
        let log = folder.join("output");
        let output = fs::File::create(&log).map_err(Trouble::io("make a file for a program's output"))?;
        let errors = output.try_clone().map_err(Trouble::io("make a file for a program's output"))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .args(words)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(Trouble::io(format!("run {}", words.join(" "))))?;
        Ok(Self { child, log })
    }

    /// Waits until `ready` says so.
    pub(crate) fn wait_until(&mut self, ready: impl Fn() -> bool) -> Result<(), Trouble> {
        let deadline = Instant::now() + START_LIMIT;
        while !ready() {
            let ended = !matches!(self.child.try_wait(), Ok(None));
            if ended || Instant::now() > deadline {
                return Err(Trouble::Failed { program: "a server".into(), said: self.last_words() });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Waits until it has printed these words.
    pub(crate) fn wait_for(&mut self, words: &str) -> Result<(), Trouble> {
        let log = self.log.clone();
        self.wait_until(|| fs::read_to_string(&log).is_ok_and(|said| said.contains(words)))
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The last line that it printed.
    fn last_words(&self) -> String {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").into()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // In order, so that it ends its own children; fails only where it has ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            thread::sleep(LOOK);
        }
    }
}

/// Makes a folder within another.
pub(crate) fn make_folder(below: &Path, name: &str) -> Result<PathBuf, Trouble> {
    let folder = below.join(name);
    fs::create_dir(&folder).map_err(Trouble::io(format!("make {}", folder.display())))?;
    Ok(folder)
}

/// Finds a program on PATH and where Debian keeps servers. A name may end in `*`, for any version.
pub(crate) fn find(program: &'static str, package: &'static str) -> Result<String, Trouble> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders =
        env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/local/go/bin"].map(PathBuf::from));
    let fits = |name: &str| match program.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == program,
    };
    let in_folder = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(fits))
    };
    let found = folders.filter_map(in_folder).next();
    found.map(|path| path.display().to_string()).ok_or(Trouble::NotInstalled { program, package })
}

/// Runs a command to its end.
pub(crate) fn run(words: &[&str]) -> Result<(), Trouble> {
    output(words).map(drop)
}

/// The same, with what it printed.
pub(crate) fn output(words: &[&str]) -> Result<String, Trouble> {
    let output = Command::new(words[0])
        .args(&words[1..])
        .output()
        .map_err(Trouble::io(format!("run {}", words[0])))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(Trouble::Failed { program: words.join(" "), said: text(&output.stderr).trim().into() }),
    }
}
