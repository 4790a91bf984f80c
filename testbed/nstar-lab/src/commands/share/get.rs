//! `nstar share get`: has a peer download a file, shows the progress, and copies the file to its destination.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nstar::{
    exit::{Exit, Failure},
    interrupt::Interrupt,
    output,
};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat_with},
    io::Errno,
};
use share::{
    Content, Name,
    client::Client,
    entry::Query,
    peer::{DownloadState, Progress},
};

use super::{
    client::{AskPeer, failure},
    names::{quoted, table},
};

/// How often the progress bar is redrawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// Bytes copied from the peer at a time.
const PIECE: u64 = 4 * 1024 * 1024;

/// The message when a signal arrives during the peer's download.
const INTERRUPTED: &str = "interrupted: the peer stops unless somebody else wants the file, and keeps what it has; \
                           repeat the command to continue";

/// The message when the peer's own copy of the file is wrong.
const ROTTEN: &str = "the peer's own copy has changed, perhaps because its disk is failing; \
                      the peer hashes it again, and gets the file from others";

#[derive(Debug, Args)]
pub(crate) struct ShareGet {
    /// Names of files, or BLAKE3 hashes of their contents
    #[arg(value_name = "NAME|HASH", required = true)]
    pub what: Vec<String>,
    /// File to write, which must not exist; for one file only [default: the peer's shared folder alone]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    pub no_progress: bool,
    #[command(flatten)]
    pub peer: AskPeer,
}

/// What a peer is asked to download, and what is needed to wait for it.
struct Getting<'c> {
    client: &'c mut Client,
    asked: Vec<Content>,
    bar: ProgressBar,
    interrupt: Interrupt,
}

pub(super) fn run(client: &mut Client, flags: &ShareGet) -> Result<Exit, Failure> {
    if let Some(to) = &flags.output
        && let Err(unusable) = check_destination(to)
    {
        return have_already(client, &flags.what, to).unwrap_or(Err(unusable));
    }
    let interrupt = Interrupt::listen_patiently().map_err(Failure::failed)?;
    let mut getting = Getting { client, asked: Vec::new(), bar: bar(flags.no_progress), interrupt };
    let outcome = match (&flags.what[..], &flags.output) {
        ([what], Some(to)) => getting.get_to(what, to),
        (_, Some(_)) => Err(Failure::usage("-o names one file; get several without it, or one by one")),
        (several, None) => getting.get_all(several),
    };
    if matches!(outcome, Err(Failure::Interrupted(..))) {
        getting.cancel();
    }
    outcome
}

