//! Every database server tells, through its own client, which sessions wait for locks.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Stdio},
    thread,
    time::{Duration, Instant},
};

use analysis::run::{DatabaseTrouble, HiddenFromUser};
use sweep::database::{DatabaseUrl, LockCounts, LockProbe};
use test_support::database_servers::{DatabaseServer, Kind, PASSWORD};

/// A generous bound: reached only by what would never happen.
const PATIENCE: Duration = Duration::from_secs(120);
/// InnoDB shows its transactions anew only once nobody has looked at them for 100 ms.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[test]
fn waits_are_seen_on_mariadb() {
    let Some(server) = DatabaseServer::start(Kind::Mariadb) else { return };
    waits_are_seen(&server);
}

#[test]
fn waits_are_seen_on_postgres() {
    let Some(server) = DatabaseServer::start(Kind::Postgres) else { return };
    waits_are_seen(&server);
}

fn waits_are_seen(server: &DatabaseServer) {
    let url: DatabaseUrl = server.database().url().parse().unwrap();
    let mut probe = LockProbe::open(&url).unwrap();
    assert_eq!(eventually(&mut probe, |seen| seen.at_work == 0).waiting, 0, "nobody but the one that asks");

    let done = server
        .run("CREATE TABLE hot (id INT PRIMARY KEY, n INT); INSERT INTO hot VALUES (1, 0)", Some("nstar_0"))
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let mut holder = Client::start(server, "BEGIN; UPDATE hot SET n = n + 1 WHERE id = 1; SELECT 'held';");
    holder.says("held");
    let waiters = [1, 2].map(|_| Client::start(server, "UPDATE hot SET n = n + 1 WHERE id = 1;"));
    // The one that holds the row runs nothing meanwhile, and is at work.
    let before = eventually(&mut probe, |seen| seen.waiting == 2 && seen.at_work >= 3);
    assert_eq!(before.hidden, None);
    may_see_less(server);

    holder.finish("COMMIT;");
    for waiter in waiters {
        waiter.finish("");
    }
    let after = eventually(&mut probe, |seen| seen.waiting == 0 && seen.at_work == 0);
    assert_eq!(after.waited.is_some(), server.kind() == Kind::Mariadb);
    assert!(after.waited >= before.waited, "{before:?} {after:?}");
    loses_its_server(server, &url, probe);
}

/// Without the right to see transactions every connection counts as at work, and that is told.
fn may_see_less(server: &DatabaseServer) {
    if server.kind() != Kind::Mariadb {
        return;
    }
    let locked: DatabaseUrl = server.url_of_locked("nstar_0").parse().unwrap();
    let seen = LockProbe::open(&locked.with_password(PASSWORD.into())).unwrap().ask().unwrap();
    assert!(seen.waiting == 2 && seen.at_work >= 4, "{seen:?}");
    assert_eq!(seen.hidden, Some(HiddenFromUser::Transactions), "{seen:?}");
}

fn loses_its_server(server: &DatabaseServer, url: &DatabaseUrl, mut probe: LockProbe) {
    server.kill();
    // PostgreSQL's process for the connection may answer once more before it sees that the first process is gone.
    let deadline = Instant::now() + PATIENCE;
    while let Ok(seen) = probe.ask() {
        assert!(Instant::now() < deadline, "{seen:?}");
        thread::sleep(LOOK_EVERY);
    }
    let trouble = LockProbe::open(url).unwrap().ask().unwrap_err();
    let DatabaseTrouble::Ended { stderr, .. } = &trouble else { panic!("{trouble:?}") };
    assert!(stderr.contains("127.0.0.1"), "{stderr}");
}

fn eventually(probe: &mut LockProbe, holds: impl Fn(&LockCounts) -> bool) -> LockCounts {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = probe.ask().unwrap();
        if holds(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{seen:?}");
        thread::sleep(LOOK_EVERY);
    }
}

/// A command-line client that goes on reading statements.
struct Client(Child, ChildStdin);

impl Client {
    fn start(server: &DatabaseServer, statements: &str) -> Self {
        let mut command = server.session(Some("nstar_0"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{statements}").unwrap();
        Self(child, stdin)
    }

    /// Waits until it has answered so.
    fn says(&mut self, word: &str) {
        let mut lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(word)), "it ended");
    }

    fn finish(self, statements: &str) {
        let Self(mut child, mut stdin) = self;
        writeln!(stdin, "{statements}").unwrap();
        drop(stdin);
        let _ = child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        assert!(child.wait().unwrap().success());
    }
}
