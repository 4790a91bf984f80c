//! The tree as a mounted file system, whose power can be cut after any change.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime},
};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use super::{
    contents::{Contents, PAGE},
    names::{Names, Number},
    tree::{Kind, Node, Tree},
};

/// How long the kernel may remember what it was told: nothing changes but through it.
const VALID: Duration = Duration::from_secs(3600);
/// The size of the disk that programs are told, in pages: 64 GiB.
const PAGES: u64 = 1 << 24;
/// How long to wait until nobody uses the disk any more.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait between two attempts to unmount it.
const RETRY: Duration = Duration::from_millis(2);

/// A mounted disk.
#[derive(Debug)]
pub struct Disk {
    at: PathBuf,
    power: Arc<Power>,
    session: Option<BackgroundSession>,
}

/// The disk, and until when it has power.
#[derive(Debug)]
struct Power(Mutex<State>);

#[derive(Debug)]
struct State {
    tree: Tree,
    /// How many more changes there will be. `None` if there is no end.
    left: Option<u64>,
    /// Whether syncs are acknowledged and nothing more.
    syncs_nothing: bool,
}

/// Whether a disk can be mounted here: that takes root and `/dev/fuse`.
pub fn is_possible() -> bool {
    let device = File::options().read(true).write(true).open("/dev/fuse");
    let folder = tempfile::tempdir();
    device.is_ok() && folder.is_ok_and(|folder| Disk::mount(folder.path(), Tree::default()).is_ok())
}

impl Disk {
    /// Mounts a disk with these files at an empty folder. This process may read and write there, but not map files into its
    /// memory, as SQLite does: it would wait for itself.
    ///
    /// # Errors
    /// When FUSE is missing, or without root.
    pub fn mount(at: &Path, tree: Tree) -> io::Result<Self> {
        let power = Arc::new(Power(Mutex::new(State { tree, left: None, syncs_nothing: false })));
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("crash-tests".into()), MountOption::DefaultPermissions];
        let session = fuser::spawn_mount(Shared(Arc::clone(&power)), at, &config)?;
        Ok(Self { at: at.to_owned(), power, session: Some(session) })
    }

    /// The folder where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Cuts the power after so many further changes or syncs. From then on everything fails.
    pub fn cut_after(&self, changes: u64) {
        self.power.lock().left = Some(changes);
    }

    /// From now on acknowledges every sync without keeping anything for it, as a disk with a cache that lies.
    pub fn sync_nothing(&self) {
        self.power.lock().syncs_nothing = true;
    }

    /// Whether the power is gone.
    pub fn is_off(&self) -> bool {
        self.power.lock().left == Some(0)
    }

    /// Unmounts it once nobody uses it any more. Returns what it was, as if it were all on the disk or to be lost.
    ///
    /// # Errors
    /// When some process goes on using it.
    pub fn unmount(mut self) -> io::Result<Tree> {
        self.release()?;
        Ok(std::mem::take(&mut self.power.lock().tree))
    }

    /// Waits until it can be unmounted: a process that was killed takes a moment to end.
    fn release(&mut self) -> io::Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        let end = Instant::now() + PATIENCE;
        while let Err(error) = unmount(&self.at, &[]) {
            if Instant::now() > end {
                self.session = Some(session);
                return Err(error);
            }
            thread::sleep(RETRY);
        }
        session.join()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.session.is_some() {
            // Whoever still uses it gets errors from now on.
            let _ = unmount(&self.at, &["--lazy"]);
        }
    }
}

fn unmount(at: &Path, flags: &[&str]) -> io::Result<()> {
    let done = Command::new("umount").args(flags).arg(at).output()?;
    let said = || io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned());
    if done.status.success() { Ok(()) } else { Err(said()) }
}

impl Power {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The files, as long as there is power.
    fn look(&self) -> Result<&Tree, Errno> {
        if self.left == Some(0) { Err(Errno::EIO) } else { Ok(&self.tree) }
    }

    /// The files for one change or sync.
    fn change(&mut self) -> Result<&mut Tree, Errno> {
        self.look()?;
        self.left = self.left.map(|left| left - 1);
        self.look()?;
        Ok(&mut self.tree)
    }

    fn sync(&mut self, number: INodeNo) -> Result<(), Errno> {
        let syncs_nothing = self.syncs_nothing;
        let tree = self.change()?;
        if syncs_nothing { Ok(()) } else { tree.sync(number.0) }
    }
}

/// What FUSE calls.
struct Shared(Arc<Power>);

impl Shared {
    fn look<T>(&self, see: impl FnOnce(&Tree) -> Result<T, Errno>) -> Result<T, Errno> {
        see(self.0.lock().look()?)
    }

