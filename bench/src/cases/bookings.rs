//! Room booking, durable, over HTTP, against the same rows inserted by what is made for inserting. All share both
//! processors.

use std::{cell::Cell, fs};

use bench::bookings::{ROOMS_PER_USER, days};
use database_server::{DatabaseServer, Kind, Settings};

use super::our_load;
use crate::{
    Effort, Outcome, cpu,
    place::{Place, SHARED, Server, installed},
    table::{Against, Row, median},
};

/// Users who book at once.
const USERS: u32 = 64;
/// Numbers of connections that peers are tried with; their best counts.
const CONCURRENCY: [u32; 3] = [16, 32, 64];
/// Statements that a peer which stops by number is given, per second that a turn is meant to last.
const STATEMENTS_PER_S: u32 = 4_000;
/// The database on its server.
const NAME: &str = "nstar_booking";

/// A booking server, and turns that never book the same room and day.
struct Desk<'a> {
    place: &'a Place,
    server: Server,
    turns: Cell<u32>,
    /// Users that a turn may have.
    users: u32,
}

impl<'a> Desk<'a> {
    fn open(place: &'a Place, database: &str, users: u32, turns: u32) -> Outcome<Self> {
        let rooms = (users * ROOMS_PER_USER * turns).to_string();
        let key = place.path("booking.key").display().to_string();
        let flags = ["booking", "--database", database, "--key", &key, "--rooms", &rooms, "--allow-test-ids"];
        Ok(Desk { place, server: place.serve_ours_shared(&flags)?, turns: Cell::new(0), users })
    }

    /// Bookings per second by so many users, who share all the rooms of a turn: few write to as many places as many do.
    fn per_s(&self, users: u32, effort: Effort) -> Outcome<f64> {
        let turn = self.turns.replace(self.turns.get() + 1);
        let scenario = self.place.path("book.toml");
        fs::write(
            &scenario,
            scenario_text(first_room(turn, self.users), self.users * ROOMS_PER_USER / users),
        )?;
        let base = format!("http://{}", self.server.address);
        let flags = format!("{} --base {base} -c {users} -d {}s", scenario.display(), effort.seconds);
        our_load::per_s(&our_load::step(self.place, SHARED, &flags)?)
    }
}

/// The first of the rooms of a turn of so many users.
fn first_room(turn: u32, users: u32) -> u32 {
    1 + turn * users * ROOMS_PER_USER
}

/// Every user books so many rooms of its own, from `first` on, each day once.
fn scenario_text(first: u32, rooms: u32) -> String {
    let days = days();
    format!(
        "[values]\n\
         room = {{ kind = \"counter\", start = {first}, per_user = {rooms}, wrap = {rooms} }}\n\
         day = {{ kind = \"cycle\", items = {days:?} }}\n\
         guest = {{ kind = \"random-string\", length = 12, alphabet = \"letters\" }}\n\
         number = {{ kind = \"counter\", start = 10000000000, per_user = 1000000, check = \"verhoeff\" }}\n\
         [[request]]\nmethod = \"POST\"\npath = \"/bookings\"\n\
         body = '{{\"room\":${{room}},\"date\":\"${{day}}\",\"name\":\"${{guest}}\",\"aadhaar\":\"${{number}}\"}}'\n\
         expect = 201\n"
    )
}

/// Against one commit per insert, and 32 inserts per commit.
pub(super) fn sqlite(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let ours_at = place.path("booking.db").display().to_string();
    let desk = Desk::open(place, &ours_at, USERS, effort.rounds as u32)?;
    let mut raw = [RawInserts::new(place, 1, 5.0, effort)?, RawInserts::new(place, 32, 0.5, effort)?];
    let mut ours = Vec::new();
    for turn in 0..effort.rounds as u32 {
        ours.push(desk.per_s(USERS, effort)?);
        raw.iter_mut().try_for_each(|raw| raw.turn(place, turn, effort))?;
    }
    let row = |raw: RawInserts| {
        row(
            &ours,
            "SQLite, 64 users",
            format!("the same rows, {} per commit, no server", raw.batch),
            raw.per_s,
            raw.reach,
        )
    };
    Ok(raw.into_iter().map(row).collect())
}

/// The same rows inserted without a server, so many to a commit, into a file of its own.
struct RawInserts {
    file: String,
    batch: u32,
    reach: f64,
    per_s: Vec<f64>,
}

impl RawInserts {
    fn new(place: &Place, batch: u32, reach: f64, effort: Effort) -> Outcome<Self> {
        let file = place.path(&format!("raw-{batch}.db")).display().to_string();
        // A server makes the tables and the rooms.
        drop(Desk::open(place, &file, USERS, effort.rounds as u32)?);
        Ok(Self { file, batch, reach, per_s: Vec::new() })
    }

    fn turn(&mut self, place: &Place, turn: u32, effort: Effort) -> Outcome<()> {
        let (file, first, batch, seconds) = (&self.file, first_room(turn, USERS), self.batch, effort.seconds);
        let flags = format!("{file} {first} {USERS} {batch} {seconds}");
        let words = [vec![place.ours("raw-inserts")], flags.split(' ').map(String::from).collect()].concat();
        let inserted: f64 = cpu::run_on(SHARED, &words, &[0])?.stdout.trim().parse()?;
        self.per_s.push(inserted / f64::from(seconds));
        Ok(())
    }
}

