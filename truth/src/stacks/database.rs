//! MariaDB, with one row that all want or with statements that take their time.

use std::net::Ipv4Addr;

use database_server::{DatabaseError, DatabaseServer, Kind, Settings};

use super::{Address, Keeps, Running, Start};
use crate::Trouble;

/// The most sessions: more than a sweep has users.
const SESSIONS: usize = 1_200;

const TABLE: &str =
    "CREATE TABLE counters (id INT PRIMARY KEY, value INT) ENGINE=InnoDB; INSERT INTO counters VALUES (1, 0)";

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    start.only(|_| false)?;
    let around = &start.tier.surroundings;
    let (what, time) = match (around.row, around.statement) {
        (Some(time), None) => ("row", time),
        (None, Some(time)) => ("statement", time),
        _ => return Err(start.cannot("do anything but either row=TIME or statement=TIME")),
    };
    let host = start.place.address.split(':').next().unwrap_or_default();
    // Its own client calls it at 127.0.0.1 wherever it is.
    let network = host != Ipv4Addr::LOCALHOST.to_string();
    let settings = Settings { connections: SESSIONS, network, ..Settings::default() };
    let server = DatabaseServer::start(Kind::Mariadb, settings).map_err(trouble)?;
    server.create("nstar").map_err(trouble)?;
    let made = server.run(TABLE, Some("nstar")).map_err(trouble)?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr).into();
        return Err(Trouble::Failed { program: "mariadb".into(), said });
    }
    let password = start.write_secret("password", server.password())?;
    let (port, time_us, bytes) = (server.port(), time.as_micros(), around.body);
    let address = format!("mysql:{host}:{port}:{what}:{time_us}:{bytes}:{password}");
    Ok(Running { address: Address::Database(address), _keeps: Keeps::Database(Box::new(server)) })
}

fn trouble(error: DatabaseError) -> Trouble {
    match error {
        DatabaseError::NotInstalled { program, package, .. } => Trouble::NotInstalled { program, package },
        other => Trouble::Failed { program: "mariadbd".into(), said: other.to_string() },
    }
}
