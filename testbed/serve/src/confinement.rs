//! What the process of a server gives up once it is bound to its address: root, new privileges, core dumps, files that are
//! not its own, and system calls that servers never make.
//!
//! `PR_SET_DUMPABLE` stays as it is: without it nobody but root could observe the server through `/proc`.

use std::{
    env,
    ffi::CString,
    fmt::{self, Display, Formatter},
    fs,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
};

use clap::Args;
use engine::Model;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, path_beneath_rules,
};
use nix::unistd::{Gid, Uid, User};
use nstar::exit::Failure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use store::Database;

use crate::system_calls::keep_to_calls_of;

/// Flags for the rights of the process.
#[derive(Debug, Args)]
pub struct Rights {
    /// As root: user to become once the address is bound. Where others can reach the server this is required; `root` stays
    /// root
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Leave the process all files of its user; otherwise Landlock, where the kernel has it, leaves it the folder that it
    /// serves, its database, its certificates and what it reads of the system
    #[arg(long)]
    pub all_files: bool,
    /// Leave the process all system calls; otherwise seccomp, where the kernel has it, refuses those that servers never make,
    /// such as running a program and, but for models that fork, making a process
    #[arg(long)]
    pub all_system_calls: bool,
}

/// The files of a server. Everything below a folder belongs to it.
#[derive(Debug, Default)]
pub struct ServerFiles {
    read: Vec<PathBuf>,
    written: Vec<PathBuf>,
    kept: Vec<PathBuf>,
}

impl ServerFiles {
    /// It reads this file or folder.
    pub fn reads(&mut self, path: &Path) {
        self.read.push(path.to_owned());
    }

    /// It reads this file, which may be replaced while it runs: all files beside it are readable too, and where a link leads
    /// those beside its target.
    pub fn reads_beside(&mut self, path: &Path) {
        self.read.push(folder_of(path));
        self.read.extend(fs::canonicalize(path).ok().as_deref().map(folder_of));
    }

    /// It changes what is in this folder.
    pub fn writes(&mut self, folder: &Path) {
        self.written.push(folder.to_owned());
    }

    /// It keeps its own data in this folder, which is created if it is missing.
    pub fn keeps(&mut self, folder: &Path) {
        self.kept.push(folder.to_owned());
        self.writes(folder);
    }

    /// It uses this database.
    pub fn uses(&mut self, database: &Database) {
        database.path().into_iter().for_each(|path| self.writes_beside(path));
        database.authorities().into_iter().for_each(|path| self.reads_beside(path));
    }

    /// It creates and changes this file and others beside it, as databases have.
    pub fn writes_beside(&mut self, path: &Path) {
        self.written.push(folder_of(path));
    }
}

fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// What every process reads of the system: names of hosts, authorities, libraries that the C library loads for names, what
/// the kernel says of processes and memory.
const SYSTEM_READS: [&str; 16] = [
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
    "/lib",
    "/lib64",
    "/proc",
    "/sys/fs/cgroup",
    "/usr/lib",
    "/usr/share/ca-certificates",
    "/usr/share/zoneinfo",
];

/// Where authorities are, if somebody said so.
const AUTHORITIES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The name of the user who may do everything.
const ROOT: &str = "root";

/// What it writes of the system.
const SYSTEM_WRITES: [&str; 1] = ["/dev/null"];

/// What a process has given up, for its first line and `/healthz`.
#[derive(Debug)]
pub(crate) struct Confinement {
    user: Option<String>,
    calls: CallAccess,
    files: FileAccess,
}

/// Which system calls the process can still make.
#[derive(Debug, PartialEq, Eq)]
enum CallAccess {
    OfServers,
    /// All, because that was asked for.
    AsAsked,
    /// All, because the kernel cannot refuse any.
    NoSeccomp,
}

/// Which files the process can still reach.
#[derive(Debug, PartialEq, Eq)]
enum FileAccess {
    Own,
    /// Its user's, because that was asked for.
    AsAsked,
    /// Its user's, because the kernel cannot confine it.
    NoLandlock,
}

impl Display for Confinement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "user {user}, ")?;
        }
        f.write_str("no new privileges, no core dumps, ")?;
        f.write_str(match self.calls {
            CallAccess::OfServers => "no system calls that servers never make (seccomp), ",
            CallAccess::AsAsked => "all system calls, ",
            CallAccess::NoSeccomp => "all system calls (the kernel refuses seccomp), ",
        })?;
        f.write_str(match self.files {
            FileAccess::Own => "only its own files (Landlock)",
            FileAccess::AsAsked => "all files of its user",
            FileAccess::NoLandlock => "all files of its user: the kernel has no Landlock",
        })
    }
}

/// Refuses to serve others as root unless that was chosen.
///
/// # Errors
/// When the process is root's, others can reach `listen`, and no user was named.
pub fn refuse_root(rights: &Rights, listen: SocketAddr) -> Result<(), Failure> {
    if listen.ip().to_canonical().is_loopback() { Ok(()) } else { refuse_root_exposed(rights, listen) }
}