/// Against the load program that comes with each database.
pub(super) fn servers(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (kind, peer) in [(Kind::Mariadb, "mariadb-slap"), (Kind::Postgres, "pgbench")] {
        let server = start(kind)?;
        let desk = Desk::open(place, &server.url(NAME, ""), USERS, effort.rounds as u32)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            ours.push(desk.per_s(USERS, effort)?);
            if installed(peer) {
                theirs.push(best_of(place, &server, effort)?);
            }
        }
        let work = format!("{kind}, 64 users");
        rows.push(match theirs.is_empty() {
            true => missing(&ours, &work, peer),
            false => row(&ours, &work, format!("{peer}, the same rows"), theirs, 0.6),
        });
    }
    Ok(rows)
}

/// 600 users against the best of fewer, on each database.
pub(super) fn many_users(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let turns = 3 * effort.rounds as u32;
    let file = place.path("many.db").display().to_string();
    let mut rows = vec![against_fewer(place, "SQLite", &file, turns, effort)?];
    for kind in [Kind::Mariadb, Kind::Postgres] {
        let server = start(kind)?;
        rows.push(against_fewer(place, &kind.to_string(), &server.url(NAME, ""), turns, effort)?);
    }
    Ok(rows)
}

fn against_fewer(place: &Place, name: &str, database: &str, turns: u32, effort: Effort) -> Outcome<Row> {
    let desk = Desk::open(place, database, 600, turns)?;
    let (mut ours, mut fewer) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(desk.per_s(600, effort)?);
        fewer
            .push([64, 200].into_iter().map(|users| desk.per_s(users, effort)).collect::<Outcome<Vec<_>>>()?);
    }
    let best = if median(&column(&fewer, 0)) >= median(&column(&fewer, 1)) { 0 } else { 1 };
    let users = [64, 200][best];
    Ok(row(&ours, &format!("{name}, 600 users"), format!("{users} users"), column(&fewer, best), 0.9))
}

fn column(turns: &[Vec<f64>], index: usize) -> Vec<f64> {
    turns.iter().filter_map(|turn| turn.get(index)).copied().collect()
}

fn start(kind: Kind) -> Outcome<DatabaseServer> {
    let server = DatabaseServer::start(kind, Settings { connections: 128, ..Settings::default() })?;
    server.create(NAME)?;
    if kind == Kind::Postgres {
        server.run("CREATE SEQUENCE turns", Some(NAME))?;
    }
    Ok(server)
}

/// Rows per second that a database's own load program inserts, with as many connections as suit it best.
fn best_of(place: &Place, server: &DatabaseServer, effort: Effort) -> Outcome<f64> {
    let rates = CONCURRENCY.map(|connections| match server.kind() {
        Kind::Mariadb => slap(server.port(), connections, effort),
        Kind::Postgres => pgbench(place, server.port(), connections, effort),
    });
    rates.into_iter().try_fold(0.0, |best, rate| Ok(f64::max(best, rate?)))
}

/// Rooms that peers book at random, each day of any of them once: as many as a turn of ours books.
const ROOMS: u32 = USERS * ROOMS_PER_USER;

const COLUMNS: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from) VALUES";

fn slap(port: u16, connections: u32, effort: Effort) -> Outcome<f64> {
    let statements = STATEMENTS_PER_S * effort.seconds / connections * connections;
    let insert = format!(
        "{COLUMNS} (1 + FLOOR(RAND() * {ROOMS}), LPAD(HEX(UUID_SHORT() & 0xFFFFFFFFFF), 10, '0'), '', 'abcdefghijkl', REPEAT(CHAR(7), 32), '4315', 1, 1, '127.0.0.1')"
    );
    let flags = format!(
        "mariadb-slap --no-defaults -h127.0.0.1 -P{port} -unstar --create-schema={NAME} --no-drop --iterations=1 \
         --concurrency={connections} --number-of-queries={statements}"
    );
    let words =
        [flags.split_whitespace().map(String::from).collect(), vec![format!("--query={insert}")]].concat();
    let said = cpu::run_on(SHARED, &words, &[0])?.stdout;
    let seconds =
        said.lines().find_map(|line| line.split_once("Average number of seconds to run all queries:"));
    let seconds = seconds.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<f64>().ok());
    let seconds = seconds.ok_or_else(|| format!("mariadb-slap gave no time: {said}"))?;
    Ok(f64::from(statements) / seconds)
}

fn pgbench(place: &Place, port: u16, connections: u32, effort: Effort) -> Outcome<f64> {
    let script = place.path("insert.sql");
    let values = "(:room, lpad(to_hex(nextval('turns')), 10, '0'), '', 'abcdefghijkl', \
                  decode(repeat('07', 32), 'hex'), '4315', 1, 1, '127.0.0.1')";
    fs::write(&script, format!("\\set room random(1, {ROOMS})\n{COLUMNS} {values};\n"))?;
    let flags = format!(
        "pgbench -n -M prepared -h 127.0.0.1 -U nstar -p {port} -c {connections} -j 2 -T {} -f {} {NAME}",
        effort.seconds,
        script.display()
    );
    let words: Vec<String> = flags.split_whitespace().map(String::from).collect();
    let said = cpu::run_on(SHARED, &words, &[0])?.stdout;
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.ok_or_else(|| format!("pgbench gave no rate: {said}").into())
}

fn row(ours: &[f64], work: &str, name: String, theirs: Vec<f64>, reach: f64) -> Row {
    let against = Against::Program { name, theirs, reach: Some(reach) };
    Row { work: format!("bookings, durable, {work}"), unit: "bookings/s", ours: ours.to_vec(), against }
}

fn missing(ours: &[f64], work: &str, peer: &str) -> Row {
    let against = Against::Missing(peer.to_owned());
    Row { work: format!("bookings, durable, {work}"), unit: "bookings/s", ours: ours.to_vec(), against }
}
