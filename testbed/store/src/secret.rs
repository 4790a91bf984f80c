//! Secrets that a server generates at its first start, in files that only their owner may read.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rustix::process::geteuid;
use zeroize::Zeroizing;

/// How many random bytes a secret has.
const SECRET_LEN: usize = 32;

/// The longest file that is read, bytes.
const FILE_LEN_MAX: usize = 1024;

/// The user who may change every file anyway.
const ROOT: u32 = 0;

/// 256 random bits as text, wiped from memory when dropped. `Debug` hides them.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// Why a secret cannot be used. Never contains it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file cannot be read or created.
    #[error(
        "the secret in {path} cannot be read or created: {source}; check that this user may write the folder, or name \
         another file"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder of the file does not exist.
    #[error(
        "there is no folder {folder} for the secret in {path}; create it with `mkdir -p {folder}`, or name another file"
    )]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// It is a folder.
    #[error("{path} is a folder; name a file in it")]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// Users other than the owner may read the file.
    #[error(
        "users other than its owner may read the secret in {path} (mode {mode:o}); run `chmod {most:o} {path}`"
    )]
    Shared {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// The most that it may have.
        most: u32,
    },
    /// Somebody else owns the file, and may change it.
    #[error("the secret in {path} belongs to another user; run `chown {user} {path}`, or name another file")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// The user whose it should be, by number.
        user: u32,
    },
    /// The file contains something else.
    #[error("{path} does not contain a secret of nstar's; restore it from a backup, or name another file")]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

impl Secret {
    /// Reads the secret in a file, or generates one if there is no file. If two servers generate it at once, both use the
    /// same one.
    ///
    /// # Errors
    /// When the file cannot be read or created, contains something else, or may be read by others.
    pub fn open(path: &Path) -> Result<Self, SecretError> {
        let failed = |source| cannot(path, source);
        if path.try_exists().map_err(failed)? {
            // Whoever generated it may have been killed before its name was on the disk. Not every user may read the
            // folder of a secret that has long been there.
            let _ = sync_folder_of(path);
        } else {
            generate(path).map_err(failed)?;
        }
        let file = fs::File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        Self::check_access(path, &metadata)?;
        // With room enough: a text that grows leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(2 * FILE_LEN_MAX));
        file.take(FILE_LEN_MAX as u64).read_to_string(&mut text).map_err(failed)?;
        let text = text.trim();
        match URL_SAFE_NO_PAD.decode(text).map(Zeroizing::new) {
            Ok(bytes) if bytes.len() == SECRET_LEN => Ok(Self(text.to_owned().into())),
            _ => Err(SecretError::Unreadable { path: path.to_owned() }),
        }
    }

    /// Checks that [`open`](Self::open) will work, as far as possible without creating anything.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn check(path: &Path) -> Result<(), SecretError> {
        let failed = |source| cannot(path, source);
        if path.try_exists().map_err(failed)? {
            return Self::open(path).map(drop);
        }
        fs::metadata(folder_of(path)).map(drop).map_err(failed)
    }

    /// Checks that others may neither read nor change the open file of a secret, which is at `path`.
    ///
    /// # Errors
    /// [`SecretError::Shared`], [`SecretError::NotOurs`], and [`SecretError::Folder`] if it is none.
    pub fn check_access(path: &Path, metadata: &fs::Metadata) -> Result<(), SecretError> {
        if metadata.is_dir() {
            return Err(SecretError::Folder { path: path.to_owned() });
        }
        check_access(path, metadata.uid(), metadata.permissions().mode(), geteuid().as_raw())
    }

    /// The bytes to derive keys from.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether this is the secret. The time taken does not reveal how much of it is right.
    pub fn is(&self, presented: &[u8]) -> bool {
        // Hashes are compared in constant time.
        blake3::hash(presented) == blake3::hash(self.as_bytes())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// Checks that only `user`, who runs this process, and root may read and change a file. Its group may read it too if root owns
/// it and is not the user: root then chose the group, as Kubernetes does where it mounts a secret.
///
/// # Errors
/// [`SecretError::Shared`] and [`SecretError::NotOurs`].
fn check_access(path: &Path, owner: u32, mode: u32, user: u32) -> Result<(), SecretError> {
    let (refused, most) = if owner == ROOT && user != ROOT { (0o037, 0o640) } else { (0o077, 0o600) };
    if mode & refused != 0 {
        return Err(SecretError::Shared { path: path.to_owned(), mode: mode & 0o777, most });
    }
    if owner != user && owner != ROOT {
        return Err(SecretError::NotOurs { path: path.to_owned(), user });
    }
    Ok(())
}

/// The error of a file. A missing file is created, so if something is not found it is the folder.
fn cannot(path: &Path, source: io::Error) -> SecretError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => SecretError::NoFolder { folder: folder_of(&path).to_owned(), path },
        _ => SecretError::File { path, source },
    }
}