/// Refuses root as [`refuse_root`] does, at an address that others reach in any case, such as through a proxy.
///
/// # Errors
/// When the process is root's, and no user was named.
pub(crate) fn refuse_root_exposed(rights: &Rights, listen: SocketAddr) -> Result<(), Failure> {
    if !Uid::effective().is_root() || rights.user.is_some() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "others can reach {listen}, and this server would have all rights of root there; name the user that it becomes \
         with --user NAME (who must own the files that it writes), or stay root with --user root"
    )))
}

/// Becomes the user that the flags name, to whom the folders then belong that the server keeps data in. Returns the user's name if the
/// flags name it or it is root.
///
/// # Errors
/// When there is no such user, or this process cannot become it.
pub(crate) fn leave_root(rights: &Rights, files: &ServerFiles) -> Result<Option<String>, Failure> {
    let user = rights.user.as_deref().map(known).transpose()?;
    for folder in &files.kept {
        create(folder, user.as_ref())?;
    }
    if let Some(user) = &user {
        become_user(user)?;
    }
    let is_root = Uid::effective().is_root();
    Ok(user.map(|user| user.name).filter(|name| is_root || name != ROOT).or(is_root.then(|| ROOT.to_owned())))
}

/// Gives up what a server that runs as one of `models` does not need, as `user` if it became one. No other thread may run
/// yet: each has rights of its own, and those that it starts inherit them, as processes do.
///
/// # Errors
/// When the system refuses what every kernel can do.
pub(crate) fn confine(
    rights: &Rights,
    files: &ServerFiles,
    user: Option<String>,
    models: &[Model],
) -> Result<Confinement, Failure> {
    rustix::thread::set_no_new_privs(true).map_err(Failure::failed)?;
    forbid_core_dumps()?;
    let files = if rights.all_files { FileAccess::AsAsked } else { keep_to(files)? };
    let calls = if rights.all_system_calls { CallAccess::AsAsked } else { refuse_calls(models) };
    Ok(Confinement { user, calls, files })
}

fn known(name: &str) -> Result<User, Failure> {
    let found = User::from_name(name)
        .map_err(|error| Failure::failed(format!("cannot look up the user {name}: {error}")))?;
    found.ok_or_else(|| {
        Failure::usage(format!(
            "--user {name}: there is no such user; create one with `useradd --system {name}`, or name another"
        ))
    })
}

/// Creates a missing folder, as the user's.
fn create(folder: &Path, user: Option<&User>) -> Result<(), Failure> {
    let failed = |error: &dyn Display| {
        Failure::failed(format!("cannot create the folder {}: {error}", folder.display()))
    };
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let Some(user) = user.filter(|_| Uid::effective().is_root()) else { return Ok(()) };
    chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).map_err(|error| failed(&error))
}

/// Becomes the user for good, with its groups, and makes sure of it.
fn become_user(user: &User) -> Result<(), Failure> {
    let (uid, gid) = (user.uid, user.gid);
    // Who allows root has lost nothing where it is not.
    if uid == Uid::effective() || uid.is_root() {
        return Ok(());
    }
    let failed =
        |error: nix::Error| Failure::failed(format!("cannot become the user {}: {error}", user.name));
    if !Uid::effective().is_root() {
        return Err(Failure::usage(format!(
            "--user {}: only root can become another user; leave it out, or start the server as root",
            user.name
        )));
    }
    let name = CString::new(user.name.as_str()).map_err(Failure::failed)?;
    nix::unistd::initgroups(&name, gid).map_err(failed)?;
    nix::unistd::setresgid(gid, gid, gid).map_err(failed)?;
    nix::unistd::setresuid(uid, uid, uid).map_err(failed)?;
    if is_only(uid, gid).map_err(failed)? {
        return Ok(());
    }
    Err(Failure::failed(format!("the process did not become the user {} for good; it ends", user.name)))
}

/// Whether the process has the rights of this user and group alone, and cannot become root again.
fn is_only(uid: Uid, gid: Gid) -> Result<bool, nix::Error> {
    let (user, group) = (nix::unistd::getresuid()?, nix::unistd::getresgid()?);
    let is_user = [user.real, user.effective, user.saved].iter().all(|id| *id == uid);
    let is_group = [group.real, group.effective, group.saved].iter().all(|id| *id == gid);
    let root = Uid::from_raw(0);
    Ok(is_user && is_group && nix::unistd::setresuid(root, root, root).is_err())
}

/// Memory holds passwords and keys, so none of it is dumped. A limit of 1 byte, unlike 0, keeps the kernel from dumping to
/// programs too (`fs/coredump.c`).
fn forbid_core_dumps() -> Result<(), Failure> {
    // Only root could raise it to that.
    let most = getrlimit(Resource::Core).maximum.map_or(1, |most| most.min(1));
    setrlimit(Resource::Core, Rlimit { current: Some(most), maximum: Some(most) })
        .map_err(|error| Failure::failed(format!("cannot forbid core dumps: {error}")))
}

