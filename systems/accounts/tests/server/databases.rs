//! The same answers on database servers as on SQLite.

use accounts::Options;
use engine::Model;

use crate::{
    servers::{DatabaseServer, Kind},
    support::{ask, post, serve},
};

#[test]
fn accounts_and_sessions_hold_on_mariadb() {
    hold(Kind::Mariadb);
}

#[test]
fn accounts_and_sessions_hold_on_postgres() {
    hold(Kind::Postgres);
}

fn hold(kind: Kind) {
    let Some(database) = DatabaseServer::start(kind) else { return };
    let options = Options::new(database.database());
    let server = serve(Model::Epoll, options.clone());
    let to = server.local_addr();
    assert_eq!(post(to, "/accounts", "ann", "correct horse").unwrap().status, 201);
    assert_eq!(post(to, "/accounts", "ann", "another horse").unwrap().status, 409);
    assert_eq!(post(to, "/sessions", "ann", "another horse").unwrap().status, 401);
    let session = post(to, "/sessions", "ann", "correct horse").unwrap();
    assert_eq!(session.status, 200, "{}", session.body);
    let bearer = format!("Authorization: Bearer {}\r\n", session.json()["token"].as_str().unwrap());
    assert_eq!(ask(to, "GET", "/auth", &bearer, "").unwrap().status, 200);
    drop(server);
    database.kill();
    database.restart();
    let server = serve(Model::Epoll, options);
    let to = server.local_addr();
    assert_eq!(ask(to, "GET", "/auth", &bearer, "").unwrap().status, 200, "it outlives the database's death");
    assert_eq!(post(to, "/accounts", "ann", "correct horse").unwrap().status, 409);
}
