//! A certificate and its key that are reloaded when their files change or somebody asks for it, so that a server need not be
//! restarted when its certificate is renewed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use engine::shared::Atomics;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use crate::{
    pem::{Caution, IdentityError, pair_of, read_pair},
    published::{Published, Texts},
    validity::Validity,
};

/// How often the files are checked, as long as there are handshakes.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// What identifies a version of a file: device, inode, length, and time of modification. `None` if it cannot be read.
type Version = Option<(u64, u64, u64, i64, i64)>;

/// A certificate and its key that are reloaded when their files change or somebody asks for it.
pub(crate) struct Renewable {
    certificate: PathBuf,
    key: PathBuf,
    check_every: Duration,
    loaded: Mutex<Loaded>,
    /// One number, shared with forked processes: which version of the files was logged last. One process logs each.
    logged: Atomics,
    /// What was read because somebody asked for it.
    published: Published,
}

/// What was read from the files.
struct Loaded {
    pair: Arc<CertifiedKey>,
    validity: Option<Validity>,
    versions: [Version; 2],
    checked_at: Instant,
    reloads: u64,
}

impl Renewable {
    /// Reads both files. Returns warnings for their owner too.
    pub(crate) fn open(certificate: &Path, key: &Path) -> Result<(Self, Vec<Caution>), IdentityError> {
        let versions = [certificate, key].map(version);
        let (read, _) = read_pair(certificate, key)?;
        let (pair, validity, checked_at) = (read.certified, read.validity, Instant::now());
        let loaded = Mutex::new(Loaded { pair, validity, versions, checked_at, reloads: 0 });
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok((
            Self {
                certificate,
                key,
                check_every: CHECK_EVERY,
                loaded,
                logged: Atomics::new(1),
                published: Published::new(),
            },
            read.cautions,
        ))
    }

    /// The file of the certificate.
    pub(crate) fn path(&self) -> &Path {
        &self.certificate
    }

    /// When the certificate in use is valid.
    pub(crate) fn validity(&self) -> Option<Validity> {
        self.loaded().validity
    }

    /// Reads the files if they may have changed.
    pub(crate) fn refresh(&self) {
        drop(self.up_to_date());
    }

    /// Reads the files, and has other processes show at their next handshake what was read here, whatever is in the files by
    /// then. Returns false if they cannot be used: the previous certificate stays in use, here and there.
    pub(crate) fn reload(&self) -> bool {
        let mut loaded = self.loaded();
        let read = self.read(&mut loaded);
        // Others have nothing to add.
        self.logs(&loaded.versions);
        let read = read.map(|(cautions, texts)| {
            loaded.reloads = self.published.publish(&texts);
            cautions
        });
        self.log(&read);
        read.is_ok()
    }

    /// The certificate to present now: the previous one as long as changed files do not fit together.
    fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.up_to_date().pair)
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn up_to_date(&self) -> MutexGuard<'_, Loaded> {
        let mut loaded = self.loaded();
        if self.published.count() != loaded.reloads {
            self.take_published(&mut loaded);
        }
        if loaded.checked_at.elapsed() >= self.check_every {
            loaded.checked_at = Instant::now();
            if self.versions() != loaded.versions {
                let read = self.read(&mut loaded).map(|(cautions, _)| cautions);
                if self.logs(&loaded.versions) {
                    self.log(&read);
                }
            }
        }
        loaded
    }

    /// Takes what another process has read and found to be good.
    fn take_published(&self, loaded: &mut Loaded) {
        let (reloads, texts) = self.published.last();
        loaded.reloads = reloads;
        let read = match &texts {
            Some(texts) => pair_of(&self.certificate, &self.key, texts),
            None => read_pair(&self.certificate, &self.key).map(|(read, _)| read),
        };
        if let Ok(read) = read {
            (loaded.pair, loaded.validity) = (read.certified, read.validity);
        }
    }

    /// Reads the files. What was loaded stays if they cannot be used.
    fn read(&self, loaded: &mut Loaded) -> Result<(Vec<Caution>, Texts), IdentityError> {
        loaded.versions = self.versions();
        let (read, texts) = read_pair(&self.certificate, &self.key)?;
        (loaded.pair, loaded.validity) = (read.certified, read.validity);
        Ok((read.cautions, texts))
    }

    fn versions(&self) -> [Version; 2] {
        [&self.certificate, &self.key].map(|path| version(path))
    }

    fn log(&self, read: &Result<Vec<Caution>, IdentityError>) {
        match read {
            Ok(cautions) => {
                tracing::warn!("the certificate in {} was reloaded", self.certificate.display());
                cautions.iter().for_each(|caution| tracing::warn!("{caution}"));
            }
            Err(error) => {
                tracing::warn!("{error}; the previous certificate stays in use until that is fixed")
            }
        }
    }

    /// Whether this process is the one to log this version of the files.
    fn logs(&self, versions: &[Version; 2]) -> bool {
        let written = versions.iter().flatten().map(|(.., seconds, nanoseconds)| {
            seconds.wrapping_mul(1_000_000_000).wrapping_add(*nanoseconds).cast_unsigned()
        });
        let written = written.fold(1, u64::wrapping_add);
        self.logged[0].swap(written, Relaxed) != written
    }
}

