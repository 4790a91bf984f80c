//! A log in a file, which is opened anew when somebody asks for it, so that others may move it away, as logrotate does.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use engine::shared::Atomics;
use nstar::exit::Failure;
use rustix::{fs::OFlags, io::Errno};
use tracing_subscriber::fmt::MakeWriter;

/// Who may read a new file, less what the umask takes away: its owner and its group.
const MODE: u32 = 0o640;

/// The log of a server and of the processes forked from it. Clones write to the same file.
///
/// Writing never fails: a line that cannot be written is lost, which stderr and later the log say.
#[derive(Clone, Debug)]
pub(crate) struct LogFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: RwLock<File>,
    /// How often the file was to be opened anew, in all processes and in this one.
    asked: Atomics,
    followed: AtomicU64,
    /// Lines lost since the last one that was written.
    lost: AtomicU64,
}

impl LogFile {
    /// Opens the file to append, and creates it if it is missing.
    ///
    /// # Errors
    /// When it cannot be opened, or is no regular file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let file = open(path).map_err(|error| {
            Failure::usage(format!(
                "the log {} cannot be opened: {error}; name a file in a folder where the user of the server may write",
                path.display()
            ))
        })?;
        let (path, file) = (path.to_owned(), RwLock::new(file));
        let (followed, lost) = Default::default();
        Ok(Self(Arc::new(Inner { path, file, asked: Atomics::new(1), followed, lost })))
    }

    /// Opens the file under its name again, and has other processes do so with their next line. Returns false if that
    /// fails: the old file stays in use, here at least.
    pub(crate) fn reopen(&self) -> bool {
        let asked = self.0.asked[0].fetch_add(1, SeqCst) + 1;
        self.0.followed.store(asked, SeqCst);
        self.0.open_again()
    }
}

impl Inner {
    /// Opens the file again if that was asked for since.
    fn follow(&self) {
        let asked = self.asked[0].load(SeqCst);
        if self.followed.swap(asked, SeqCst) != asked {
            self.open_again();
        }
    }

    fn open_again(&self) -> bool {
        match open(&self.path) {
            Ok(file) => {
                *self.file.write().unwrap_or_else(PoisonError::into_inner) = file;
                true
            }
            Err(error) => {
                self.tell(&format!("cannot be opened again: {error}; the file opened before stays in use"));
                false
            }
        }
    }

    fn append(&self, text: &[u8]) -> io::Result<()> {
        // Whole lines of several processes stay apart: the file is appended to, and a line is one call.
        (&*self.file.read().unwrap_or_else(PoisonError::into_inner)).write_all(text)
    }

    fn write(&self, line: &[u8]) {
        self.follow();
        match self.append(line) {
            Ok(()) => self.tell_of_lost(),
            Err(error) if self.lost.fetch_add(1, SeqCst) == 0 => {
                self.tell(&format!("cannot be written: {error}; lines are lost until it can"));
            }
            Err(_) => {}
        }
    }

    fn tell_of_lost(&self) {
        if self.lost.load(SeqCst) != 0 {
            let lost = self.lost.swap(0, SeqCst);
            let _ = self.append(
                format!("lines lost before this one, as the log could not be written: {lost}\n").as_bytes(),
            );
        }
    }

    /// Says on stderr what cannot be said in the log.
    fn tell(&self, what: &str) {
        nstar::exit::warn(format_args!("the log {} {what}", self.path.display()));
    }
}

impl Write for &LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

/// Opens a regular file to append. Links are not followed, and what blocks is not waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    let options = options.append(true).create(true).mode(MODE).custom_flags(flags.bits().cast_signed());
    let is_link = |error: &io::Error| error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    let file = options.open(path).map_err(|error| match error {
        error if is_link(&error) => io::Error::other("it is a symbolic link"),
        error => error,
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn write(log: &LogFile, line: &str) {
        log.make_writer().write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn what_was_moved_away_is_written_to_until_the_file_is_opened_anew() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved] = ["log", "log.1"].map(|name| folder.path().join(name));
        fs::write(&path, "before\n").unwrap();
        let log = LogFile::open(&path).unwrap();
        write(&log, "one\n");
        fs::rename(&path, &moved).unwrap();
        write(&log, "two\n");
        assert!(log.reopen());
        write(&log, "three\n");
        assert_eq!(fs::read_to_string(&moved).unwrap(), "before\none\ntwo\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o037, 0);
    }

    #[test]
    fn a_process_that_was_not_asked_itself_follows_with_its_next_line() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved] = ["log", "log.1"].map(|name| folder.path().join(name));
        let log = LogFile::open(&path).unwrap();
        fs::rename(&path, &moved).unwrap();
        log.0.asked[0].fetch_add(1, SeqCst);
        write(&log, "new\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }

    #[test]
    fn a_log_that_cannot_be_opened_again_goes_on_in_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved] = ["log", "log.1"].map(|name| folder.path().join(name));
        let log = LogFile::open(&path).unwrap();
        fs::rename(&path, &moved).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(!log.reopen());
        write(&log, "still here\n");
        assert_eq!(fs::read_to_string(&moved).unwrap(), "still here\n");
    }

    #[test]
    fn lines_that_cannot_be_written_are_lost_and_counted_and_nothing_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = LogFile::open(&path).unwrap();
        // Reports a full disk for every byte.
        *log.0.file.write().unwrap() = File::options().write(true).open("/dev/full").unwrap();
        write(&log, "one\n");
        write(&log, "two\n");
        assert!(log.reopen());
        write(&log, "three\n");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "three\nlines lost before this one, as the log could not be written: 2\n");
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("target"), &link).unwrap();
        let missing = folder.path().join("none/log");
        for (path, said) in [
            (link.as_path(), "symbolic link"),
            (Path::new("/dev/null"), "not a regular file"),
            (folder.path(), "directory"),
            (missing.as_path(), "No such file"),
        ] {
            let error = LogFile::open(path).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("name a file in a folder"), "{error}");
        }
        assert!(!folder.path().join("target").exists());
    }
}
