//! Room booking, durable, over HTTP, against the same rows inserted by what is made for inserting. All share both
//! processors.

use std::{cell::Cell, fs};

use database_server::{DatabaseServer, Kind, Settings};

use crate::{
    Effort, Outcome, cpu,
    place::{Place, Server, installed},
    table::{Against, Row, median},
};

/// Both processors.
const SHARED: &str = "0,1";
/// Rooms that a user books in turn; with the days in turn, so many times as many bookings before one is met again.
const ROOMS_PER_USER: u32 = 4;
/// Days that are booked in turn, a prime number.
const DAYS: i64 = 1_801;
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

    /// Bookings per second by so many users.
    fn per_s(&self, users: u32, effort: Effort) -> Outcome<f64> {
        let turn = self.turns.replace(self.turns.get() + 1);
        let scenario = self.place.path("book.toml");
        fs::write(&scenario, scenario_text(1 + turn * self.users * ROOMS_PER_USER)?)?;
        let base = format!("http://{}", self.server.address);
        let flags = format!(
            "load {} --base {base} -c {users} -d {}s -j --no-progress",
            scenario.display(),
            effort.seconds
        );
        let words = [vec![self.place.ours("nstar")], flags.split(' ').map(String::from).collect()].concat();
        let finished = cpu::run_on(SHARED, &words, &[0, 4])?;
        let run: serde_json::Value = serde_json::from_str(&finished.stdout)?;
        let step = &run["steps"][0];
        let failed = |errors: &serde_json::Map<String, serde_json::Value>| {
            errors.values().filter_map(serde_json::Value::as_u64).sum::<u64>()
        };
        // The one request before the load takes what the first user books first.
        if step["errors"].as_object().map(failed).is_none_or(|failed| failed > 1) {
            return Err(format!("bookings failed: {}", step["errors"]).into());
        }
        step["throughput_per_s"].as_f64().ok_or_else(|| "nothing was booked".into())
    }
}

/// Every user books rooms of its own, from `first` on, each day once.
fn scenario_text(first: u32) -> Outcome<String> {
    let today = jiff::Zoned::now().date();
    let day = |ahead| today.saturating_add(jiff::Span::new().days(ahead)).to_string();
    let days: Vec<String> = (1..=DAYS).map(day).collect();
    Ok(format!(
        "[values]\n\
         room = {{ kind = \"counter\", start = {first}, per_user = {ROOMS_PER_USER}, wrap = {ROOMS_PER_USER} }}\n\
         day = {{ kind = \"cycle\", items = {days:?} }}\n\
         guest = {{ kind = \"random-string\", length = 12, alphabet = \"letters\" }}\n\
         number = {{ kind = \"counter\", start = 10000000000, per_user = 1000000, check = \"verhoeff\" }}\n\
         [[request]]\nmethod = \"POST\"\npath = \"/bookings\"\n\
         body = '{{\"room\":${{room}},\"date\":\"${{day}}\",\"name\":\"${{guest}}\",\"aadhaar\":\"${{number}}\"}}'\n\
         expect = 201\n"
    ))
}

/// Against one commit per insert, and 32 inserts per commit.
pub(super) fn sqlite(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let (ours_at, raw_at) = (place.path("booking.db"), place.path("raw.db"));
    // Makes the table.
    drop(Desk::open(place, &raw_at.display().to_string(), 1, 1)?);
    let desk = Desk::open(place, &ours_at.display().to_string(), 64, effort.rounds as u32)?;
    let mut ours = Vec::new();
    let mut raw = [(1, 5.0, Vec::new()), (32, 0.5, Vec::new())];
    for round in 0..effort.rounds {
        ours.push(desk.per_s(64, effort)?);
        for (batch, _, theirs) in &mut raw {
            let turn = round * 2 + usize::from(*batch == 1);
            let (file, seconds) = (raw_at.display(), effort.seconds);
            let flags = format!("{file} {turn} {batch} {seconds}");
            let words =
                [vec![place.ours("raw-inserts")], flags.split(' ').map(String::from).collect()].concat();
            let inserted: f64 = cpu::run_on(SHARED, &words, &[0])?.stdout.trim().parse()?;
            theirs.push(inserted / f64::from(seconds));
        }
    }
    let row = |(batch, reach, theirs): (u32, f64, Vec<f64>)| {
        row(&ours, "SQLite, 64 users", format!("{batch} inserts per commit, no server"), theirs, reach)
    };
    Ok(raw.into_iter().map(row).collect())
}

/// Against the load program that comes with each database.
pub(super) fn servers(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (kind, peer) in [(Kind::Mariadb, "mariadb-slap"), (Kind::Postgres, "pgbench")] {
        let server = start(kind)?;
        let desk = Desk::open(place, &server.url(NAME, ""), 64, effort.rounds as u32)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            ours.push(desk.per_s(64, effort)?);
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

const COLUMNS: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from) VALUES";

fn slap(port: u16, connections: u32, effort: Effort) -> Outcome<f64> {
    let statements = STATEMENTS_PER_S * effort.seconds / connections * connections;
    let insert = format!(
        "{COLUMNS} (1, LPAD(HEX(UUID_SHORT() & 0xFFFFFFFFFF), 10, '0'), '', 'abcdefghijkl', REPEAT(CHAR(7), 32), '4315', 1, 1, '127.0.0.1')"
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
    let values = "(1, lpad(to_hex(nextval('turns')), 10, '0'), '', 'abcdefghijkl', \
                  decode(repeat('07', 32), 'hex'), '4315', 1, 1, '127.0.0.1')";
    fs::write(&script, format!("{COLUMNS} {values};\n"))?;
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
