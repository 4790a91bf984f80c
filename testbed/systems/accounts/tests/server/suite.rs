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

/// What a test is given: a new database, and a folder.
pub(crate) struct Bed {
    pub(crate) database: Database,
    folder: TempDir,
}

impl Bed {
    fn new(database: impl Fn(&Path) -> Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { database: database(folder.path()), folder }
    }

    /// Options for a server on its database.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new(self.database.clone());
        options.admin_token = self.folder.path().join("accounts.admin");
        options
    }

    pub(crate) fn serve(&self) -> (Server, Client) {
        self.serve_with(|_| ())
    }

    /// With other options than those.
    pub(crate) fn serve_with(&self, change: impl FnOnce(&mut Options)) -> (Server, Client) {
        let mut options = self.options();
        change(&mut options);
        let token = options.admin_token.clone();
        let server = serve(Model::Epoll, options);
        let client = Client::new(server.local_addr(), &token);
        (server, client)
    }
}

type Test = (&'static str, fn(&Bed));

/// Everything that must hold, each on a database of its own.
const ALL: &[Test] = &[
    ("accounts and sessions are made and recognised", administration::made_and_recognised),
    ("a changed password ends what the old one began", administration::changed_passwords),
    ("a password is changed by its owner or an administrator only", administration::who_may_change),
    ("who is disabled or expired is as good as unknown", administration::disabled_and_expired),
    ("a deleted account's sessions are not its successor's", administration::deleted_accounts),
    ("only administrators administer", administration::only_administrators),
    ("accounts are listed by page", administration::listing),
    ("bad input is told by field and changes nothing", administration::bad_input),
    ("what was revoked is told to who asks", administration::revocations),
    ("the audit has who did what, and no secret", administration::audit),
    ("of two who change a password at once one does", administration::racing_changes),
    ("who fails is slowed down, known or not", slowdown::known_or_not),
    ("an attack does not lock the owner out", slowdown::owner_comes_in),
    ("who makes many accounts is slowed down", slowdown::registrations),
    ("where registration is closed administrators make accounts", administration::closed_registration),
    ("a wrong token is told from a wrong password", administration::wrong_tokens),
    ("a database of the version before is brought up to date", migration::version_before),
    ("names deleted before they were kept are kept", migration::names_deleted_before),
];

/// Runs them all on databases that `new` makes.
fn hold(new: impl Fn(&Path) -> Database) {
    for (name, test) in ALL {
        eprintln!("{name}");
        test(&Bed::new(&new));
    }
}

#[test]
fn all_hold_on_sqlite() {
    hold(|folder| Database::Sqlite(folder.join("accounts.db")));
}

#[test]
fn all_hold_on_mariadb() {
    hold_on_server(Kind::Mariadb);
}

#[test]
fn all_hold_on_postgres() {
    hold_on_server(Kind::Postgres);
}

fn hold_on_server(kind: Kind) {
    let Some(server) = DatabaseServer::start(kind) else { return };
    hold(|_| server.database());
    let bed = Bed::new(|_| server.database());
    server.settle();
    outlives_the_database(&server, &bed);
}

fn outlives_the_database(database: &DatabaseServer, bed: &Bed) {
    let (server, client) = bed.serve();
    client.make("ann");
    let token = client.begin("ann");
    drop(server);
    database.kill();
    database.restart();
    let (_server, client) = bed.serve();
    assert_eq!(client.auth(&format!("Bearer {token}")).status, 200, "it outlives the database's death");
    assert_eq!(client.post("/accounts", "ann", "correct horse").status, 409);
}