/// Generates a secret. The file is written under another name and then linked, so that nobody reads half of it and an
/// existing file stays.
fn generate(path: &Path) -> io::Result<()> {
    let mut bytes = Zeroizing::new([0; SECRET_LEN]);
    getrandom::fill(&mut bytes[..]).map_err(io::Error::other)?;
    let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode(&bytes[..]));
    let aside = aside(path);
    let written = write(&aside, &secret).and_then(|()| match fs::hard_link(&aside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    // Fails only if it was not created.
    let _ = fs::remove_file(&aside);
    written.and_then(|()| sync_folder_of(path))
}

/// Syncs the folder. Otherwise a power failure might lose the new name after the secret was used.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    fs::File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{:x}", std::process::id(), fastrand::u64(..)));
    name.into()
}

fn write(path: &Path, secret: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_generated_once_for_its_owner_only_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.key");
        let all: Vec<_> = std::thread::scope(|scope| {
            let opening: Vec<_> = (0..4).map(|_| scope.spawn(|| Secret::open(&path).unwrap())).collect();
            opening.into_iter().map(|opened| opened.join().unwrap()).collect()
        });
        assert!(all.iter().all(|secret| secret.is(all[0].as_bytes())));
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names, std::slice::from_ref(&path));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(all[0].is(text.trim().as_bytes()) && !all[0].is(b"") && !all[0].is(b"x"));
        assert_eq!(format!("{:?}", all[0]), "Secret(hidden)");
    }

    #[test]
    fn a_secret_that_somebody_else_owns_is_refused() {
        if geteuid().as_raw() != ROOT {
            eprintln!("skipped: only root gives files away");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.key");
        Secret::open(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let error = Secret::open(&path).unwrap_err().to_string();
        assert!(error.contains("another user") && error.contains("chown 0 "), "{error}");
    }

    #[test]
    fn only_root_lets_a_group_read_a_secret_and_not_one_of_its_own() {
        const ANN: u32 = 1000;
        let told = |owner, mode, user| match check_access(Path::new("s.key"), owner, mode, user) {
            Ok(()) => "taken",
            Err(SecretError::Shared { .. }) => "shared",
            Err(_) => "not ours",
        };
        for (owner, mode, user, expected) in [
            (ANN, 0o600, ANN, "taken"),
            (ANN, 0o640, ANN, "shared"),
            (ROOT, 0o400, ANN, "taken"),
            (ROOT, 0o440, ANN, "taken"),
            (ROOT, 0o640, ANN, "taken"),
            (ROOT, 0o460, ANN, "shared"),
            (ROOT, 0o444, ANN, "shared"),
            (ROOT, 0o600, ROOT, "taken"),
            (ROOT, 0o640, ROOT, "shared"),
            (ANN, 0o600, ROOT, "not ours"),
            (ANN + 1, 0o600, ANN, "not ours"),
        ] {
            assert_eq!(told(owner, mode, user), expected, "{owner} {mode:o} {user}");
        }
        let mounted = check_access(Path::new("s.key"), ROOT, 0o644, ANN).unwrap_err().to_string();
        assert!(mounted.contains("chmod 640 s.key"), "{mounted}");
    }

    #[test]
    fn unusable_files_are_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.key");
        Secret::open(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Secret::open(&path).unwrap_err().to_string().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "hush").unwrap();
        let error = Secret::open(&path).unwrap_err().to_string();
        assert!(error.contains("s.key") && !error.contains("hush"), "{error}");
        let instead = Secret::open(folder.path()).unwrap_err().to_string();
        assert!(instead.contains("is a folder") && !instead.contains("chmod"), "{instead}");
        let nowhere = Secret::open(&folder.path().join("none/s.key")).unwrap_err().to_string();
        assert!(nowhere.contains("mkdir -p") && nowhere.contains("none`"), "{nowhere}");
    }
}
