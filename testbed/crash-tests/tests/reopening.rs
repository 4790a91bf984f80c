//! What a killed process left unsynced, and its successor tells of, survives a power cut after that.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crash_tests::disk::{Disk, Tree, is_possible};
use rusqlite::{Connection, config::DbConfig};
use store::{Database, Migration, Options, Schema, Secret, Store};

const SCHEMA: Schema = Schema {
    name: "names",
    application_id: 0x7465_7374,
    migrations: &[Migration {
        name: "V1__names",
        sqlite: "CREATE TABLE names (name TEXT)",
        mysql: "",
        postgres: "",
    }],
};

/// Cuts the power after some work on a disk, many times, and looks at what each cut leaves.
fn after_cuts(work: impl Fn(&Disk), look: impl Fn(&Path)) {
    if !is_possible() {
        eprintln!("SKIPPED: no disk can be mounted here; run as root, where /dev/fuse is");
        return;
    }
    let (at, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = Disk::mount(at.path(), Tree::default()).unwrap();
    work(&disk);
    let tree = disk.unmount().unwrap();
    for seed in 0..40 {
        let left = left.path().join(seed.to_string());
        tree.clone().cut(&mut fastrand::Rng::with_seed(seed)).copy_to(&left).unwrap();
        look(&left);
    }
}

#[test]
fn a_secret_that_was_read_is_kept_even_if_its_maker_was_killed() {
    let text = "A".repeat(43);
    let work = |disk: &Disk| {
        let path = disk.path().join("s.key");
        let file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
        file.sync_all().unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        Secret::open(&path).unwrap();
    };
    after_cuts(work, |left| assert_eq!(fs::read_to_string(left.join("s.key")).unwrap(), text));
}

const DATABASE: &str = "NSTAR_TEST_REOPENING_DATABASE";

/// Not a test: the process that opens the database, as a process that maps a file of its own file system waits for itself.
#[test]
fn opening_process() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let database = Database::Sqlite(path.clone());
    drop(Store::open(&database, &SCHEMA, &Options::default()).unwrap());
    leave_unsynced(&path);
    let _store = Store::open(&database, &SCHEMA, &Options::default()).unwrap();
    println!("\nopen");
    thread::sleep(Duration::from_secs(600));
}

/// Writes a row as a process does that is killed before it syncs the log.
fn leave_unsynced(path: &Path) {
    let writer = Connection::open(path).unwrap();
    writer.pragma_update(None, "synchronous", "OFF").unwrap();
    writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    writer.execute("INSERT INTO names VALUES ('ann')", []).unwrap();
}

#[test]
fn a_row_that_is_shown_is_kept_even_if_its_writer_was_killed() {
    let work = |disk: &Disk| {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "opening_process", "--nocapture"])
            .env(DATABASE, disk.path().join("names.db"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let is_open = said.into_iter().any(|line| line == "open");
        disk.cut_after(0);
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(is_open);
    };
    after_cuts(work, |left| {
        let database = Connection::open(left.join("names.db")).unwrap();
        let name: String = database.query_row("SELECT name FROM names", [], |row| row.get(0)).unwrap();
        assert_eq!(name, "ann");
    });
}
