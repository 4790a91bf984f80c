//! Which sessions of a database wait for locks, as the database tells.

use std::time::Duration;

use analysis::run::{DatabaseTrouble, HiddenFromUser};

use super::{
    client::Client,
    url::{Address, DatabaseUrl},
};

/// How long the first answer may take, which comes after the client has connected.
const FIRST_LIMIT: Duration = Duration::from_secs(7);
/// How long every other answer may take. Later it would describe another moment.
const LIMIT: Duration = Duration::from_secs(2);

/// The last line of every answer.
const END: &str = "nstar-end";

/// Status variables of MariaDB and MySQL that every user may read: row locks of the whole server, and how many sessions
/// run a statement.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                      ('Innodb_row_lock_current_waits', 'Innodb_row_lock_time', 'Threads_connected', 'Threads_running');";

/// Transactions that are open while their session runs no statement. Needs the right `PROCESS`.
const OPEN_MEANWHILE: &str = "SELECT 'open_meanwhile', COUNT(*) FROM information_schema.INNODB_TRX \
                              WHERE trx_query IS NULL AND trx_state <> 'LOCK WAIT' AND trx_mysql_thread_id <> 0;";

/// Sessions of this database except our own. Waiting to extend a file is not a transaction's lock.
const ACTIVITY: &str = "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock' AND wait_event <> 'extend'), \
                               count(*) FILTER (WHERE state NOT IN ('idle', 'disabled')), \
                               count(*) FILTER (WHERE state IS NULL OR state = 'disabled') \
                        FROM pg_stat_activity \
                        WHERE datname = current_database() AND pid <> pg_backend_pid() \
                          AND (backend_type = 'client backend' OR backend_type IS NULL);";

/// Asks one database which of its sessions wait for locks. It changes nothing there.
#[derive(Debug)]
pub struct LockProbe {
    url: DatabaseUrl,
    client: Client,
    /// How long the next answer may take.
    limit: Duration,
    /// Whether this user may not see transactions.
    refused: bool,
}

/// The sessions of a database at one moment, but for the one that asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LockCounts {
    /// Sessions that wait for a lock which another transaction holds: with MariaDB and MySQL row locks of the whole
    /// server, with PostgreSQL locks of all kinds in this database.
    pub waiting: u64,
    /// Sessions that run a statement, waiting ones included, or hold a transaction open.
    pub at_work: u64,
    /// How long finished waits for row locks took so far, in total. PostgreSQL does not count it.
    pub waited: Option<Duration>,
    /// The part that this user may not see.
    pub hidden: Option<HiddenFromUser>,
}

impl LockProbe {
    /// Starts a client, which connects meanwhile.
    ///
    /// # Errors
    /// Where there is no client.
    pub fn open(url: &DatabaseUrl) -> Result<Self, DatabaseTrouble> {
        Ok(Self { url: url.clone(), client: Client::start(url)?, limit: FIRST_LIMIT, refused: false })
    }

    /// Asks once; blocks, for a few seconds at most. After an error a new probe is needed.
    ///
    /// # Errors
    /// Why there was no answer, in the client's own words.
    pub fn ask(&mut self) -> Result<LockCounts, DatabaseTrouble> {
        let mut lines = Vec::new();
        let answered = self
            .client
            .send(&self.question())
            .and_then(|()| self.client.read_until(END, self.limit, &mut lines));
        if matches!(answered, Err(DatabaseTrouble::Ended { .. }))
            && self.may_be_refused()
            && status(&lines).is_some()
        {
            // The client ended after it had told the status, at the question for transactions.
            self.refused = true;
            self.client = Client::start(&self.url)?;
            self.limit = FIRST_LIMIT;
            return self.ask();
        }
        answered?;
        self.limit = LIMIT;
        let counts = match self.url.address {
            Address::Mysql { .. } => status(&lines),
            Address::Postgres { .. } => activity(&lines),
        };
        counts.ok_or_else(|| self.client.misread())
    }

    fn may_be_refused(&self) -> bool {
        matches!(self.url.address, Address::Mysql { .. }) && !self.refused
    }

    fn question(&self) -> String {
        let question = match self.url.address {
            Address::Postgres { .. } => ACTIVITY.to_owned(),
            Address::Mysql { .. } if self.refused => STATUS.to_owned(),
            Address::Mysql { .. } => format!("{STATUS} {OPEN_MEANWHILE}"),
        };
        format!("{question} SELECT '{END}';")
    }
}

/// Reads variables of MariaDB or MySQL, a name and a number on each line. Without the number of transactions held open,
/// every connection may hold one.
fn status(lines: &[String]) -> Option<LockCounts> {
    let variable = |wanted: &str| {
        let mut variables = lines.iter().filter_map(|line| line.split_once('\t'));
        variables.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?.1.parse::<u64>().ok()
    };
    let open_meanwhile = variable("open_meanwhile");
    // The session that asks is connected, and runs.
    let at_work = match open_meanwhile {
        Some(open) => variable("Threads_running")?.saturating_sub(1).saturating_add(open),
        None => variable("Threads_connected")?.saturating_sub(1),
    };
    Some(LockCounts {
        waiting: variable("Innodb_row_lock_current_waits")?,
        at_work,
        waited: Some(Duration::from_millis(variable("Innodb_row_lock_time")?)),
        hidden: open_meanwhile.is_none().then_some(HiddenFromUser::Transactions),
    })
}

/// Reads the one line of PostgreSQL: sessions that wait, that are at work, and that are hidden.
fn activity(lines: &[String]) -> Option<LockCounts> {
    let mut numbers = lines.first()?.split('\t').map(|number| number.parse::<u64>().ok());
    let mut number = || numbers.next().flatten();
    let (waiting, at_work, hidden) = (number()?, number()?, number()?);
    Some(LockCounts {
        waiting,
        at_work,
        waited: None,
        hidden: (hidden > 0).then_some(HiddenFromUser::Sessions),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn status_variables_are_found_by_name() {
        let told = "Threads_running\t4\nThreads_connected\t9\nINNODB_ROW_LOCK_CURRENT_WAITS\t2\nInnodb_row_lock_time\t1500";
        let seen = status(&lines(&format!("{told}\nopen_meanwhile\t2"))).expect("counts");
        let waited = Some(Duration::from_millis(1500));
        assert_eq!(seen, LockCounts { waiting: 2, at_work: 5, waited, hidden: None });
        let seen = status(&lines(told)).expect("counts");
        assert!(seen.at_work == 8 && seen.hidden == Some(HiddenFromUser::Transactions));
        assert_eq!(status(&lines("Threads_running\t4\nThreads_connected\t9")), None);
        assert_eq!(status(&lines("")), None);
    }

    #[test]
    fn sessions_that_are_hidden_are_told() {
        assert_eq!(
            activity(&lines("1\t3\t0")),
            Some(LockCounts { waiting: 1, at_work: 3, ..LockCounts::default() })
        );
        assert!(
            activity(&lines("1\t3\t2")).is_some_and(|seen| seen.hidden == Some(HiddenFromUser::Sessions))
        );
        for wrong in ["", "1\t3", "a\tb\tc"] {
            assert_eq!(activity(&lines(wrong)), None, "{wrong}");
        }
    }
}
