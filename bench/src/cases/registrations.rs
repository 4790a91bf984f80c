//! Making accounts, which is hashing passwords, against the time that a hash alone takes.

use std::fs;

use super::{our_load, tiers::make_account};
use crate::{
    Effort, Outcome, cpu,
    place::{Place, SERVERS, SHARED},
    table::{Against, Row},
};

/// Who register at once.
const USERS: u32 = 16;
/// As `scenarios/new-accounts.toml`.
const SCENARIO: &str = r#"
[values]
name = { kind = "random-string", length = 16, alphabet = "alphanumeric" }
[[request]]
method = "POST"
path = "/accounts"
body = '{"name":"${name}","password":"a password of ${name}"}'
expect = 201
"#;

/// Accounts made per second on both processors, generator and all, against processors / (time of one hash).
pub(super) fn measure(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let database = place.path("registrations.db").display().to_string();
    let server = place.serve_ours_shared(&["accounts", "--database", &database])?;
    make_account(server.address)?;
    let scenario = place.path("new-accounts.toml");
    fs::write(&scenario, SCENARIO)?;
    let processors = SHARED.split(',').count() as f64;
    let (mut ours, mut hashes) = (Vec::new(), Vec::new());
    for seed in 1..=effort.rounds {
        let (at, seconds) = (server.address, effort.seconds);
        let flags =
            format!("{} --base http://{at} -c {USERS} -d {seconds}s --seed {seed}", scenario.display());
        ours.push(our_load::per_s(&our_load::step(place, SHARED, &flags)?)?);
        let words = [place.ours("bare-hashes"), database.clone(), effort.seconds.to_string()];
        let alone: f64 = cpu::run_on(SERVERS, &words, &[0])?.stdout.trim().parse()?;
        hashes.push(alone * processors);
    }
    let name = format!("{processors} / (time of one hash)");
    let against = Against::Program { name, theirs: hashes, reach: Some(0.9) };
    Ok(vec![Row { work: format!("accounts made, {USERS} users"), unit: "accounts/s", ours, against }])
}