impl Getting<'_> {
    /// Has the peer download a file, and copies it.
    fn get_to(&mut self, what: &str, to: &Path) -> Result<Exit, Failure> {
        let (content, name) = Wanted::read(what)?.find(self.client)??;
        self.ask(content, name.as_ref())?;
        let mut progress = self.have(what, content)?;
        if holds(to, content) {
            // The destination is in the peer's own shared folder.
            let (at, size) = (to.display(), progress.size);
            output::print(&format!("{at} is in the peer's shared folder, {size} bytes\n"))?;
            return Ok(Exit::Done);
        }
        if !self.copy(content, progress.size, to)? {
            nstar::exit::warn(format_args!("{ROTTEN}"));
            self.client.obtain_anew(content, name.as_ref()).map_err(failure)?;
            self.asked.push(content);
            progress = self.have(what, content)?;
            if !self.copy(content, progress.size, to)? {
                return Err(Failure::failed(
                    "the peer sent wrong bytes again; nothing was written; check its disk",
                ));
            }
        }
        output::print(&format!("{}: {} bytes\n", to.display(), progress.size))?;
        Ok(Exit::Done)
    }

    /// Has the peer download several files, all requested at once. One that fails does not stop the others.
    fn get_all(&mut self, what: &[String]) -> Result<Exit, Failure> {
        let wanted = what.iter().map(|what| Wanted::read(what)).collect::<Result<Vec<_>, _>>()?;
        let found = wanted.iter().map(|wanted| wanted.find(self.client)).collect::<Result<Vec<_>, _>>()?;
        for (content, name) in found.iter().flatten() {
            self.ask(*content, name.as_ref())?;
        }
        let mut failed = Vec::new();
        for (found, what) in found.into_iter().zip(what) {
            match found.and_then(|(content, _)| self.have(what, content)) {
                Ok(Progress { path, size, .. }) => {
                    let path = path.unwrap_or_default();
                    let path = quoted(&path);
                    output::print(&format!("{path} is in the peer's shared folder, {size} bytes\n"))?;
                }
                Err(why @ Failure::Interrupted(..)) => return Err(why),
                Err(why) => failed.push((what, why)),
            }
        }
        match (&failed[..], what.len()) {
            ([], _) => Ok(Exit::Done),
            ([(_, _)], 1) => Err(failed.remove(0).1),
            (_, all) => {
                failed.iter().for_each(|(what, why)| nstar::exit::warn(format_args!("{what}: {why}")));
                Err(Failure::failed(format!("{} of {all} files could not be downloaded", failed.len())))
            }
        }
    }

    fn ask(&mut self, content: Content, name: Option<&Name>) -> Result<(), Failure> {
        self.client.obtain(content, name).map_err(failure)?;
        self.asked.push(content);
        Ok(())
    }

    /// Waits until the peer has the content. If it cannot be obtained, the error says what to do.
    fn have(&mut self, what: &str, content: Content) -> Result<Progress, Failure> {
        self.follow(content).map_err(|why| explain(self.client, what, why))
    }

    /// Waits until the peer has the content, and shows the progress.
    fn follow(&mut self, content: Content) -> Result<Progress, Failure> {
        let mut progress = self.client.progress(content, DRAW_EVERY).map_err(failure)?;
        while progress.state == DownloadState::Running {
            self.go_on(INTERRUPTED)?;
            self.bar.set_length(progress.size);
            self.bar.set_position(progress.bytes);
            let peers = progress.sources.values().filter(|source| source.bytes > 0).count();
            self.bar.set_message(format!("from {peers} peers"));
            progress = self.client.progress(content, DRAW_EVERY).map_err(failure)?;
        }
        // The download is over: whoever asks for this content from now on is somebody else.
        if let Some(over) = self.asked.iter().position(|asked| *asked == content) {
            self.asked.remove(over);
        }
        self.bar.finish_and_clear();
        tell_of_liars(&progress);
        match progress.state {
            DownloadState::Done => Ok(progress),
            _ => Err(Failure::failed(progress.error.unwrap_or_else(|| "the peer gave up".into()))),
        }
    }

    /// Fails if a signal has arrived.
    fn go_on(&self, otherwise: &'static str) -> Result<(), Failure> {
        self.interrupt.signal().map_or(Ok(()), |signal| Err(Failure::Interrupted(signal, otherwise)))
    }

    /// Tells the peer to give up what it has not finished.
    fn cancel(&mut self) {
        for content in std::mem::take(&mut self.asked) {
            // This fails if the download is over or the peer is gone, and then there is nothing to cancel.
            let _ = self.client.cancel(content);
        }
    }

    /// Copies content from the peer, and checks it again on the way: the destination gets the complete, correct file or
    /// nothing. `false` if the peer's bytes are wrong.
    fn copy(&mut self, content: Content, size: u64, to: &Path) -> Result<bool, Failure> {
        let failed =
            |error: io::Error| Failure::failed(format!("{} cannot be written: {error}", to.display()));
        let mut aside = Aside::create(to).map_err(failed)?;
        let copied = self.copy_into((content, size), &mut aside.file, failed);
        if !matches!(copied, Ok(true)) {
            aside.remove();
            return copied;
        }
        aside.place(to).map(|()| true)
    }

    fn copy_into(
        &mut self,
        (content, size): (Content, u64),
        file: &mut File,
        failed: impl Fn(io::Error) -> Failure,
    ) -> Result<bool, Failure> {
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        while at < size {
            self.go_on("interrupted: the peer has the file, but nothing was written here")?;
            let bytes = self.client.read(content, at..size.min(at + PIECE)).map_err(failure)?;
            if bytes.is_empty() {
                return Err(Failure::failed("the peer stopped sending; repeat the command"));
            }
            hasher.update(&bytes);
            file.write_all(&bytes).map_err(&failed)?;
            at += bytes.len() as u64;
        }
        if Content::from(hasher.finalize()) != content {
            return Ok(false);
        }
        file.sync_all().map(|()| true).map_err(failed)
    }
}

