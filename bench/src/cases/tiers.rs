//! The file server and its accounts server with cached credentials, against nginx with auth_request.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use crate::{
    programs::servers::{self, KB, Site, files, need_nginx},
    tools::{
        effort::{Effort, Result},
        table::Row,
        turns::{Candidate, Turn, in_turn, rows},
        workspace::{ServerProcess, Workspace},
    },
};

/// `ada:lovelace-1815` for Basic authentication.
const CREDENTIALS: &str = "Authorization: Basic YWRhOmxvdmVsYWNlLTE4MTU=";
const ACCOUNT: &str = r#"{"name": "ada", "password": "lovelace-1815"}"#;

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    need_nginx()?;
    workspace.file("1k", KB)?;
    let candidates = [
        candidate(
            "nstar serve files and accounts",
            ours(workspace, &on_sqlite(workspace))?,
            "/files/1k",
            None,
        ),
        candidate("nginx, auth_request to another nginx", two_nginx(workspace)?, "/1k", Some(1.2)),
        candidate("nginx, auth_request within itself", vec![one_nginx(workspace)?], "/1k", Some(1.2)),
    ];
    let turns = in_turn(workspace, &candidates, 32, effort)?;
    let work = "both tiers, cached credentials, 1 KB";
    Ok(rows(work, "req/CPU-s", &candidates, &turns, |turn: &Turn| turn.requests / turn.cpu_s))
}

fn on_sqlite(workspace: &Workspace) -> String {
    workspace.path("accounts.db").display().to_string()
}

/// Starts both tiers. The front tier comes first: clients connect to it.
fn ours(workspace: &Workspace, database: &str) -> Result<Vec<ServerProcess>> {
    let accounts = workspace.serve_ours(&["accounts", "--database", database])?;
    make_account(accounts.address)?;
    let front = files(workspace, &format!("http://{}", accounts.address))?;
    Ok(vec![front, accounts])
}

/// Registers the account, unless another turn has.
pub(super) fn make_account(at: SocketAddr) -> Result<()> {
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

fn two_nginx(workspace: &Workspace) -> Result<Vec<ServerProcess>> {
    let yes =
        servers::nginx(workspace, &Site { server: "location / { return 204; }".into(), ..Site::default() })?;
    let http =
        format!("upstream yes {{ server {}; keepalive 64; keepalive_requests 1000000000; }}", yes.address);
    let server = "auth_request /auth;
        location = /auth { internal; auth_request off; proxy_pass http://yes; proxy_http_version 1.1;
          proxy_set_header Connection \"\"; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }";
    let front = servers::nginx(workspace, &Site { http, server: server.into(), ..Site::default() })?;
    Ok(vec![front, yes])
}

/// Without a second tier: the least that auth_request can cost.
fn one_nginx(workspace: &Workspace) -> Result<ServerProcess> {
    let server = "auth_request /auth; location = /auth { internal; auth_request off; return 204; }";
    servers::nginx(workspace, &Site { server: server.into(), ..Site::default() })
}

fn candidate(name: &'static str, servers: Vec<ServerProcess>, path: &str, reach: Option<f64>) -> Candidate {
    Candidate { name, servers, path: path.into(), header: CREDENTIALS.into(), reach }
}
