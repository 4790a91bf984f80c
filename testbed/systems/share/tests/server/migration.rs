//! A database of the previous version.

use engine::Model;
use serde_json::json;
use share::index::Options;
use store::{Migration, Schema, Statement, Store};

use crate::support::{file, get, index, post};

/// The tables before addresses belonged to keys.
const BEFORE: Schema = Schema { name: "share", application_id: 0x6e73_7473, migrations: &[V1] };
const V1: Migration = Migration {
    name: "V1__share",
    sqlite: include_str!("../../src/index/tables/v1/sqlite.sql"),
    mysql: include_str!("../../src/index/tables/v1/mysql.sql"),
    postgres: include_str!("../../src/index/tables/v1/postgres.sql"),
};
const ANN: &str = "127.0.0.1:1001";

/// The holders of the addresses are unknown, so the peers have to register again.
pub(crate) fn version_before(options: &Options) {
    let mut before = Store::prepare(&options.server.database, &BEFORE).unwrap();
    let peer = "INSERT INTO peers (address, expires_at_ms) VALUES (?, ?)";
    before.insert_all(&[Statement::new(peer).with(ANN).with(i64::MAX / 2)]).unwrap();
    drop(before);

    let server = index(Model::Epoll, options.clone());
    let at = server.local_addr();
    assert_eq!(post(at, "/renew", &json!({ "peer": ANN })).0, 404);
    assert_eq!(post(at, "/register", &json!({ "peer": ANN, "files": [file("a.txt", "")] })).0, 200);
    assert_eq!(get(at, "/search?name=a.txt").1["found"][0]["peers"], json!([ANN]));
}
