//! Databases over TLS: what the URL asks for is had, or refused with the reason.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{fs, path::Path};

use database_server::Identity;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use store::{Database, Migration, Options, Schema, Setup, Statement, Store};
use test_support::database_servers::{DatabaseServer, Kind};

const NOTHING: &str = "SELECT 1";
const SCHEMA: Schema = Schema {
    name: "nothing",
    application_id: 0x6e6f_7468,
    migrations: &[Migration { name: "V1__nothing", sqlite: NOTHING, mysql: NOTHING, postgres: NOTHING }],
};

#[test]
fn mariadb_is_spoken_to_over_tls() {
    hold(Kind::Mariadb);
    refuse_a_server_without_tls(Kind::Mariadb);
}

#[test]
fn postgres_is_spoken_to_over_tls() {
    hold(Kind::Postgres);
    refuse_a_server_without_tls(Kind::Postgres);
}

fn hold(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    // Of 127.0.0.1 alone: localhost is another name.
    let (identity, known) = identity(&folder.path().join("known.pem"));
    let (_, stranger) = self::identity(&folder.path().join("stranger.pem"));
    let Some(server) = DatabaseServer::start_as(kind, Some(identity)) else { return };
    let plain = server.database().url();
    let with = |query: &str| format!("{plain}?{query}");

    assert!(!is_encrypted(kind, &plain).unwrap());
    assert!(!is_encrypted(kind, &with("sslmode=disable")).unwrap());
    for asked in ["sslmode=require", "sslmode=verify-full", "require_ssl=true", "connect_timeout=9"] {
        let url = if kind == Kind::Mariadb {
            asked.replace("connect_timeout=9", "tcp_keepalive=9000")
        } else {
            asked.into()
        };
        assert!(is_encrypted(kind, &with(&format!("{url}&sslrootcert={known}"))).unwrap(), "{asked}");
    }
    let url: Database = with(&format!("sslrootcert={known}")).parse().unwrap();
    Store::open(&url, &SCHEMA, &Options::default()).unwrap();

    for (url, told) in [
        (with("sslmode=verify-full"), "sslrootcert=PATH"),
        (with(&format!("sslrootcert={stranger}")), "sslrootcert=PATH"),
        (with(&format!("sslrootcert={known}")).replace("127.0.0.1", "localhost"), "for another name"),
        (with("sslrootcert=/nowhere.pem"), "/nowhere.pem cannot be read"),
        (with("sslrootcert=/dev/null"), "has no certificate"),
    ] {
        let refused = is_encrypted(kind, &url).unwrap_err();
        assert!(refused.contains(told) && refused.contains("cannot be encrypted"), "{url}: {refused}");
    }
}

/// Where TLS is asked for, nothing goes in the clear.
fn refuse_a_server_without_tls(kind: Kind) {
    let Some(server) = DatabaseServer::start(kind) else { return };
    let url = server.database().url();
    let refused = is_encrypted(kind, &format!("{url}?sslmode=verify-full")).unwrap_err();
    assert!(refused.contains("the server does not support TLS"), "{refused}");
}

/// A certificate that signs itself, its key, and the file where it lies.
fn identity(file: &Path) -> (Identity, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let identity = Identity { certificate: cert.pem(), key: signing_key.serialize_pem() };
    fs::write(file, &identity.certificate).unwrap();
    (identity, file.display().to_string())
}

/// Whether a connection by this URL is encrypted, as the server sees it.
fn is_encrypted(kind: Kind, url: &str) -> Result<bool, String> {
    let database: Database = url.parse().unwrap();
    let mut setup: Setup = Store::prepare(&database, &SCHEMA).map_err(|error| error.to_string())?;
    let rows = setup.query(&Statement::new(match kind {
        Kind::Mariadb => "SHOW SESSION STATUS LIKE 'Ssl_cipher'",
        Kind::Postgres => {
            "SELECT 'cipher', coalesce(cipher, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        }
    }));
    Ok(!rows.unwrap()[0].text(1).unwrap().is_empty())
}
