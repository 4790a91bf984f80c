//! Databases of earlier versions.

use store::{Migration, Schema, Statement, Store};

use crate::{suite::Fixture, support::basic};

/// The schema before administration.
const BEFORE: Schema = Schema { migrations: &[V1], ..NAMELESS };
/// The schema before names of deleted accounts stayed taken.
const NAMELESS: Schema = Schema { name: "accounts", application_id: 0x6e73_7461, migrations: &[V1, V2] };
const V1: Migration = Migration {
    name: "V1__accounts",
    sqlite: include_str!("../../src/tables/v1/sqlite.sql"),
    mysql: include_str!("../../src/tables/v1/mysql.sql"),
    postgres: include_str!("../../src/tables/v1/postgres.sql"),
};
const V2: Migration = Migration {
    name: "V2__administration",
    sqlite: include_str!("../../src/tables/v2/sqlite.sql"),
    mysql: include_str!("../../src/tables/v2/mysql.sql"),
    postgres: include_str!("../../src/tables/v2/postgres.sql"),
};
/// The hash of `password` by the reference implementation (phc-winner-argon2, src/test.c).
const HASH: &str = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

pub(crate) fn version_before(fixture: &Fixture) {
    let token = "A".repeat(43);
    let mut before = Store::prepare(&fixture.database, &BEFORE).unwrap();
    let account = "INSERT INTO accounts (name, password_hash, created_at_s) VALUES ('ann', ?, 7)";
    let session = "INSERT INTO sessions (token_digest, name, expires_at_s) VALUES (?, 'ann', ?)";
    let digest = blake3::hash(token.as_bytes());
    let session = Statement::new(session).with(&digest.as_bytes()[..]).with(i64::MAX / 2);
    before.insert_all(&[Statement::new(account).with(HASH), session]).unwrap();
    drop(before);

    let (_server, client) = fixture.serve();
    let known = client.auth(&basic("ann", "password"));
    assert_eq!(known.body, "{\"name\":\"ann\",\"role\":\"user\",\"quota\":null}\n");
    assert_eq!(client.auth(&format!("Bearer {token}")).status, 200, "her session goes on");
    let shown = client.admin("GET /accounts/ann", "").json();
    assert_eq!((&shown["created"], &shown["disabled"]), (&"1970-01-01T00:00:07Z".into(), &false.into()));
    assert_eq!(client.patch("ann", r#"{"disabled": true}"#).status, 200);
    assert_eq!(client.auth(&format!("Bearer {token}")).status, 401);
    let refused = Store::prepare(&fixture.database, &BEFORE).map(drop).unwrap_err().to_string();
    assert!(refused.contains("use the newer nstar"), "{refused}");
}

pub(crate) fn names_deleted_before(fixture: &Fixture) {
    let mut before = Store::prepare(&fixture.database, &NAMELESS).unwrap();
    let entry = "INSERT INTO audit (at_s, actor, address, action, account, detail) \
                 VALUES (7, 'token', '127.0.0.1', ?, ?, '')";
    let entry = |action: &str, account: &str| Statement::new(entry).with(action).with(account);
    let entries = [entry("deleted", "ann"), entry("deleted", "ann"), entry("changed", "bob")];
    before.insert_all(&entries).unwrap();
    drop(before);
    let (_server, client) = fixture.serve();
    assert_eq!(client.post("/accounts", "ann", "correct horse").status, 409);
    client.make("bob");
}