    fn change<T>(&self, make: impl FnOnce(&mut Tree) -> Result<T, Errno>) -> Result<T, Errno> {
        make(self.0.lock().change()?)
    }

    fn sync(&self, number: INodeNo) -> Result<(), Errno> {
        self.0.lock().sync(number)
    }

    fn attributes(&self, number: INodeNo) -> Result<FileAttr, Errno> {
        self.look(|tree| Ok(attributes(number.0, tree.node(number.0)?)))
    }

    /// Creates a file or folder.
    fn create(&self, (folder, name): (INodeNo, &OsStr), kind: Kind, mode: u32) -> Result<FileAttr, Errno> {
        self.change(|tree| {
            let number = tree.create(folder.0, name, kind, mode & 0o7777)?;
            Ok(attributes(number, tree.node(number)?))
        })
    }
}

fn attributes(number: Number, node: &Node) -> FileAttr {
    let (kind, size) = match &node.kind {
        Kind::File(contents) => (FileType::RegularFile, contents.len()),
        Kind::Folder(names) => (FileType::Directory, names.len()),
    };
    FileAttr {
        ino: INodeNo(number),
        size: size as u64,
        blocks: size.div_ceil(512) as u64,
        atime: node.changed,
        mtime: node.changed,
        ctime: node.changed,
        crtime: node.changed,
        kind,
        perm: (node.mode & 0o7777) as u16,
        nlink: node.links,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: PAGE as u32,
        flags: 0,
    }
}

fn place(offset: u64) -> Result<usize, Errno> {
    usize::try_from(offset).map_err(|_| Errno::EFBIG)
}

/// Answers a request with what came of it.
macro_rules! answer {
    ($reply:ident, $outcome:expr, |$value:pat_param| $ok:expr) => {
        match $outcome {
            Ok($value) => $ok,
            Err(error) => $reply.error(error),
        }
    };
}

impl Filesystem for Shared {
    fn lookup(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.look(|tree| {
            let number = tree.look_up(folder.0, name)?;
            Ok(attributes(number, tree.node(number)?))
        });
        answer!(reply, found, |found| reply.entry(&VALID, &found, Generation(0)))
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer!(reply, self.attributes(number), |found| reply.attr(&VALID, &found))
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changed = self.change(|tree| {
            if let Some(size) = size {
                tree.resize(number.0, place(size)?)?;
            }
            let node = tree.node_mut(number.0)?;
            node.mode = mode.unwrap_or(node.mode);
            if let Some(TimeOrNow::SpecificTime(time)) = mtime {
                node.changed = time;
            }
            Ok(attributes(number.0, node))
        });
        answer!(reply, changed, |changed| reply.attr(&VALID, &changed))
    }

    fn mkdir(&self, _: &Request, folder: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let made = self.create((folder, name), Kind::Folder(Names::new()), mode & !umask);
        answer!(reply, made, |made| reply.entry(&VALID, &made, Generation(0)))
    }

    fn create(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = self.create((folder, name), Kind::File(Contents::default()), mode & !umask);
        let opened = (FileHandle(0), FopenFlags::empty());
        answer!(reply, made, |made| reply.created(&VALID, &made, Generation(0), opened.0, opened.1))
    }

    fn unlink(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.change(|tree| tree.remove(folder.0, name, false)), |()| reply.ok())
    }

    fn rmdir(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.change(|tree| tree.remove(folder.0, name, true)), |()| reply.ok())
    }

    fn rename(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        to_folder: INodeNo,
        to_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !RenameFlags::RENAME_NOREPLACE.contains(flags) {
            return reply.error(Errno::EINVAL);
        }
        let replaces = flags.is_empty();
        let moved = self.change(|tree| match tree.look_up(to_folder.0, to_name) {
            Ok(_) if !replaces => Err(Errno::EEXIST),
            _ => tree.rename((folder.0, name), (to_folder.0, to_name)),
        });
        answer!(reply, moved, |()| reply.ok())
    }

    fn link(&self, _: &Request, file: INodeNo, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = self.change(|tree| {
            tree.link(file.0, folder.0, name)?;
            Ok(attributes(file.0, tree.node(file.0)?))
        });
        answer!(reply, linked, |linked| reply.entry(&VALID, &linked, Generation(0)))
    }

    fn read(
        &self,
        _: &Request,
        file: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let power = self.0.lock();
        let read = power.look().and_then(|tree| Ok(tree.file(file.0)?.read(place(offset)?, size as usize)));
        answer!(reply, read, |bytes| reply.data(bytes))
    }

    fn write(
        &self,
        _: &Request,
        file: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.change(|tree| tree.write(file.0, place(offset)?, bytes));
        answer!(reply, written, |()| reply.written(bytes.len() as u32))
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, file: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer!(reply, self.sync(file), |()| reply.ok())
    }

    fn fsyncdir(&self, _: &Request, folder: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer!(reply, self.sync(folder), |()| reply.ok())
    }

    fn open(&self, _: &Request, file: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // What the kernel has cached stays true.
        let opened = self.attributes(file);
        answer!(reply, opened, |_| reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE))
    }

    fn readdir(&self, _: &Request, folder: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.look(|tree| list(tree, folder.0));
        answer!(reply, listed, |entries| {
            for (at, (number, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
                if reply.add(INodeNo(number), at as u64 + 1, kind, name) {
                    break;
                }
            }
            reply.ok();
        })
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(PAGES, PAGES, PAGES, PAGES, PAGES, PAGE as u32, 255, PAGE as u32);
    }
}