/// Reports that the destination is the peer's own copy of the wanted file. `None` if it is not.
fn have_already(client: &mut Client, what: &[String], to: &Path) -> Option<Result<Exit, Failure>> {
    let [what] = what else { return None };
    if !to.is_file() {
        return None;
    }
    let (content, _) = Wanted::read(what).ok()?.find(client).ok()?.ok()?;
    let own = client.list().ok()?.into_iter().any(|file| file.hash == content && to.ends_with(&file.path));
    (own && holds(to, content))
        .then(|| output::print(&format!("{} is this file already\n", to.display())).map(|()| Exit::Done))
}

fn tell_of_liars(progress: &Progress) {
    for (peer, source) in progress.sources.iter().filter(|(_, source)| source.lied) {
        let how = source.trouble.as_deref().unwrap_or("it sent wrong data");
        nstar::exit::warn(format_args!("{peer}: {how}; its bytes were discarded"));
    }
}

fn bar(silent: bool) -> ProgressBar {
    if silent || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(
        "{bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta} {msg}",
    );
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

/// A hash or a name, as given on the command line.
enum Wanted {
    Content(Content),
    Name(Name),
}

/// Content, and its name if that is known.
type Known = (Content, Option<Name>);

impl Wanted {
    /// Reads it. Text that looks like a hash is taken as one.
    fn read(what: &str) -> Result<Self, Failure> {
        if let Ok(content) = what.parse() {
            return Ok(Self::Content(content));
        }
        what.parse()
            .map(Self::Name)
            .map_err(|error| Failure::usage(format!("{what:?} is neither a hash nor a name: a name {error}")))
    }

    /// Finds the content. All who share the name must mean the same content. The inner failure concerns this content
    /// only, and others may still be downloaded; the outer one concerns the peer or its index.
    fn find(&self, client: &mut Client) -> Result<Result<Known, Failure>, Failure> {
        let name = match self {
            Self::Content(content) => return Ok(Ok((*content, None))),
            Self::Name(name) => name,
        };
        let found = client.search(&Query::Name(name.clone())).map_err(failure)?;
        Ok(match &found[..] {
            [] => Err(Failure::failed(format!(
                "nobody shares a file named {name}; `nstar share search` finds words of names"
            ))),
            [one] => Ok((one.entry.content, Some(name.clone()))),
            several => {
                let several = table(several);
                Err(Failure::usage(format!(
                    "several files have this name; get one by its hash:\n{}",
                    several.trim_end()
                )))
            }
        })
    }
}

/// Explains why the content cannot be obtained, and what to do if a file has this hash as its name.
fn explain(client: &mut Client, what: &str, why: Failure) -> Failure {
    let (Failure::Failed(reason), Ok(content), Ok(name)) = (&why, what.parse(), what.parse()) else {
        return why;
    };
    let mut search = |query| client.search(&query).unwrap_or_default();
    if !search(Query::Content(content)).is_empty() {
        return why;
    }
    match &search(Query::Name(name))[..] {
        [] => why,
        named => Failure::failed(format!(
            "{reason}\nit was read as a hash; to get the file of that name, use its hash:\n{}",
            table(named).trim_end()
        )),
    }
}

/// Checks, before the download, that a file can be written there.
fn check_destination(path: &Path) -> Result<(), Failure> {
    let wrong = |what: &str| Err(Failure::usage(format!("-o {}: {what}", path.display())));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match () {
        () if path.is_dir() => wrong("this is a folder; name a file in it"),
        () if path.symlink_metadata().is_ok() => wrong("there is a file already; name another"),
        () if path.file_name().is_none() || folder.is_some_and(|folder| !folder.is_dir()) => {
            wrong("there is no such folder; make it first, or name another")
        }
        () => Ok(()),
    }
}

/// Whether the file at this path has this content.
fn holds(path: &Path, content: Content) -> bool {
    let mut hasher = blake3::Hasher::new();
    let hashed = File::open(path).and_then(|file| hasher.update_reader(file).map(|hasher| hasher.finalize()));
    hashed.is_ok_and(|hash| Content::from(hash) == content)
}

/// The temporary file, in the folder of the destination. Until it is complete it has no name, so that nothing is left of it
/// however this process ends. Where the file system cannot do that, it has one.
struct Aside {
    file: File,
    path: Option<PathBuf>,
}

impl Aside {
    fn create(to: &Path) -> io::Result<Self> {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(CWD, folder, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => Ok(Self { file: file.into(), path: None }),
            Err(_) => {
                let path = part(to);
                Ok(Self { file: File::create_new(&path)?, path: Some(path) })
            }
        }
    }

    /// Removes it. If that fails, the partial file stays, which does no harm.
    fn remove(self) {
        let _ = self.path.map(fs::remove_file);
    }

    /// Gives the complete file its name, unless something has that name by now.
    fn place(self, to: &Path) -> Result<(), Failure> {
        let Err(error) = self.link(to) else { return Ok(()) };
        let at = to.display();
        // Whoever waited for it should have it all the same.
        let kept = part(to);
        let left = match self.path.is_some() || self.link(&kept).is_ok() {
            true => format!("; the complete file is {}", kept.display()),
            false => String::new(),
        };
        Err(Failure::failed(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{at} was created during the download and is left unchanged{left}")
            }
            _ => format!("{at} cannot be written: {error}{left}"),
        }))
    }

    fn link(&self, to: &Path) -> io::Result<()> {
        let Some(path) = &self.path else {
            let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            return Ok(linkat(CWD, open, CWD, to, AtFlags::SYMLINK_FOLLOW)?);
        };
        rename(path, to)
    }
}

