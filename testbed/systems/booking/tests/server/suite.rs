//! The same behaviour on every database.

use std::path::Path;

use store::Database;
use tempfile::TempDir;
use test_support::database_servers::{DatabaseServer, Kind};

use crate::{api, bad_input, cancelled, counting, durability, faults, migration, race};

/// What a test is given: a new database, and a folder.
pub(crate) struct Bed {
    pub(crate) database: Database,
    folder: TempDir,
}

impl Bed {
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

type Test = (&'static str, fn(&Bed));

/// Everything that must hold, each on a database of its own.
const ALL: &[Test] = &[
    ("rooms are booked once and free again when cancelled", api::rooms_are_booked_once),
    ("any room will do until none is free", api::any_room_will_do),
    ("slots are booked apart", api::slots_are_booked_apart),
    ("the same request again books nothing more", api::repeated_requests),
    ("a booking that changed is not cancelled unseen", api::changed_bookings),
    ("rooms are listed, with when they are booked", api::listings),
    ("a feed tells when and not who", api::feeds),
    ("only the administrator adds rooms", api::adding_rooms),
    ("the administrator reads who booked and cancelled what", api::audit),
    ("nothing personal is told or kept in the clear", api::privacy),
    ("another key is refused", api::another_key),
    ("bad input is told by field and changes nothing", bad_input::every_field),
    ("another site books and cancels nothing", bad_input::other_sites),
    ("hostile text is kept as text", bad_input::hostile_text),
    ("clients that race book each room once", race::clients_for_rooms),
    ("clients that book and cancel agree with the database", race::booking_and_cancelling),
    ("users of one hot room are answered, however often they meet", race::one_hot_room),
    ("servers that share a database book each room once", race::two_servers),
    ("what the version before booked is booked", migration::version_before),
    ("a census tells what a database holds", counting::what_a_database_holds),
    ("what was acknowledged outlives kill -9 of the server", durability::killed_server),
];

/// Runs them all on databases that `new` makes.
fn hold(new: impl Fn(&TempDir) -> Database) {
    for (name, test) in ALL {
        eprintln!("{name}");
        test(&Bed::new(&new));
    }
}

impl Bed {
    pub(crate) fn new(database: impl Fn(&TempDir) -> Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { database: database(&folder), folder }
    }
}

type FaultTest = (&'static str, fn(&DatabaseServer, &Bed));

/// What must hold on servers beside.
const FAULTS: &[FaultTest] = &[
    ("a room that is booked twice is found", counting::a_broken_promise),
    ("what was cancelled is not read again", cancelled::not_read_again),
    ("a hot room is waited for without deadlocks", cancelled::no_deadlocks),
    ("what was acknowledged outlives kill -9 of the database", faults::killed_database),
    ("a database that was restarted is found again", faults::database_restarted),
    ("too many connections are told and lived with", faults::too_many_connections),
    ("a database that cannot be opened is told with the reason", faults::what_cannot_be_opened),
];

fn hold_on_server(kind: Kind) {
    let Some(server) = DatabaseServer::start(kind) else { return };
    hold(|_| server.database());
    for (name, test) in FAULTS {
        eprintln!("{name}");
        let bed = Bed::new(|_| server.database());
        server.settle();
        test(&server, &bed);
    }
}

#[test]
fn all_hold_on_sqlite() {
    hold(|folder| Database::Sqlite(folder.path().join("booking.db")));
}

#[test]
fn all_hold_on_mariadb() {
    hold_on_server(Kind::Mariadb);
}

#[test]
fn all_hold_on_postgres() {
    hold_on_server(Kind::Postgres);
}
