//! Accounts.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use serde_json::json;
use test_support::http::ask;

use super::{Client, System, database, rows, words};
use crate::ledger::{Ledger, Value};

/// How many users log in after a crash: a password takes long to check.
const LOGINS: usize = 4;
/// The key of the administrator's token in the ledger, which no account can have.
const TOKEN: &str = "(token)";

/// The accounts server. A key is a name, its value the password.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    count: AtomicU64,
    data: OnceLock<PathBuf>,
}

impl Accounts {
    fn create(&self, client: &Client<'_>) -> io::Result<()> {
        let number = self.count.fetch_add(1, Relaxed);
        let (name, password) = (format!("user{}-{number}", client.number), format!("correct horse {number}"));
        let body = json!({ "name": name, "password": password });
        change(client, &name, Some(password), |client| client.send("POST /accounts", "", &body))
    }

    fn change_password(&self, client: &Client<'_>, name: &str, old: &str) -> io::Result<()> {
        let password = format!("battery staple {}", self.count.fetch_add(1, Relaxed));
        let (line, body) =
            (format!("PUT /accounts/{name}/password"), json!({ "password": password, "old_password": old }));
        change(client, name, Some(password), |client| client.send(&line, "", &body))
    }

    fn delete(&self, client: &Client<'_>, name: &str) -> io::Result<()> {
        let Some(token) = self.data.get().and_then(|data| token(data)) else { return Ok(()) };
        client.ledger.acknowledge(TOKEN, Some(token.clone()));
        let fields = format!("Authorization: Bearer {token}\r\n");
        change(client, name, None, |client| client.ask(&format!("DELETE /accounts/{name}"), &fields, b""))
    }
}

/// The administrator's token, if there is one.
fn token(data: &Path) -> Option<String> {
    fs::read_to_string(data.join("admin.token")).ok().map(|text| text.trim().to_owned())
}

fn change(
    client: &Client<'_>,
    name: &str,
    value: Value,
    ask: impl FnOnce(&Client<'_>) -> io::Result<test_support::http::Response>,
) -> io::Result<()> {
    client.ledger.attempt(name, value.clone());
    let answer = ask(client)?;
    if matches!(answer.status, 201 | 204) {
        client.ledger.acknowledge(name, value);
    }
    Ok(())
}

impl System for Accounts {
    fn words(&self, data: &Path) -> Vec<OsString> {
        let _ = self.data.set(data.to_owned());
        words("accounts", data, &["--database", "/accounts.db", "--admin-token", "/admin.token"])
    }

    fn act(&self, client: &mut Client<'_>) -> io::Result<()> {
        let own = client.ledger.any(&format!("user{}-", client.number), &mut client.random);
        match (client.random.u8(..8), own) {
            (0, Some((name, password))) => self.change_password(client, &name, &password),
            (1, Some((name, _))) => self.delete(client, &name),
            _ => self.create(client),
        }
    }

    fn look_at_files(&self, data: &Path, ledger: &Ledger) -> Result<(), String> {
        let sql = "SELECT name, '' FROM accounts";
        let found = database(&data.join("accounts.db"))?.map(|database| rows(&database, sql)).transpose()?;
        let mut found: BTreeSet<String> =
            found.unwrap_or_default().into_iter().map(|(name, _)| name).collect();
        for (name, _) in ledger.entries() {
            if name == TOKEN {
                ledger.compare(TOKEN, token(data));
                continue;
            }
            // The file has no passwords; whether it is the right one is seen at a login.
            let is_there = found.remove(&name);
            let shown = if is_there { "an account" } else { "nothing" };
            ledger.narrow(&name, shown, |right| right.is_some() == is_there);
        }
        found.into_iter().for_each(|name| ledger.compare(&name, Some("an account".to_owned())));
        Ok(())
    }

    fn look_at_server(&self, to: SocketAddr, ledger: &Ledger, random: &mut fastrand::Rng) -> io::Result<()> {
        let mut entries = ledger.entries();
        random.shuffle(&mut entries);
        // Those that are not certain first.
        entries.sort_by_key(|(_, right)| std::cmp::Reverse(right.len()));
        for (name, right) in entries.into_iter().filter(|(name, _)| name != TOKEN).take(LOGINS) {
            let mut found = None;
            for password in right.into_iter().flatten() {
                let body = json!({ "name": name, "password": password }).to_string();
                if ask(to, "POST /sessions", "", body.as_bytes())?.status == 200 {
                    found = Some(password);
                }
            }
            ledger.compare(&name, found);
        }
        Ok(())
    }
}
