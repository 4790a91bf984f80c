//! Booking, accounts and the index on a database of several servers: what they acknowledged outlives the loss of any one,
//! and no room is booked twice.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod clients;
mod lost_packets;
mod lost_standby;
mod network;

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use database_server::DatabaseServer;
use engine::Server;
use store::Database;
use test_support::{
    http::ask,
    replicated::{Galera, Pair, rows},
};

use crate::clients::{Promises, Servers, accounts, booking, index};

const BOOKING: &str = "nstar_booking";
const ACCOUNTS: &str = "nstar_accounts";
const INDEX: &str = "nstar_index";
/// How many bookings must be acknowledged after each fault.
const MORE: usize = 15;

/// Those of booking, of accounts and of the index, which use the databases of these names.
type Systems = [Vec<Server>; 3];

fn reached(systems: &Systems) -> Servers {
    let addresses = |servers: &Vec<Server>| servers.iter().map(Server::local_addr).collect();
    let [booking, accounts, index] = systems.each_ref().map(addresses);
    Servers { booking, accounts, index }
}

/// Lets one test at a time use Galera: on a busy machine, nodes take each other for lost.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells when what happens, for whoever looks for the reason of a failure.
fn step(what: &str) {
    eprintln!("{} {what}", jiff::Zoned::now().strftime("%T%.f"));
}

/// One server for each node that it prefers, all started at once.
fn start(galera: &Galera, name: &str, make: impl Fn(Database) -> Server + Sync) -> Vec<Server> {
    let databases = [0, 1, 2].map(|node| galera.database(name, node));
    thread::scope(|scope| {
        let make = &make;
        let starting = databases.map(|database| scope.spawn(move || make(database)));
        starting.map(|server| server.join().unwrap()).into()
    })
}

/// All systems on all nodes.
fn start_on_nodes(galera: &Galera, folder: &Path) -> Systems {
    step("three nodes run");
    for name in [BOOKING, ACCOUNTS, INDEX] {
        galera.create(name).unwrap();
    }
    let systems = [
        start(galera, BOOKING, |database| booking(database, folder)),
        start(galera, ACCOUNTS, |database| accounts(database, folder)),
        start(galera, INDEX, index),
    ];
    step("servers run");
    systems
}

/// All systems on a server with a standby.
fn start_on_pair(pair: &Pair, folder: &Path) -> Systems {
    for name in [BOOKING, ACCOUNTS, INDEX] {
        pair.primary().create(name).unwrap();
    }
    let booking = booking(pair.database(BOOKING), folder);
    let accounts = accounts(pair.database(ACCOUNTS), folder);
    [vec![booking], vec![accounts], vec![index(pair.database(INDEX))]]
}

/// Each node is lost once while all systems are used: one is cut off from the other two, the others are killed.
#[test]
fn what_galera_acknowledged_outlives_the_loss_of_any_node_and_a_split() {
    let _turn = turn();
    let Some(galera) = Galera::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let systems = start_on_nodes(&galera, folder.path());
    let (servers, promises) = (reached(&systems), Promises::default());
    nodes_that_change_the_same_row_take_turns(&servers.accounts, folder.path());
    promises.during(&servers, || {
        promises.await_more(&servers, MORE);
        step("a node is cut off");
        galera.isolate(2, true);
        promises.await_more(&servers, MORE);
        the_part_of_one_refuses_changes(&galera.nodes()[2]);
        step("it is put back");
        galera.isolate(2, false);
        step("a node is killed");
        galera.nodes()[0].kill();
        promises.await_more(&servers, MORE);
        step("it comes back");
        galera.nodes()[0].restart().unwrap();
        step("another is killed");
        galera.nodes()[1].kill();
        promises.await_more(&servers, MORE);
    });
    all_nodes_keep([&galera.nodes()[0], &galera.nodes()[2]], &promises);
}

