//! Whether what a database server acknowledges outlives a power failure, by its own settings.

use crate::{
    database::Dialect,
    statement::{Row, Statement},
};

/// What asks a server for the settings that matter, each as text.
pub(super) fn question(dialect: Dialect) -> Statement {
    Statement::new(match dialect {
        Dialect::Mysql => {
            "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR), CAST(@@innodb_doublewrite AS CHAR)"
        }
        Dialect::Postgres => "SELECT current_setting('fsync'), current_setting('full_page_writes')",
    })
}

/// The first setting by which acknowledged changes may be lost, as `name=value`, and what it should be. That
/// PostgreSQL's `synchronous_commit` is on is seen to by every session.
pub(super) fn doubt(dialect: Dialect, answer: &Row) -> Option<(String, &'static str)> {
    let wanted: [(&str, &[&str]); 2] = match dialect {
        // 3 is MariaDB's: as 1, with more flushes in a group of commits.
        Dialect::Mysql => [
            ("innodb_flush_log_at_trx_commit", &["1", "3"]),
            // MySQL 8 has names for them.
            ("innodb_doublewrite", &["1", "ON", "DETECT_AND_RECOVER"]),
        ],
        Dialect::Postgres => [("fsync", &["on"]), ("full_page_writes", &["on"])],
    };
    wanted.into_iter().enumerate().find_map(|(column, (name, good))| {
        let value = answer.text(column).ok()?;
        let is_good = good.iter().any(|good| good.eq_ignore_ascii_case(value));
        (!is_good).then(|| (format!("{name}={value}"), good[0]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(dialect: Dialect, values: [&str; 2]) -> Option<(String, &'static str)> {
        doubt(dialect, &Row(values.map(Into::into).to_vec()))
    }

    #[test]
    fn settings_that_lose_acknowledged_changes_are_found() {
        assert_eq!(told(Dialect::Mysql, ["1", "1"]), None);
        assert_eq!(told(Dialect::Mysql, ["3", "ON"]), None);
        for lossy in ["0", "2"] {
            let found = format!("innodb_flush_log_at_trx_commit={lossy}");
            assert_eq!(told(Dialect::Mysql, [lossy, "1"]), Some((found, "1")));
        }
        assert_eq!(told(Dialect::Mysql, ["1", "OFF"]), Some(("innodb_doublewrite=OFF".into(), "1")));
        assert_eq!(told(Dialect::Postgres, ["on", "on"]), None);
        assert_eq!(told(Dialect::Postgres, ["off", "on"]), Some(("fsync=off".into(), "on")));
        assert_eq!(told(Dialect::Postgres, ["on", "off"]), Some(("full_page_writes=off".into(), "on")));
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        assert_eq!(doubt(Dialect::Postgres, &Row(Vec::new())), None);
    }
}
