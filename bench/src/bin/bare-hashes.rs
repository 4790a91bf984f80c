//! Yardstick: how long one password hash takes with nothing else to do.
//!
//! Usage: `bare-hashes FILE SECONDS` hashes on one thread with the parameters of the first account in the database that
//! `nstar serve accounts` made, and prints the hashes per second.

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use argon2::{Argon2, Params, PasswordHasher, password_hash::phc::PasswordHash};
use rusqlite::Connection;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [file, seconds] = words.as_slice() else {
        return Err("usage: bare-hashes FILE SECONDS".into());
    };
    let argon2 = as_stored(&Connection::open(file)?)?;
    let (started, length) = (Instant::now(), Duration::from_secs(seconds.parse()?));
    let mut hashes = 0_u32;
    while started.elapsed() < length {
        argon2.hash_password(b"a password of sixteen or so").map_err(|error| error.to_string())?;
        hashes += 1;
    }
    println!("{}", f64::from(hashes) / started.elapsed().as_secs_f64());
    Ok(())
}

/// Algorithm, version and parameters of a stored hash.
fn as_stored(accounts: &Connection) -> Result<Argon2<'static>, Box<dyn Error>> {
    let select = "SELECT password_hash FROM accounts LIMIT 1";
    let stored: String = accounts.query_row(select, [], |row| row.get(0))?;
    let hash = PasswordHash::new(&stored).map_err(|error| error.to_string())?;
    let version = hash.version.ok_or("a hash without a version")?;
    let params = Params::try_from(&hash).map_err(|error| error.to_string())?;
    let known = |error: argon2::Error| error.to_string();
    Ok(Argon2::new(
        hash.algorithm.as_str().parse().map_err(known)?,
        version.try_into().map_err(known)?,
        params,
    ))
}