/// Leaves the process the files of the server, where the kernel can do so.
fn keep_to(files: &ServerFiles) -> Result<FileAccess, Failure> {
    match landlocked(files) {
        Ok(RulesetStatus::NotEnforced) | Err(RulesetError::HandleAccesses(_)) => {
            nstar::exit::warn(
                "this kernel cannot confine the server to its own files (Landlock, Linux 5.19 or later): its user's rights \
                 alone decide what it reaches",
            );
            Ok(FileAccess::NoLandlock)
        }
        Ok(_) => Ok(FileAccess::Own),
        Err(error) => Err(Failure::failed(format!(
            "cannot confine the server to its own files: {error}; see --all-files"
        ))),
    }
}

/// Leaves the process the system calls of a server that runs as one of `models`, where the kernel can do so.
fn refuse_calls(models: &[Model]) -> CallAccess {
    match keep_to_calls_of(models) {
        Ok(()) => CallAccess::OfServers,
        Err(error) => {
            nstar::exit::warn(format_args!(
                "no system calls are refused (seccomp: {error}): the rights of its user alone decide what the server does"
            ));
            CallAccess::NoSeccomp
        }
    }
}

fn landlocked(files: &ServerFiles) -> Result<RulesetStatus, RulesetError> {
    let reading: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let authorities = AUTHORITIES.iter().filter_map(env::var_os).map(PathBuf::from);
    let read = SYSTEM_READS.iter().map(PathBuf::from).chain(authorities).chain(files.read.iter().cloned());
    let written = SYSTEM_WRITES.iter().map(PathBuf::from).chain(files.written.iter().cloned());
    let all = AccessFs::from_all(ABI::V3);
    let status = Ruleset::default()
        // Without it the kernel would refuse to move files between folders: better not confined than broken.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?
        .add_rules(path_beneath_rules(read, reading))?
        .add_rules(path_beneath_rules(written, all & !AccessFs::Execute))?
        .restrict_self()?;
    Ok(status.ruleset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(user: Option<&str>) -> Rights {
        Rights { user: user.map(str::to_owned), all_files: false, all_system_calls: false }
    }

    #[test]
    fn root_serves_others_only_if_that_was_chosen() {
        let (here, everywhere) = ("127.0.0.1:80".parse().unwrap(), "[::]:80".parse().unwrap());
        refuse_root(&rights(None), here).unwrap();
        refuse_root(&rights(Some("root")), everywhere).unwrap();
        if Uid::effective().is_root() {
            let said = refuse_root(&rights(None), everywhere).unwrap_err().to_string();
            assert!(said.contains("--user NAME") && said.contains("--user root"), "{said}");
        }
    }

    #[test]
    fn a_user_that_does_not_exist_is_named() {
        let said = known("no-such-user").unwrap_err().to_string();
        assert!(said.contains("no-such-user") && said.contains("useradd"), "{said}");
        assert_eq!(known("root").unwrap().uid, Uid::from_raw(0));
    }

    #[test]
    fn a_confined_thread_reaches_its_own_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["own/first/file", "own/second/file", "tls/key.pem", "other/file"] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "text").unwrap();
        }
        let mut files = ServerFiles::default();
        files.writes(&at("own"));
        files.reads_beside(&at("tls/key.pem"));
        let denied = |result: std::io::Result<()>| {
            assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
        };
        // A thread of its own, as it stays confined.
        let confined = || {
            if keep_to(&files).unwrap() == FileAccess::NoLandlock {
                return eprintln!("SKIPPED: this kernel has no Landlock");
            }
            fs::write(at("own/new"), "text").unwrap();
            fs::rename(at("own/first/file"), at("own/second/file")).unwrap();
            fs::remove_dir(at("own/first")).unwrap();
            fs::read(at("tls/key.pem")).unwrap();
            fs::read("/proc/self/status").unwrap();
            denied(fs::write(at("tls/key.pem"), "text"));
            denied(fs::read(at("other/file")).map(drop));
            denied(fs::read_dir(at("other")).map(drop));
            denied(fs::write("/tmp/no-such-file-of-nstar", "text"));
        };
        std::thread::scope(|scope| scope.spawn(confined).join()).unwrap();
        fs::read(at("other/file")).unwrap();
    }

    #[test]
    fn what_was_given_up_is_said() {
        let said = |user: Option<&str>, calls, files| {
            Confinement { user: user.map(str::to_owned), calls, files }.to_string()
        };
        assert_eq!(
            said(Some("www"), CallAccess::OfServers, FileAccess::Own),
            "user www, no new privileges, no core dumps, no system calls that servers never make (seccomp), only its own \
             files (Landlock)"
        );
        let little = said(None, CallAccess::NoSeccomp, FileAccess::NoLandlock);
        assert!(little.contains("all system calls (the kernel refuses seccomp)"), "{little}");
        assert!(little.ends_with("the kernel has no Landlock"), "{little}");
    }
}
