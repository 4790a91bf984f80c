//! Servers on a replicated database, clients that never give up a request, and what they were told.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use engine::{Model, Server, service::Factory};
use serde_json::json;
use store::Database;
use test_support::{
    http::{Response, ask},
    replicated::wait_until,
};

/// A generous bound for one request with all its tries.
const PATIENCE: Duration = Duration::from_secs(120);
const BOOKERS: usize = 6;
const ROOMS: u32 = 20;
/// How many days ahead no client comes to; a booking may be five years ahead.
const FAR: i32 = 1_800;

fn serve(factory: impl Factory) -> Server {
    let mut run = engine::Options::new("127.0.0.1:0".parse().unwrap());
    (run.loops, run.workers) = (1, 2);
    engine::start(Model::Epoll, &run, factory).unwrap()
}

pub(crate) fn booking(database: Database, folder: &Path) -> Server {
    let mut options = booking::Options::new(database);
    options.key = folder.join("booking.key");
    options.rooms = ROOMS;
    options.ids = booking::IdPolicy::AllowTest;
    serve(booking::factory(options).unwrap())
}

pub(crate) fn accounts(database: Database, folder: &Path) -> Server {
    let mut options = accounts::Options::new(database);
    options.admin_token = folder.join("accounts.admin");
    serve(accounts::factory(options).unwrap())
}

pub(crate) fn index(database: Database) -> Server {
    serve(share::index::factory(share::index::Options::new(database)).unwrap())
}

/// A booking that a guest wants, with a key by which it is made once, however often it is asked for.
pub(crate) struct Wish {
    guest: usize,
    key: String,
    body: String,
}

impl Wish {
    /// Any room, if none is named.
    fn new(guest: usize, number: usize, room: Option<i64>, ahead: i32) -> Self {
        let (name, aadhaar) = (format!("Guest {guest}"), test_number(guest));
        let body = json!({"room": room, "date": day(ahead), "name": name, "aadhaar": aadhaar}).to_string();
        Self { guest, key: format!("{guest}-{number}"), body }
    }

    /// A room on a day that no client wants, so that it waits for none of them.
    pub(crate) fn apart(server: SocketAddr) -> Self {
        Self::new(BOOKERS, 0, rooms(server).first().copied(), FAR)
    }

    fn fields(&self) -> String {
        format!("Idempotency-Key: {}\r\n", self.key)
    }

    /// Asks for it once.
    pub(crate) fn try_once(&self, server: SocketAddr) -> Response {
        ask(server, "POST /bookings", &self.fields(), self.body.as_bytes()).unwrap()
    }
}

/// What clients were told, while it goes on.
#[derive(Default)]
pub(crate) struct Promises {
    /// By the room and the day, the key of the request.
    bookings: Mutex<BTreeMap<(i64, String), String>>,
    accounts: Mutex<BTreeSet<String>>,
    files: Mutex<BTreeSet<String>>,
    over: AtomicBool,
}

/// The servers of one kind each. Those of a kind share a database.
pub(crate) struct Servers {
    pub(crate) booking: Vec<SocketAddr>,
    pub(crate) accounts: Vec<SocketAddr>,
    pub(crate) index: Vec<SocketAddr>,
}

impl Promises {
    /// Runs `meanwhile` while clients use the servers. Every request is tried until it has an answer.
    pub(crate) fn during(&self, servers: &Servers, meanwhile: impl FnOnce()) {
        let rooms = rooms(servers.booking[0]);
        thread::scope(|scope| {
            for client in 0..BOOKERS {
                let rooms = &rooms;
                scope.spawn(move || self.book(client, &servers.booking, rooms));
            }
            if !servers.accounts.is_empty() {
                scope.spawn(|| self.sign_up(&servers.accounts));
            }
            if !servers.index.is_empty() {
                scope.spawn(|| self.register(&servers.index));
            }
            // Ends the clients also when it panics.
            let over = Over(&self.over);
            meanwhile();
            drop(over);
        });
    }

    /// Waits until so many more bookings, and an account and a file, were acknowledged.
    pub(crate) fn await_more(&self, servers: &Servers, bookings: usize) {
        let before = self.acknowledged();
        wait_until("more is acknowledged", || {
            let now = self.acknowledged();
            now.0 >= before.0 + bookings
                && (servers.accounts.is_empty() || now.1 > before.1)
                && (servers.index.is_empty() || now.2 > before.2)
        });
    }

    /// How many bookings, accounts and files were acknowledged.
    pub(crate) fn acknowledged(&self) -> (usize, usize, usize) {
        let accounts = self.accounts.lock().unwrap().len();
        (self.bookings.lock().unwrap().len(), accounts, self.files.lock().unwrap().len())
    }