/// The entries of a folder.
fn list(tree: &Tree, folder: Number) -> Result<Vec<(Number, FileType, OsString)>, Errno> {
    let mut entries =
        vec![(folder, FileType::Directory, ".".into()), (folder, FileType::Directory, "..".into())];
    for (name, number) in tree.names(folder)? {
        let kind = match tree.node(*number)?.kind {
            Kind::File(_) => FileType::RegularFile,
            Kind::Folder(_) => FileType::Directory,
        };
        entries.push((*number, kind, name.clone()));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, OpenOptions},
        io::Write,
        os::unix::fs::FileExt,
    };

    use super::*;

    /// Runs with a disk where that is possible.
    fn with_disk(check: impl FnOnce(Disk)) {
        if !is_possible() {
            eprintln!("SKIPPED: no disk can be mounted here; run as root, with /dev/fuse");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        check(Disk::mount(folder.path(), Tree::default()).unwrap());
    }

    fn left(disk: Disk, seed: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let tree = disk.unmount().unwrap().cut(&mut fastrand::Rng::with_seed(seed));
        tree.copy_to(folder.path()).unwrap();
        folder
    }

    #[test]
    fn programs_see_an_ordinary_file_system() {
        with_disk(|disk| {
            let at = disk.path();
            fs::create_dir_all(at.join("a/b")).unwrap();
            fs::write(at.join("a/b/c"), [7; 100_000]).unwrap();
            fs::rename(at.join("a/b/c"), at.join("a/d")).unwrap();
            fs::hard_link(at.join("a/d"), at.join("e")).unwrap();
            assert_eq!(fs::read(at.join("e")).unwrap(), [7; 100_000]);
            let file = OpenOptions::new().write(true).open(at.join("e")).unwrap();
            file.write_all_at(b"x", 200_000).unwrap();
            file.set_len(150_000).unwrap();
            assert_eq!(fs::metadata(at.join("a/d")).unwrap().len(), 150_000);
            assert_eq!(fs::remove_dir(at.join("a")).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
            fs::remove_dir(at.join("a/b")).unwrap();
            let names: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, ["a", "e"]);
        });
    }

    #[test]
    fn what_is_synced_through_the_kernel_survives_a_cut_and_the_rest_may_not() {
        let mut seen = [false; 2];
        for seed in 0..40 {
            with_disk(|disk| {
                let mut kept = File::create(disk.path().join("kept")).unwrap();
                kept.write_all(&[1; 10_000]).unwrap();
                kept.sync_data().unwrap();
                File::open(disk.path()).unwrap().sync_all().unwrap();
                fs::write(disk.path().join("loose"), [2; 10_000]).unwrap();
                drop(kept);
                let left = left(disk, seed);
                assert_eq!(fs::read(left.path().join("kept")).unwrap(), [1; 10_000]);
                let loose = fs::read(left.path().join("loose"));
                seen[usize::from(loose.is_ok_and(|bytes| bytes == [2; 10_000]))] = true;
            });
        }
        assert!(!is_possible() || seen == [true; 2], "{seen:?}");
    }

    #[test]
    fn after_the_cut_everything_fails_and_nothing_changes() {
        with_disk(|disk| {
            let file = File::create(disk.path().join("a")).unwrap();
            disk.cut_after(3);
            file.write_all_at(b"one", 0).unwrap();
            file.sync_all().unwrap();
            assert!(!disk.is_off());
            assert!(file.write_all_at(b"two", 0).is_err() && disk.is_off());
            assert!(file.sync_all().is_err() && File::create(disk.path().join("b")).is_err());
            drop(file);
            let left = left(disk, 1);
            assert!(!left.path().join("b").exists());
            assert!(
                fs::read(left.path().join("a")).is_ok_and(|bytes| bytes == b"one")
                    || !left.path().join("a").exists()
            );
        });
    }
}
