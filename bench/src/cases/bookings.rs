//! Durable room bookings over HTTP, against programs that only insert the same rows. All share both processors.

use std::{cell::Cell, fs, os::unix::fs::PermissionsExt};

use bench::{ROOMS_PER_USER, days};
use database_server::{DatabaseServer, Kind, Settings};

use crate::{
    programs::generators::{self},
    tools::{
        cpu,
        effort::{Effort, Result},
        table::{Against, Row, median},
        workspace::{SHARED, ServerProcess, Workspace, installed},
    },
};

/// Users who book at the same time.
const USERS: u32 = 64;
/// Numbers of connections to try peers with; the best one counts.
const CONCURRENCY: [u32; 3] = [16, 32, 64];
/// Statements per second of a turn, for a peer that stops by number.
const STATEMENTS_PER_S: u32 = 4_000;
/// Name of the database on its server.
const NAME: &str = "nstar_booking";

/// A booking server whose turns never book the same room and day twice.
struct BookingServer<'a> {
    workspace: &'a Workspace,
    server: ServerProcess,
    turns: Cell<u32>,
    /// The most users a turn may have.
    users: u32,
}

impl<'a> BookingServer<'a> {
    fn open(workspace: &'a Workspace, database: &[&str], users: u32, turns: u32) -> Result<Self> {
        let rooms = (users * ROOMS_PER_USER * turns).to_string();
        let key = workspace.path("booking.key").display().to_string();
        let flags = ["booking", "--key", &key, "--rooms", &rooms, "--allow-test-ids", "--database"];
        let flags = [&flags, database].concat();
        Ok(BookingServer {
            workspace,
            server: workspace.serve_ours_shared(&flags)?,
            turns: Cell::new(0),
            users,
        })
    }

    /// Returns the bookings per second of this many users. They share all rooms of a turn, so that few users write to as
    /// many places of the index as many do.
    fn per_s(&self, users: u32, effort: Effort) -> Result<f64> {
        let turn = self.turns.replace(self.turns.get() + 1);
        let scenario = self.workspace.path("book.toml");
        fs::write(
            &scenario,
            scenario_text(first_room(turn, self.users), self.users * ROOMS_PER_USER / users),
        )?;
        let base = format!("http://{}", self.server.address);
        let flags = format!("{} --base {base} -c {users} -d {}s", scenario.display(), effort.seconds);
        generators::per_s(&generators::load_step(self.workspace, SHARED, &flags)?)
    }
}

/// The first room of a turn of this many users.
fn first_room(turn: u32, users: u32) -> u32 {
    1 + turn * users * ROOMS_PER_USER
}

/// A scenario in which each user books `rooms` rooms of its own, from `first` on, once for each day.
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

