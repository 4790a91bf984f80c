//! The same behaviour on every database.

use std::path::Path;

use store::Database;
use tempfile::TempDir;
use test_support::database_servers::{DatabaseServer, Kind};

use crate::{api, bad_input, cancelled, counting, durability, faults, migration, race};

/// What a test gets: a new database and a folder.
pub(crate) struct Fixture {
    pub(crate) database: Database,
    folder: TempDir,
}

impl Fixture {
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

type Test = (&'static str, fn(&Fixture));

/// The tests, each run on its own database.
const ALL: &[Test] = &[
    ("rooms are booked once and free again when cancelled", api::rooms_are_booked_once),
    ("any room is booked until none is free", api::any_room_will_do),
    ("slots are booked separately", api::slots_are_booked_apart),
    ("a repeated request books nothing more", api::repeated_requests),
    ("a booking that has changed is not cancelled", api::changed_bookings),
    ("rooms are listed with their bookings", api::listings),
    ("a feed shows when and not who", api::feeds),
    ("only the administrator adds rooms", api::adding_rooms),
    ("the administrator reads who booked and cancelled what", api::audit),
    ("personal data is neither shown nor stored in the clear", api::privacy),
    ("another key is refused", api::another_key),
    ("bad input is refused by field and changes nothing", bad_input::every_field),
    ("another site cannot book or cancel", bad_input::other_sites),
    ("hostile text stays text", bad_input::hostile_text),
    ("racing clients book each room once", race::clients_for_rooms),
    ("clients that book and cancel agree with the database", race::booking_and_cancelling),
    ("all users of one hot room get a response", race::one_hot_room),
    ("servers that share a database book each room once", race::two_servers),
    ("bookings of the previous version stay booked", migration::version_before),
    ("a census counts what a database holds", counting::what_a_database_holds),
    ("a census leaves out what a database was filled with", counting::without_what_it_was_filled_with),
    ("acknowledged bookings survive kill -9 of the server", durability::killed_server),
];

/// Runs all tests on databases that `new` makes.
fn run_all(new: impl Fn(&TempDir) -> Database) {
    for (name, test) in ALL {
        eprintln!("{name}");
        test(&Fixture::new(&new));
    }
}

impl Fixture {
    pub(crate) fn new(database: impl Fn(&TempDir) -> Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { database: database(&folder), folder }
    }
}

type FaultTest = (&'static str, fn(&DatabaseServer, &Fixture));

/// Further tests, for database servers only.
const FAULTS: &[FaultTest] = &[
    ("a room booked twice is found", counting::a_broken_promise),
    ("cancelled bookings are not read again", cancelled::not_read_again),
    ("clients wait for a hot room without deadlocks", cancelled::no_deadlocks),
    ("acknowledged bookings survive kill -9 of the database", faults::killed_database),
    ("the server reconnects to a restarted database", faults::database_restarted),
    ("a database that cannot be opened is explained", faults::what_cannot_be_opened),
    // The last, as MariaDB takes some seconds to see that the clients which took all connections are gone.
    ("too many connections are reported and survived", faults::too_many_connections),
];

fn run_all_on_server(kind: Kind) {
    let Some(server) = DatabaseServer::start(kind) else { return };
    run_all(|_| server.database());
    for (name, test) in FAULTS {
        eprintln!("{name}");
        let fixture = Fixture::new(|_| server.database());
        server.settle();
        test(&server, &fixture);
    }
}

#[test]
fn all_pass_on_sqlite() {
    run_all(|folder| Database::Sqlite(folder.path().join("booking.db")));
}

#[test]
fn all_pass_on_mariadb() {
    run_all_on_server(Kind::Mariadb);
}

#[test]
fn all_pass_on_postgres() {
    run_all_on_server(Kind::Postgres);
}