    /// Checks that no request was acknowledged that was sent after `before` was: each client had then sent one at most.
    pub(crate) fn stand_still_since(&self, before: (usize, usize, usize)) {
        let now = self.acknowledged();
        let still = now.0 <= before.0 + BOOKERS && now.1 <= before.1 + 1 && now.2 <= before.2 + 1;
        assert!(still, "{before:?} were acknowledged, then {now:?}");
    }

    pub(crate) fn bookings(&self) -> BTreeSet<(i64, String)> {
        self.bookings.lock().unwrap().keys().cloned().collect()
    }

    pub(crate) fn accounts(&self) -> BTreeSet<String> {
        self.accounts.lock().unwrap().clone()
    }

    pub(crate) fn files(&self) -> BTreeSet<String> {
        self.files.lock().unwrap().clone()
    }

    /// Books room after room. Every second client names the room: those want the same ones at the same time.
    fn book(&self, client: usize, servers: &[SocketAddr], rooms: &[i64]) {
        for n in (0..).take_while(|_| !self.over.load(SeqCst)) {
            let room = client.is_multiple_of(2).then(|| rooms[n % rooms.len()]);
            self.settle(servers, Wish::new(client, n, room, 1 + (n / rooms.len()) as i32));
        }
    }

    /// Asks for a booking until it is known whether it was made.
    pub(crate) fn settle(&self, servers: &[SocketAddr], wish: Wish) {
        let fields = wish.fields();
        let answer = persist(servers, wish.guest, "POST /bookings", &fields, &wish.body, &[201, 409]);
        if answer.status == 201 {
            let made = answer.json();
            let made = (made["room"].as_i64().unwrap(), made["date"].as_str().unwrap().to_owned());
            let before = self.bookings.lock().unwrap().insert(made.clone(), wish.key);
            assert_eq!(before, None, "{made:?} was promised twice");
        }
    }

    fn sign_up(&self, servers: &[SocketAddr]) {
        for n in (0..).take_while(|_| !self.over.load(SeqCst)) {
            let name = format!("user-{n}");
            let body = json!({"name": name, "password": "correct horse"}).to_string();
            // 409 after a try whose outcome was unknown.
            let answer = persist(servers, n, "POST /accounts", "", &body, &[201, 409]);
            if answer.status == 201 {
                self.accounts.lock().unwrap().insert(name);
            }
        }
    }

    fn register(&self, servers: &[SocketAddr]) {
        for n in (0..).take_while(|_| !self.over.load(SeqCst)) {
            let name = format!("file-{n}.txt");
            let hash = share::Content::of(name.as_bytes());
            let files = [json!({"name": name, "hash": hash, "size": 1})];
            let body = json!({"peer": "127.0.0.1:9001", "files": files}).to_string();
            let json = "Content-Type: application/json\r\n";
            persist(servers, n, "POST /register", json, &body, &[200]);
            self.files.lock().unwrap().insert(name);
        }
    }
}

/// Ends the clients.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Sends a request until it has one of these answers; 503 means to try again, at the next server.
fn persist(
    servers: &[SocketAddr],
    first: usize,
    line: &str,
    fields: &str,
    body: &str,
    wanted: &[u16],
) -> Response {
    let deadline = Instant::now() + PATIENCE;
    for server in servers.iter().cycle().skip(first % servers.len()) {
        let answer = ask(*server, line, fields, body.as_bytes()).unwrap();
        if wanted.contains(&answer.status) {
            return answer;
        }
        assert!(
            answer.status == 503 && Instant::now() < deadline,
            "{line}: {} {}",
            answer.status,
            answer.body
        );
        thread::sleep(Duration::from_millis(20));
    }
    unreachable!("servers are tried again and again")
}

/// The numbers of the rooms: nodes of Galera leave gaps.
fn rooms(server: SocketAddr) -> Vec<i64> {
    let rooms = ask(server, "GET /rooms", "", b"").unwrap().json();
    let rooms: Vec<i64> =
        rooms["rooms"].as_array().unwrap().iter().map(|room| room["id"].as_i64().unwrap()).collect();
    assert_eq!(rooms.len(), ROOMS as usize, "servers that start together make them once");
    rooms
}

/// The test number of a guest: 1, ten digits and the check digit.
fn test_number(guest: usize) -> String {
    let eleven = format!("1{guest:010}");
    format!("{eleven}{}", verhoeff::calculate(eleven.as_str()))
}

fn day(ahead: i32) -> String {
    let today = jiff::Zoned::now().date();
    today.saturating_add(jiff::Span::new().days(ahead)).to_string()
}