/// Bookings on SQLite against bare inserts: one per commit, and 32 per commit.
pub(super) fn sqlite(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let ours_at = workspace.path("booking.db").display().to_string();
    let desk = BookingServer::open(workspace, &[&ours_at], USERS, effort.rounds as u32)?;
    let mut raw = [RawInserts::new(workspace, 1, 5.0, effort)?, RawInserts::new(workspace, 32, 0.5, effort)?];
    let mut ours = Vec::new();
    for turn in 0..effort.rounds as u32 {
        ours.push(desk.per_s(USERS, effort)?);
        raw.iter_mut().try_for_each(|raw| raw.turn(workspace, turn, effort))?;
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

/// Inserts of the same rows without a server, `batch` to a commit, into a file of their own.
struct RawInserts {
    file: String,
    batch: u32,
    reach: f64,
    per_s: Vec<f64>,
}

impl RawInserts {
    fn new(workspace: &Workspace, batch: u32, reach: f64, effort: Effort) -> Result<Self> {
        let file = workspace.path(&format!("raw-{batch}.db")).display().to_string();
        // A server creates the tables and the rooms.
        drop(BookingServer::open(workspace, &[&file], USERS, effort.rounds as u32)?);
        Ok(Self { file, batch, reach, per_s: Vec::new() })
    }

    fn turn(&mut self, workspace: &Workspace, turn: u32, effort: Effort) -> Result<()> {
        let (file, first, batch, seconds) = (&self.file, first_room(turn, USERS), self.batch, effort.seconds);
        let flags = format!("{file} {first} {USERS} {batch} {seconds}");
        let words =
            [vec![workspace.ours("raw-inserts")], flags.split(' ').map(String::from).collect()].concat();
        let inserted: f64 = cpu::run_on(SHARED, &words, &[0])?.stdout.trim().parse()?;
        self.per_s.push(inserted / f64::from(seconds));
        Ok(())
    }
}

/// Bookings on each database server against the load program that comes with it.
pub(super) fn servers(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (kind, peer) in [(Kind::Mariadb, "mariadb-slap"), (Kind::Postgres, "pgbench")] {
        let server = start(kind)?;
        let login = Login::write(workspace, &server)?;
        let desk = BookingServer::open(workspace, &login.words(), USERS, effort.rounds as u32)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            ours.push(desk.per_s(USERS, effort)?);
            if installed(peer) {
                theirs.push(best_of(workspace, &server, effort)?);
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

/// 600 users against the better of 64 and 200, on each database.
pub(super) fn many_users(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let turns = 3 * effort.rounds as u32;
    let file = workspace.path("many.db").display().to_string();
    let mut rows = vec![against_fewer(workspace, "SQLite", &[&file], turns, effort)?];
    for kind in [Kind::Mariadb, Kind::Postgres] {
        let server = start(kind)?;
        let login = Login::write(workspace, &server)?;
        rows.push(against_fewer(workspace, &kind.to_string(), &login.words(), turns, effort)?);
    }
    Ok(rows)
}

fn against_fewer(
    workspace: &Workspace,
    name: &str,
    database: &[&str],
    turns: u32,
    effort: Effort,
) -> Result<Row> {
    let desk = BookingServer::open(workspace, database, 600, turns)?;
    let (mut ours, mut fewer) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(desk.per_s(600, effort)?);
        fewer.push([64, 200].into_iter().map(|users| desk.per_s(users, effort)).collect::<Result<Vec<_>>>()?);
    }
    let best = if median(&column(&fewer, 0)) >= median(&column(&fewer, 1)) { 0 } else { 1 };
    let users = [64, 200][best];
    Ok(row(&ours, &format!("{name}, 600 users"), format!("{users} users"), column(&fewer, best), 0.9))
}

fn column(turns: &[Vec<f64>], index: usize) -> Vec<f64> {
    turns.iter().filter_map(|turn| turn.get(index)).copied().collect()
}

/// How a booking server logs in to a database server.
struct Login {
    url: String,
    password_file: String,
}

impl Login {
    fn write(workspace: &Workspace, server: &DatabaseServer) -> Result<Self> {
        let file = workspace.path("database.password");
        fs::write(&file, "")?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        fs::write(&file, server.password())?;
        Ok(Self { url: server.url(NAME), password_file: file.display().to_string() })
    }

    /// What follows `--database`.
    fn words(&self) -> [&str; 3] {
        [&self.url, "--database-password-file", &self.password_file]
    }
}

fn start(kind: Kind) -> Result<DatabaseServer> {
    let server = DatabaseServer::start(kind, Settings { connections: 128, ..Settings::default() })?;
    server.create(NAME)?;
    if kind == Kind::Postgres {
        server.run("CREATE SEQUENCE turns", Some(NAME))?;
    }
    Ok(server)
}

/// Returns the rows per second that a database's own load program inserts with its best number of connections.
fn best_of(workspace: &Workspace, server: &DatabaseServer, effort: Effort) -> Result<f64> {
    let rates = CONCURRENCY.map(|connections| match server.kind() {
        Kind::Mariadb => slap(server, connections, effort),
        Kind::Postgres => pgbench(workspace, server, connections, effort),
    });
    rates.into_iter().try_fold(0.0, |best, rate| Ok(f64::max(best, rate?)))
}

/// Rooms that peers book at random: as many as a turn of ours books.
const ROOMS: u32 = USERS * ROOMS_PER_USER;

const COLUMNS: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from) VALUES";

fn slap(server: &DatabaseServer, connections: u32, effort: Effort) -> Result<f64> {
    let port = server.port();
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
    let said = with_password(server, &words)?;
    let seconds =
        said.lines().find_map(|line| line.split_once("Average number of seconds to run all queries:"));
    let seconds = seconds.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<f64>().ok());
    let seconds = seconds.ok_or_else(|| format!("mariadb-slap gave no time: {said}"))?;
    Ok(f64::from(statements) / seconds)
}

/// Runs a database's own load program and returns what it printed.
fn with_password(server: &DatabaseServer, words: &[String]) -> Result<String> {
    let password = [(server.password_variable(), server.password())];
    Ok(cpu::run_on_with(SHARED, words, &[0], &password)?.stdout)
}

fn pgbench(workspace: &Workspace, server: &DatabaseServer, connections: u32, effort: Effort) -> Result<f64> {
    let port = server.port();
    let script = workspace.path("insert.sql");
    let values = "(:room, lpad(to_hex(nextval('turns')), 10, '0'), '', 'abcdefghijkl', \
                  decode(repeat('07', 32), 'hex'), '4315', 1, 1, '127.0.0.1')";
    fs::write(&script, format!("\\set room random(1, {ROOMS})\n{COLUMNS} {values};\n"))?;
    let flags = format!(
        "pgbench -n -M prepared -h 127.0.0.1 -U nstar -p {port} -c {connections} -j 2 -T {} -f {} {NAME}",
        effort.seconds,
        script.display()
    );
    let words: Vec<String> = flags.split_whitespace().map(String::from).collect();
    let said = with_password(server, &words)?;
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
