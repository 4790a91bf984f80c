//! A certificate and its key that are read again when their files have changed, so that a server whose certificate was
//! renewed need not be started again.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use engine::shared::Atomics;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use crate::identity::{self, Caution, IdentityError};

/// How often the files are looked at, while there are handshakes.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What tells that a file is another, or has another content: device, inode, length, and when it was written. None: it
/// cannot be looked at.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// A certificate and its key, as their files have them.
pub(crate) struct Renewable {
    certificate: PathBuf,
    key: PathBuf,
    look_every: Duration,
    held: Mutex<Held>,
    /// One cell: when the files were written that were told of last. Of several processes one tells.
    told: Atomics,
}

struct Held {
    pair: Arc<CertifiedKey>,
    stamps: [Stamp; 2],
    looked: Instant,
}

impl Renewable {
    /// Reads both; also tells what their owner should know.
    pub(crate) fn open(certificate: &Path, key: &Path) -> Result<(Self, Vec<Caution>), IdentityError> {
        let stamps = [certificate, key].map(stamp);
        let (pair, cautions) = identity::read_pair(certificate, key)?;
        let held = Mutex::new(Held { pair, stamps, looked: Instant::now() });
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok((Self { certificate, key, look_every: LOOK_EVERY, held, told: Atomics::new(1) }, cautions))
    }

    /// What to show now. While changed files cannot be used together, what they had before.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.looked.elapsed() >= self.look_every {
            held.looked = Instant::now();
            let stamps = [&self.certificate, &self.key].map(|path| stamp(path));
            if stamps != held.stamps {
                held.stamps = stamps;
                self.renew(&mut held);
            }
        }
        Arc::clone(&held.pair)
    }

    fn renew(&self, held: &mut Held) {
        let read = identity::read_pair(&self.certificate, &self.key);
        let tells = self.tells(&held.stamps);
        match read {
            Ok((pair, cautions)) => {
                held.pair = pair;
                if tells {
                    tracing::warn!("the certificate in {} was read anew", self.certificate.display());
                    cautions.iter().for_each(|caution| tracing::warn!("{caution}"));
                }
            }
            Err(error) if tells => {
                tracing::warn!("{error}; the certificate from before is shown until that changes")
            }
            Err(_) => {}
        }
    }

    /// Whether this process is the one to tell of files that were written then.
    fn tells(&self, stamps: &[Stamp; 2]) -> bool {
        let written = stamps.iter().flatten().map(|(.., seconds, nanoseconds)| {
            seconds.wrapping_mul(1_000_000_000).wrapping_add(*nanoseconds).cast_unsigned()
        });
        let written = written.fold(1, u64::wrapping_add);
        self.told[0].swap(written, Relaxed) != written
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

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a new certificate, and its key unless it is left out; tells the certificate.
    fn write(folder: &Path, with_key: bool) -> Vec<u8> {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        // As renewals do it: written aside, then put in place.
        for (name, text) in [("cert", pair.cert.pem()), ("key", pair.signing_key.serialize_pem())] {
            if name == "cert" || with_key {
                fs::write(folder.join("aside"), text).unwrap();
                fs::rename(folder.join("aside"), folder.join(name)).unwrap();
            }
        }
        pair.cert.der().to_vec()
    }

    #[test]
    fn a_renewed_certificate_is_shown_and_one_that_does_not_fit_its_key_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["cert", "key"].map(|name| folder.path().join(name));
        let first = write(folder.path(), true);
        let (mut renewable, _) = Renewable::open(&certificate, &key).unwrap();
        renewable.look_every = Duration::ZERO;
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
    fn files_are_not_looked_at_for_every_handshake() {
        let folder = tempfile::tempdir().unwrap();
        let first = write(folder.path(), true);
        let (mut renewable, _) =
            Renewable::open(&folder.path().join("cert"), &folder.path().join("key")).unwrap();
        renewable.look_every = Duration::MAX;
        write(folder.path(), true);
        assert_eq!(renewable.current().cert[0].to_vec(), first);
    }

    #[test]
    fn a_change_is_told_by_one_process_once() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), true);
        let (renewable, _) =
            Renewable::open(&folder.path().join("cert"), &folder.path().join("key")).unwrap();
        let stamps = |second| [Some((1, 1, 1, second, 0)), None];
        assert!(renewable.tells(&stamps(5)) && !renewable.tells(&stamps(5)) && renewable.tells(&stamps(6)));
    }
}
