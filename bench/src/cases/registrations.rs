//! Registering accounts, which is mostly hashing passwords, against the time of the hashes alone.

use std::fs;

use super::tiers::make_account;
use crate::{
    programs::generators::{self},
    tools::{
        cpu,
        effort::{Effort, Result},
        table::{Against, Row},
        workspace::{SERVERS, SHARED, Workspace},
    },
};

/// Users who register at the same time.
const USERS: u32 = 16;
/// The same as `scenarios/new-accounts.toml`.
const SCENARIO: &str = r#"
[values]
name = { kind = "random-string", length = 16, alphabet = "alphanumeric" }
[[request]]
method = "POST"
path = "/accounts"
body = '{"name":"${name}","password":"a password of ${name}"}'
expect = 201
"#;

/// Accounts registered per second on both processors, generator included, against processors / (time of one hash).
pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let database = workspace.path("registrations.db").display().to_string();
    let server = workspace.serve_ours_shared(&["accounts", "--database", &database])?;
    make_account(server.address)?;
    let scenario = workspace.path("new-accounts.toml");
    fs::write(&scenario, SCENARIO)?;
    let processors = SHARED.split(',').count() as f64;
    let (mut ours, mut hashes) = (Vec::new(), Vec::new());
    for seed in 1..=effort.rounds {
        let (at, seconds) = (server.address, effort.seconds);
        let flags =
            format!("{} --base http://{at} -c {USERS} -d {seconds}s --seed {seed}", scenario.display());
        ours.push(generators::per_s(&generators::load_step(workspace, SHARED, &flags)?)?);
        let words = [workspace.ours("bare-hashes"), database.clone(), effort.seconds.to_string()];
        let alone: f64 = cpu::run_on(SERVERS, &words, &[0])?.stdout.trim().parse()?;
        hashes.push(alone * processors);
    }
    let name = format!("{processors} / (time of one hash)");
    let against = Against::Program { name, theirs: hashes, reach: Some(0.9) };
    Ok(vec![Row { work: format!("accounts made, {USERS} users"), unit: "accounts/s", ours, against }])
}
