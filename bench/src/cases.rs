//! What is compared, with whom.

mod bare_server;
mod bookings;
mod compiled;
mod file_server;
mod generator;
mod many_connections;
mod many_users;
mod model_costs;
mod model_profile;
mod our_load;
mod registrations;
mod sharing;
mod start_up;
mod tiers;
mod tls_server;
mod uploads;
mod zero_copy;

use crate::{
    Effort, Outcome, cpu,
    place::{CLIENTS, Place, Server, installed},
    table::{Against, Grid, Row},
};

/// Something to be measured.
pub(crate) struct Case {
    pub name: &'static str,
    pub title: &'static str,
    pub measure: Measure,
}

/// How, and what comes of it.
pub(crate) enum Measure {
    /// One comparison, or several that share their servers.
    Ratios(fn(&Place, Effort) -> Outcome<Vec<Row>>),
    /// A table of its own.
    Figures(fn(&Place, Effort) -> Outcome<Grid>),
}

use Measure::{Figures, Ratios};

pub(crate) const ALL: [Case; 30] = [
    Case {
        name: "client-1k",
        title: "generator, 1 KB, 32 users, kept connections",
        measure: Ratios(generator::small_bodies),
    },
    Case {
        name: "client-100m",
        title: "generator, 100 MB, 4 users",
        measure: Ratios(generator::large_bodies),
    },
    Case {
        name: "client-connect",
        title: "generator, one connection per request, 32 users",
        measure: Ratios(generator::one_connection_per_request),
    },
    Case { name: "client-tls", title: "generator, TLS, 1 KB, 32 users", measure: Ratios(generator::tls) },
    Case {
        name: "client-10k",
        title: "generator, 10 000 users against 100",
        measure: Ratios(many_users::measure),
    },
    Case {
        name: "server-1k",
        title: "file server, 1 KB, 32 users, kept connections",
        measure: Ratios(file_server::small_file),
    },
    Case {
        name: "server-models",
        title: "file server by model, 1 KB, 32 users",
        measure: Ratios(file_server::by_model),
    },
    Case {
        name: "server-sizes",
        title: "file server by file size, 8 users",
        measure: Ratios(file_server::sizes),
    },
    Case {
        name: "tls-server",
        title: "file server over TLS, kept and new connections, 1 KB and 1 MB",
        measure: Ratios(tls_server::measure),
    },
    Case {
        name: "tiers",
        title: "both tiers, cached credentials, 1 KB, 32 users",
        measure: Ratios(tiers::measure),
    },
    Case {
        name: "tiers-databases",
        title: "both tiers, cached credentials, accounts on a database server against SQLite",
        measure: Ratios(tiers::by_database),
    },
    Case {
        name: "registrations",
        title: "accounts made against the hashes that two processors can make",
        measure: Ratios(registrations::measure),
    },
    Case { name: "sink", title: "upload sink by model, 1 MB, 8 users", measure: Ratios(uploads::measure) },
    Case {
        name: "server-uring",
        title: "file server on uring against itself on epoll, by file size, 8 users",
        measure: Ratios(file_server::uring),
    },
    Case {
        name: "zero-copy",
        title: "ways to send 10 MB of a file, 8 users",
        measure: Ratios(zero_copy::measure),
    },
    Case {
        name: "server-10k",
        title: "file server by model, 10 000 connections against 100, 1 KB",
        measure: Ratios(many_connections::measure),
    },
    Case {
        name: "model-costs",
        title: "what a request costs by model, file server, 1 KB, 1 and 32 users",
        measure: Figures(model_costs::measure),
    },
    Case {
        name: "model-profile",
        title: "where the processor time goes by model, file server, 1 KB, 32 users",
        measure: Figures(model_profile::measure),
    },
    Case {
        name: "bookings",
        title: "bookings on SQLite against bare inserts",
        measure: Ratios(bookings::sqlite),
    },
    Case {
        name: "bookings-servers",
        title: "bookings on MariaDB and PostgreSQL against their own load programs",
        measure: Ratios(bookings::servers),
    },
    Case {
        name: "bookings-600",
        title: "bookings by 600 users against fewer",
        measure: Ratios(bookings::many_users),
    },
    Case {
        name: "share-register",
        title: "a peer registers its files with the index",
        measure: Ratios(sharing::registering::central),
    },
    Case {
        name: "share-register-dht",
        title: "a peer registers its files with 8 peers that keep the index",
        measure: Ratios(sharing::registering::among_peers),
    },
    Case {
        name: "share-search",
        title: "a search among 8 peers without a server, against a round trip",
        measure: Ratios(sharing::searching::response_time),
    },
    Case {
        name: "share-searches",
        title: "searches among 1 and 8 peers, with a server and without",
        measure: Ratios(sharing::searching::throughput),
    },
    Case {
        name: "share-1k",
        title: "a peer serves 1 KB against the file server, 32 users",
        measure: Ratios(sharing::serving::small),
    },
    Case {
        name: "share-large",
        title: "a peer obtains from one source, against curl from nginx",
        measure: Ratios(sharing::obtaining::large),
    },
    Case {
        name: "share-sendme",
        title: "a peer obtains a large file from one source, against sendme",
        measure: Ratios(sharing::sendme::against),
    },
    Case {
        name: "share-links",
        title: "a peer obtains from two sources behind slow links, against one",
        measure: Ratios(sharing::links::measure),
    },
    Case { name: "start-up", title: "start-up", measure: Ratios(start_up::measure) },
];