/// Checks that each of these nodes keeps all promises, and that they hold the same.
fn all_nodes_keep<const N: usize>(nodes: [&DatabaseServer; N], promises: &Promises) {
    step("all promises are looked at");
    for node in nodes {
        all_promises_are_kept(node, promises);
    }
    let agree = |sql, database| {
        let each: BTreeSet<_> = nodes.iter().map(|node| rows(node, sql, database)).collect();
        assert_eq!(each.len(), 1, "nodes differ in {database}");
    };
    agree("SELECT id, room, day, name, version, booked_at_us FROM bookings ORDER BY id", BOOKING);
    agree("SELECT name, credential_version FROM accounts ORDER BY name", ACCOUNTS);
    agree("SELECT term, name FROM terms ORDER BY kind, term, name", INDEX);
}

/// Each change of an account increments one row. On different nodes, the second learns when it commits that it was not the
/// first, and is repeated as a whole.
fn nodes_that_change_the_same_row_take_turns(accounts: &[SocketAddr], folder: &Path) {
    let token = std::fs::read_to_string(folder.join("accounts.admin")).unwrap();
    let admin = &format!("Authorization: Bearer {}\r\n", token.trim());
    thread::scope(|scope| {
        for (to, node) in accounts.iter().zip(0..) {
            scope.spawn(move || {
                let account = format!(r#"{{"name":"ann-{node}","password":"correct horse"}}"#);
                assert_eq!(ask(*to, "POST /accounts", "", account.as_bytes()).unwrap().status, 201);
                for _ in 0..20 {
                    let line = format!("PATCH /accounts/ann-{node}");
                    let changed = ask(*to, &line, admin, br#"{"disabled":false}"#).unwrap();
                    assert!((200..300).contains(&changed.status), "{} {}", changed.status, changed.body);
                }
            });
        }
    });
}

fn the_part_of_one_refuses_changes(node: &DatabaseServer) {
    for sql in ["UPDATE rooms SET name = 'split'", "DELETE FROM bookings", "SELECT COUNT(*) FROM bookings"] {
        let said = node.run(sql, Some(BOOKING)).unwrap();
        assert!(!said.status.success(), "{sql}: {said:?}");
    }
}

/// Kills the primary while systems are used, and lets its standby take over.
#[test]
fn what_a_synchronous_standby_has_outlives_the_primary() {
    let Some(pair) = Pair::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let systems = start_on_pair(&pair, folder.path());
    let (servers, promises) = (reached(&systems), Promises::default());
    promises.during(&servers, || {
        promises.await_more(&servers, 2 * MORE);
        let standby = pair.standby().run("UPDATE rooms SET name = 'standby'", Some(BOOKING)).unwrap();
        assert!(!standby.status.success(), "{standby:?}");
        pair.primary().kill();
        pair.promote().unwrap();
        promises.await_more(&servers, MORE);
    });
    all_promises_are_kept(pair.standby(), &promises);
}

/// Every request that was acknowledged took effect once, and none that was refused did.
fn all_promises_are_kept(node: &DatabaseServer, promises: &Promises) {
    let standing = rows(node, "SELECT room, day FROM bookings WHERE cancelled_at_us IS NULL", BOOKING);
    let booked: BTreeSet<(i64, String)> = standing
        .iter()
        .map(|row| row.split_once(['\t', '|']).unwrap())
        .map(|(room, day)| (room.parse().unwrap(), day.to_owned()))
        .collect();
    assert_eq!(booked.len(), standing.len(), "a room is booked twice");
    assert_eq!(booked, promises.bookings(), "clients tried until they knew");
    let accounts: BTreeSet<String> = rows(node, "SELECT name FROM accounts", ACCOUNTS).into_iter().collect();
    let lost: Vec<_> = promises.accounts().difference(&accounts).cloned().collect();
    assert!(lost.is_empty(), "accounts were lost: {lost:?}");
    let files: BTreeSet<String> =
        rows(node, "SELECT name FROM terms WHERE kind = 0", INDEX).into_iter().collect();
    assert_eq!(files, promises.files());
}