/// The name of the temporary file, where it has one.
fn part(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    name.into()
}

/// Like rename(2), but never replaces anything.
fn rename(aside: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, aside, CWD, to, RenameFlags::NOREPLACE) {
        // File systems that do not know the flag, such as NFS, refuse it. A hard link replaces nothing either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(aside, to)?;
            // If this fails, the file has both names.
            let _ = fs::remove_file(aside);
            Ok(())
        }
        renamed => Ok(renamed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// `FILE.PID.part` stayed when the process was killed.
    #[test]
    fn what_is_not_complete_has_no_name_that_could_stay() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("a.bin");
        let mut aside = Aside::create(&to).unwrap();
        aside.file.write_all(b"half").unwrap();
        if aside.path.is_some() {
            eprintln!("skipped: this file system has no files without names");
            return;
        }
        assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
        aside.file.write_all(b" and half").unwrap();
        aside.place(&to).unwrap();
        assert_eq!(
            (names(folder.path()), fs::read(&to).unwrap()),
            (vec!["a.bin".into()], b"half and half".to_vec())
        );
    }

    #[test]
    fn a_file_that_came_meanwhile_stays_with_and_without_a_name_for_the_other() {
        for named in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let to = folder.path().join("a.bin");
            let mut aside = Aside::create(&to).unwrap();
            if named {
                aside = Aside { file: File::create_new(part(&to)).unwrap(), path: Some(part(&to)) };
            }
            aside.file.write_all(b"got").unwrap();
            fs::write(&to, "mine").unwrap();
            let error = aside.place(&to).unwrap_err().to_string();
            assert!(
                error.contains("left unchanged; the complete file is") && error.contains(".part"),
                "{error}"
            );
            assert_eq!(
                (fs::read(&to).unwrap(), fs::read(part(&to)).unwrap()),
                (b"mine".to_vec(), b"got".to_vec())
            );
        }
    }
}
