//! Python: a thread for each connection, one of which computes at a time.

use super::{Address, Running, Start, script};
use crate::{Trouble, process};

/// Debian's own Python, which has the drivers of databases.
const PYTHON: &str = "/usr/bin/python3";

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    process::find("python3", "python3")?;
    let calls_database = matches!(start.upstream, Some(Address::Database(_)));
    if calls_database && process::run(&[PYTHON, "-c", "import pymysql"]).is_err() {
        return Err(Trouble::NotInstalled { program: "pymysql", package: "python3-pymysql" });
    }
    let program = start.write("tier.py", include_str!("../../programs/tier.py"))?;
    let words = [PYTHON.to_owned(), program].into_iter().chain(script::arguments(start)?);
    start.serve(words.chain([format!("body={}", start.tier.surroundings.body)]))
}
