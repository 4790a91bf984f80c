//! PostgreSQL while its synchronous standby is lost.

use std::time::{Duration, Instant};

use test_support::replicated::{Pair, rows, wait_until};

use crate::{
    BOOKING, MORE, all_promises_are_kept,
    clients::{Promises, Wish},
    reached, start_on_pair, step,
};

/// How long a statement may wait for the standby before its client gets 503.
const STATEMENT_LIMIT: Duration = Duration::from_secs(30);

#[test]
fn commits_wait_for_a_lost_standby_get_503_and_go_on_once_it_is_back() {
    let Some(pair) = Pair::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let systems = start_on_pair(&pair, folder.path());
    let (servers, promises) = (reached(&systems), Promises::default());
    promises.during(&servers, || {
        promises.await_more(&servers, MORE);
        let wish = Wish::apart(servers.booking[0]);
        lose_standby(&pair);
        let (before, asked) = (promises.acknowledged(), Instant::now());
        let answer = wish.try_once(servers.booking[0]);
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(asked.elapsed() >= STATEMENT_LIMIT, "{:?}: {}", asked.elapsed(), answer.body);
        await_waiting_commits(&pair);
        promises.stand_still_since(before);
        step("the standby comes back");
        pair.standby().restart().unwrap();
        promises.settle(&servers.booking, wish);
        promises.await_more(&servers, MORE);
    });
    all_promises_are_kept(pair.primary(), &promises);
    pair.await_standby();
    all_promises_are_kept(pair.standby(), &promises);
}

#[test]
fn commits_that_wait_for_a_lost_standby_go_on_once_none_is_named() {
    let Some(pair) = Pair::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let systems = start_on_pair(&pair, folder.path());
    let (servers, promises) = (reached(&systems), Promises::default());
    promises.during(&servers, || {
        promises.await_more(&servers, MORE);
        lose_standby(&pair);
        let before = promises.acknowledged();
        await_waiting_commits(&pair);
        promises.stand_still_since(before);
        step("it is waited for no more");
        pair.forgo_standby().unwrap();
        promises.await_more(&servers, MORE);
    });
    all_promises_are_kept(pair.primary(), &promises);
    step("it comes back late");
    pair.standby().restart().unwrap();
    pair.await_standby();
    all_promises_are_kept(pair.standby(), &promises);
}

/// Kills the standby. Returns when it can confirm nothing any more.
fn lose_standby(pair: &Pair) {
    step("the standby is killed");
    pair.standby().kill();
    // Its processes may outlive the first of them for a moment.
    wait_until("the primary misses its standby", || {
        rows(pair.primary(), "SELECT count(*) FROM pg_stat_replication", BOOKING) == ["0"]
    });
}

/// Waits until commits of all systems have waited for the standby for a while.
pub(crate) fn await_waiting_commits(pair: &Pair) {
    let sql = "SELECT count(DISTINCT datname) FROM pg_stat_activity \
               WHERE wait_event = 'SyncRep' AND query_start < now() - interval '5 seconds'";
    wait_until("commits of all systems wait", || rows(pair.primary(), sql, BOOKING) == ["3"]);
}