pub(crate) const KB: usize = 1_000;

/// A server to be measured: one or more processes.
struct Contestant {
    name: &'static str,
    servers: Vec<Server>,
    path: String,
    /// A header line to send, empty for none.
    header: String,
    /// How many times its rate ours is meant to be.
    reach: Option<f64>,
}

/// What the barest client saw of a server in one turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    requests: f64,
    bytes: f64,
    cpu_s: f64,
    elapsed_s: f64,
}

impl Contestant {
    /// The first of the servers under load of so many users for one turn.
    fn turn(&self, place: &Place, users: u32, effort: Effort) -> Outcome<Turn> {
        self.driven_by(&self.client(place, users, effort)?, effort)
    }

    /// The barest client of the first of the servers, and what to tell it.
    fn client(&self, place: &Place, users: u32, effort: Effort) -> Outcome<Vec<String>> {
        let front = self.servers.first().ok_or("no server")?;
        let mut words = vec![place.ours("bare-client"), front.address.to_string(), self.path.clone()];
        words.extend([users.to_string(), effort.seconds.to_string(), self.header.clone()]);
        Ok(words)
    }

    /// One turn of a client that prints how many requests and bytes it made; CPU time of all servers.
    fn driven_by(&self, client: &[String], effort: Effort) -> Outcome<Turn> {
        let spent = || self.servers.iter().map(Server::cpu_s).sum::<f64>();
        let before = spent();
        let finished = cpu::run_on(CLIENTS, client, &[0])?;
        let cpu_s = spent() - before;
        let numbers: Vec<f64> =
            finished.stdout.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [requests, bytes] = numbers[..] else { return Err("the bare client gave no counts".into()) };
        Ok(Turn { requests, bytes, cpu_s, elapsed_s: f64::from(effort.seconds) })
    }
}

/// All contestants in turn, each under so many users, round after round; each one's turns.
fn in_turn(place: &Place, contestants: &[Contestant], users: u32, effort: Effort) -> Outcome<Vec<Vec<Turn>>> {
    take_turns(contestants, effort, |contestant| contestant.turn(place, users, effort))
}

fn take_turns(
    contestants: &[Contestant],
    effort: Effort,
    turn: impl Fn(&Contestant) -> Outcome<Turn>,
) -> Outcome<Vec<Vec<Turn>>> {
    let mut turns: Vec<Vec<Turn>> = contestants.iter().map(|_| Vec::new()).collect();
    for _ in 0..effort.rounds {
        for (contestant, turns) in contestants.iter().zip(&mut turns) {
            turns.push(turn(contestant)?);
        }
    }
    Ok(turns)
}

/// One row for each contestant but the first, which is ours.
fn rows(
    work: &str,
    unit: &'static str,
    contestants: &[Contestant],
    turns: &[Vec<Turn>],
    rate: impl Fn(&Turn) -> f64,
) -> Vec<Row> {
    let rates = |turns: &Vec<Turn>| turns.iter().map(&rate).collect::<Vec<f64>>();
    let ours = turns.first().map(rates).unwrap_or_default();
    let others = contestants.iter().zip(turns).skip(1);
    let row = |(contestant, turns): (&Contestant, &Vec<Turn>)| Row {
        work: work.to_owned(),
        unit,
        ours: ours.clone(),
        against: Against::Program {
            name: contestant.name.to_owned(),
            theirs: rates(turns),
            reach: contestant.reach,
        },
    };
    others.map(row).collect()
}

/// The bare responder with bodies of 1 KB.
fn responder(place: &Place) -> Outcome<Server> {
    let program = place.ours("bare-responder");
    place.serve(|address| Ok(vec![program, address.to_string(), KB.to_string()]))
}

/// Our file server on the place's folder, one loop; `accounts` as its flag takes it.
fn files(place: &Place, accounts: &str) -> Outcome<Server> {
    let root = place.path("").display().to_string();
    let flags = ["files", "--root", &root, "--accounts", accounts, "--auth-cache", "1h"];
    place.serve_ours(&flags)
}

/// Our file server on the place's folder, open to all, on a concurrency model.
fn files_on(place: &Place, model: &str) -> Outcome<Server> {
    let root = place.path("").display().to_string();
    place.serve_ours_on(model, &["files", "--root", &root, "--accounts", "none"])
}

/// Without nginx there is nothing to compare with.
fn need_nginx() -> Outcome<()> {
    if installed("nginx") { Ok(()) } else { Err("nginx is not installed".into()) }
}
