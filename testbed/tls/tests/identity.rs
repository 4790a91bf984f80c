//! What a server shows: every mistake in its files is named.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rcgen::{CertificateParams, CertifiedKey, KeyPair, date_time_ymd};
use tempfile::TempDir;
use tls::{Caution, Identity, Trust};

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A file that only its owner may read.
    fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// A certificate and its key, changed by `with`.
    fn pair(&self, with: impl FnOnce(&mut CertificateParams)) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        with(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (self.put("cert.pem", certificate.pem()), self.put("key.pem", key.serialize_pem()))
    }
}

fn refusal(certificate: &Path, key: &Path) -> String {
    match Identity::load(certificate, key) {
        Ok(_) => panic!("{} and {} were taken", certificate.display(), key.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_pair_that_fits_is_taken_without_a_word() {
    let files = Files::new();
    let (certificate, key) = files.pair(|_| ());
    assert_eq!(Identity::load(&certificate, &key).unwrap().cautions(), []);
}

#[test]
fn every_mistake_is_named_and_no_key_is_repeated() {
    let files = Files::new();
    let (certificate, key) = files.pair(|_| ());
    let CertifiedKey { signing_key: other, .. } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (missing, folder) = (files.folder.path().join("none.pem"), files.folder.path().to_owned());
    let text = files.put("text.pem", "hush hush");
    let der = files.put("cert.der", [0x30, 0x82, 0, 1, 2, 3]);
    let half = fs::read_to_string(&certificate).unwrap();
    let half = files.put("half.pem", &half[..half.len() / 2]);
    let empty = files.put("empty.pem", "");
    let broken = "-----BEGIN CERTIFICATE-----\naHVzaA==\n-----END CERTIFICATE-----\n";
    let broken = files.put("broken.pem", broken);
    let other = files.put("other.pem", other.serialize_pem());
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\naHVzaA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let locked = files.put("locked.pem", locked);
    let old =
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\naHVzaA==\n-----END EC PRIVATE KEY-----\n";
    let old = files.put("old.pem", old);
    for (certificate, key, said) in [
        (&missing, &key, "none.pem cannot be read"),
        (&certificate, &missing, "none.pem cannot be read"),
        (&folder, &key, "cannot be read"),
        (&text, &key, "no certificate in"),
        (&der, &key, "no certificate in"),
        (&half, &key, "no certificate in"),
        (&empty, &key, "no certificate in"),
        (&key, &key, "no certificate in"),
        (&broken, &key, "cannot be used"),
        (&certificate, &certificate, "no private key in"),
        (&certificate, &text, "no private key in"),
        (&certificate, &empty, "no private key in"),
        (&certificate, &other, "does not belong to"),
        (&certificate, &locked, "protected by a password"),
        (&certificate, &old, "protected by a password"),
    ] {
        let refusal = refusal(certificate, key);
        assert!(refusal.contains(said) && !refusal.contains('\n'), "'{refusal}' lacks '{said}'");
        assert!(!refusal.contains("hush") && !refusal.contains("aHVz"), "{refusal}");
    }
}

#[test]
fn a_certificate_out_of_its_time_and_a_shared_key_are_told() {
    let files = Files::new();
    for (from, to) in [(2001, 2002), (2900, 2901)] {
        let (certificate, key) = files.pair(|params| {
            params.not_before = date_time_ymd(from, 1, 1);
            params.not_after = date_time_ymd(to, 1, 1);
        });
        let identity = Identity::load(&certificate, &key).unwrap();
        let [caution @ Caution::NotValidNow { .. }] = identity.cautions() else {
            panic!("{:?}", identity.cautions())
        };
        assert!(caution.to_string().contains("cert.pem"), "{caution}");
    }
    let (certificate, key) = files.pair(|_| ());
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let identity = Identity::load(&certificate, &key).unwrap();
    assert_eq!(identity.cautions(), [Caution::KeyShared { path: key, mode: 0o644 }]);
    assert!(identity.cautions()[0].to_string().contains("chmod 600"));
}

#[test]
fn a_key_that_somebody_else_owns_is_refused() {
    let files = Files::new();
    let (certificate, key) = files.pair(|_| ());
    if std::os::unix::fs::chown(&key, Some(65_534), None).is_err() {
        eprintln!("skipped: only root gives files away");
        return;
    }
    let error = Identity::load(&certificate, &key).unwrap_err().to_string();
    assert!(error.contains("another user") && error.contains("chown 0 "), "{error}");
}

#[test]
fn a_file_of_authorities_that_holds_none_is_named() {
    let files = Files::new();
    let (certificate, key) = files.pair(|_| ());
    assert!(Trust::of_file(&certificate).is_ok());
    for (path, said) in [
        (files.folder.path().join("none.pem"), "none.pem cannot be read"),
        (key, "no certificate in"),
        (files.put("text.pem", "text"), "no certificate in"),
    ] {
        let error = Trust::of_file(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let trust = Trust::of_file(&certificate).unwrap();
    assert!(trust.peer("localhost").is_ok() && trust.peer("127.0.0.1").is_ok() && trust.peer("::1").is_ok());
    assert!(trust.peer("no name").is_err() && trust.peer("").is_err());
}
