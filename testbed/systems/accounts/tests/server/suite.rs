//! The same behaviour on every database.

use std::path::Path;

use accounts::Options;
use engine::{Model, Server};
use store::Database;
use tempfile::TempDir;
use test_support::database_servers::{DatabaseServer, Kind};

use crate::{
    administration, migration, slowdown,
    support::{Client, serve},
};

/// What a test gets: a new database and a folder.
pub(crate) struct Fixture {
    pub(crate) database: Database,
    folder: TempDir,
}

impl Fixture {
    fn new(database: impl Fn(&Path) -> Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { database: database(folder.path()), folder }
    }

    /// Options for a server on this database.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new(self.database.clone());
        options.admin_token = self.folder.path().join("accounts.admin");
        options
    }

    pub(crate) fn serve(&self) -> (Server, Client) {
        self.serve_with(|_| ())
    }

    /// Starts a server with changed options.
    pub(crate) fn serve_with(&self, change: impl FnOnce(&mut Options)) -> (Server, Client) {
        let mut options = self.options();
        change(&mut options);
        let token = options.admin_token.clone();
        let server = serve(Model::Epoll, options);
        let client = Client::new(server.local_addr(), &token);
        (server, client)
    }
}

type Test = (&'static str, fn(&Fixture));

/// The tests, each run on its own database.
const ALL: &[Test] = &[
    ("accounts and sessions are created and recognised", administration::made_and_recognised),
    ("a changed password ends sessions", administration::changed_passwords),
    ("only owners and administrators change a password", administration::who_may_change),
    ("disabled and expired accounts look unknown", administration::disabled_and_expired),
    ("sessions of a deleted account are not valid for its successor", administration::deleted_accounts),
    ("only administrators administer", administration::only_administrators),
    ("accounts are listed in pages", administration::listing),
    ("bad input is refused by field and changes nothing", administration::bad_input),
    ("revocations are reported", administration::revocations),
    ("the audit says who did what, without secrets", administration::audit),
    ("one of two concurrent password changes succeeds", administration::racing_changes),
    ("failures are slowed down for known and unknown names", slowdown::known_or_not),
    ("an attack does not lock the owner out", slowdown::owner_comes_in),
    ("creating many accounts is slowed down", slowdown::registrations),
    ("a flood of logins does not keep out who logged in lately", slowdown::flooded_logins),
    ("taken names cannot be tried out without limit", slowdown::taken_names),
    ("with closed registration only administrators create accounts", administration::closed_registration),
    ("wrong tokens and wrong passwords differ", administration::wrong_tokens),
    ("a database of the previous version is migrated", migration::version_before),
    ("names deleted by an older version stay taken", migration::names_deleted_before),
];

/// Runs all tests on databases that `new` makes.
fn run_all(new: impl Fn(&Path) -> Database) {
    for (name, test) in ALL {
        eprintln!("{name}");
        test(&Fixture::new(&new));
    }
}

#[test]
fn all_pass_on_sqlite() {
    run_all(|folder| Database::Sqlite(folder.join("accounts.db")));
}

#[test]
fn all_pass_on_mariadb() {
    hold_on_server(Kind::Mariadb);
}

#[test]
fn all_pass_on_postgres() {
    hold_on_server(Kind::Postgres);
}

fn hold_on_server(kind: Kind) {
    let Some(server) = DatabaseServer::start(kind) else { return };
    run_all(|_| server.database());
    let fixture = Fixture::new(|_| server.database());
    server.settle();
    outlives_the_database(&server, &fixture);
}

fn outlives_the_database(database: &DatabaseServer, fixture: &Fixture) {
    let (server, client) = fixture.serve();
    client.make("ann");
    let token = client.begin("ann");
    drop(server);
    database.kill();
    database.restart();
    let (_server, client) = fixture.serve();
    assert_eq!(client.auth(&format!("Bearer {token}")).status, 200, "it outlives the database's death");
    assert_eq!(client.post("/accounts", "ann", "correct horse").status, 409);
}