impl ResolvesServerCert for Renewable {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl std::fmt::Debug for Renewable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renewable").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

fn version(path: &Path) -> Version {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a new certificate, and its key if `with_key`. Returns the certificate.
    fn write(folder: &Path, with_key: bool) -> Vec<u8> {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        // Like renewal tools: written under another name, then renamed.
        for (name, text) in [("cert", pair.cert.pem()), ("key", pair.signing_key.serialize_pem())] {
            if name == "cert" || with_key {
                fs::write(folder.join("aside"), text).unwrap();
                fs::rename(folder.join("aside"), folder.join(name)).unwrap();
            }
        }
        pair.cert.der().to_vec()
    }

    #[test]
    fn a_renewed_certificate_is_used_once_it_fits_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["cert", "key"].map(|name| folder.path().join(name));
        let first = write(folder.path(), true);
        let (mut renewable, _) = Renewable::open(&certificate, &key).unwrap();
        renewable.check_every = Duration::ZERO;
        let shown = || renewable.current().cert[0].to_vec();
        assert_eq!(shown(), first);
        let second = write(folder.path(), true);
        assert_eq!((shown(), shown()), (second.clone(), second.clone()));
        write(folder.path(), false);
        assert_eq!(shown(), second, "its key is not there yet");
        fs::remove_file(&key).unwrap();
        assert_eq!(shown(), second);
        let third = write(folder.path(), true);
        assert_eq!(shown(), third);
    }

    #[test]
    fn files_are_not_checked_for_every_handshake() {
        let folder = tempfile::tempdir().unwrap();
        let first = write(folder.path(), true);
        let (mut renewable, _) =
            Renewable::open(&folder.path().join("cert"), &folder.path().join("key")).unwrap();
        renewable.check_every = Duration::MAX;
        write(folder.path(), true);
        assert_eq!(renewable.current().cert[0].to_vec(), first);
    }

    #[test]
    fn who_asks_gets_the_files_read_at_once_here_and_in_other_processes() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), true);
        let [certificate, key] = ["cert", "key"].map(|name| folder.path().join(name));
        let (mut renewable, _) = Renewable::open(&certificate, &key).unwrap();
        renewable.check_every = Duration::MAX;
        let shown = || renewable.current().cert[0].to_vec();
        let second = write(folder.path(), true);
        assert!(shown() != second && renewable.reload() && shown() == second);
        fs::write(&key, "no key").unwrap();
        assert!(!renewable.reload() && shown() == second, "the old one stays");
        let third = write(folder.path(), true);
        // As if another process had been asked, and the files were broken before this one shakes hands.
        let (_, texts) = read_pair(&certificate, &key).unwrap();
        fs::write(&key, "no key").unwrap();
        renewable.published.publish(&texts);
        assert!(shown() == third && renewable.validity().is_some());
    }

    #[test]
    fn a_change_is_logged_by_one_process_once() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), true);
        let (renewable, _) =
            Renewable::open(&folder.path().join("cert"), &folder.path().join("key")).unwrap();
        let versions = |second| [Some((1, 1, 1, second, 0)), None];
        assert!(
            renewable.logs(&versions(5)) && !renewable.logs(&versions(5)) && renewable.logs(&versions(6))
        );
    }
}
