//! The file server and its accounts server, credentials remembered, against nginx with auth_request.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use database_server::{DatabaseServer, Kind, Settings};

use super::{Contestant, KB, Turn, files, in_turn, need_nginx, rows};
use crate::{
    Effort, Outcome,
    nginx::{self, Site},
    place::{Place, Server},
    table::Row,
};

/// `ada:lovelace-1815`, as Basic has it.
const CREDENTIALS: &str = "Authorization: Basic YWRhOmxvdmVsYWNlLTE4MTU=";
/// Of what is measured to be the same, the share that may be lost to chance.
const NO_LOSS: f64 = 0.97;
/// The database on its server.
const NAME: &str = "nstar_accounts";
const ACCOUNT: &str = r#"{"name": "ada", "password": "lovelace-1815"}"#;

pub(super) fn measure(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    need_nginx()?;
    place.file("1k", KB)?;
    let contestants = [
        contestant("nstar serve files and accounts", ours(place, &on_sqlite(place))?, "/files/1k", None),
        contestant("nginx, auth_request to another nginx", two_nginx(place)?, "/1k", Some(1.2)),
        contestant("nginx, auth_request within itself", vec![one_nginx(place)?], "/1k", Some(1.2)),
    ];
    let turns = in_turn(place, &contestants, 32, effort)?;
    let work = "both tiers, cached credentials, 1 KB";
    Ok(rows(work, "req/CPU-s", &contestants, &turns, |turn: &Turn| turn.requests / turn.cpu_s))
}

/// Accounts on a database server against accounts on SQLite. Whoever was recognised is remembered, so that none of them is
/// asked again.
pub(super) fn by_database(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    place.file("1k", KB)?;
    let mut all = Vec::new();
    for (kind, name) in [(Kind::Mariadb, "MariaDB"), (Kind::Postgres, "PostgreSQL")] {
        let database = DatabaseServer::start(kind, Settings::default())?;
        database.create(NAME)?;
        let contestants = [
            contestant(name, ours(place, &database.url(NAME, ""))?, "/files/1k", None),
            contestant("the same on SQLite", ours(place, &on_sqlite(place))?, "/files/1k", Some(NO_LOSS)),
        ];
        let turns = in_turn(place, &contestants, 32, effort)?;
        let work = format!("both tiers, cached credentials, 1 KB, accounts on {name}");
        all.extend(rows(&work, "req/CPU-s", &contestants, &turns, |turn| turn.requests / turn.cpu_s));
    }
    Ok(all)
}

fn on_sqlite(place: &Place) -> String {
    place.path("accounts.db").display().to_string()
}

/// The tier in front first, as the client goes to it.
fn ours(place: &Place, database: &str) -> Outcome<Vec<Server>> {
    let accounts = place.serve_ours(&["accounts", "--database", database])?;
    make_account(accounts.address)?;
    let front = files(place, &format!("http://{}", accounts.address))?;
    Ok(vec![front, accounts])
}

/// Makes the account, if it is not there from another turn.
pub(super) fn make_account(at: SocketAddr) -> Outcome<()> {
    let mut stream = TcpStream::connect(at)?;
    let length = ACCOUNT.len();
    write!(
        stream,
        "POST /accounts HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{ACCOUNT}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let made = ["HTTP/1.1 201", "HTTP/1.1 409"].iter().any(|status| answer.starts_with(status));
    if made { Ok(()) } else { Err(format!("no account: {answer}").into()) }
}

fn two_nginx(place: &Place) -> Outcome<Vec<Server>> {
    let yes = nginx::start(place, &Site { server: "location / { return 204; }".into(), ..Site::default() })?;
    let http =
        format!("upstream yes {{ server {}; keepalive 64; keepalive_requests 1000000000; }}", yes.address);
    let server = "auth_request /auth;
        location = /auth { internal; auth_request off; proxy_pass http://yes; proxy_http_version 1.1;
          proxy_set_header Connection \"\"; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }";
    let front = nginx::start(place, &Site { http, server: server.into(), ..Site::default() })?;
    Ok(vec![front, yes])
}

/// No second tier at all: the least that auth_request can cost.
fn one_nginx(place: &Place) -> Outcome<Server> {
    let server = "auth_request /auth; location = /auth { internal; auth_request off; return 204; }";
    nginx::start(place, &Site { server: server.into(), ..Site::default() })
}

fn contestant(name: &'static str, servers: Vec<Server>, path: &str, reach: Option<f64>) -> Contestant {
    Contestant { name, servers, path: path.into(), header: CREDENTIALS.into(), reach }
}
