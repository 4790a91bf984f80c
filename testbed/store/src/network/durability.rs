//! Whether a database server's settings let acknowledged changes survive a power failure.

use crate::{
    database::Dialect,
    statement::{Row, Statement},
};

/// The statement that reads the relevant settings, each as text.
pub(super) fn question(dialect: Dialect) -> Statement {
    Statement::new(match dialect {
        Dialect::Mysql => {
            "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR), CAST(@@innodb_doublewrite AS CHAR)"
        }
        Dialect::Postgres => "SELECT current_setting('fsync'), current_setting('full_page_writes')",
    })
}

/// The first setting that may lose acknowledged changes, as `name=value`, and what it should be. PostgreSQL's
/// `synchronous_commit` is not checked: every connection turns it on.
pub(super) fn doubt(dialect: Dialect, settings: &Row) -> Option<(String, &'static str)> {
    let wanted: [(&str, &[&str]); 2] = match dialect {
        // 3 exists on MariaDB only: like 1, with more flushes per group commit.
        Dialect::Mysql => [
            ("innodb_flush_log_at_trx_commit", &["1", "3"]),
            // MySQL 8 uses names.
            ("innodb_doublewrite", &["1", "ON", "DETECT_AND_RECOVER"]),
        ],
        Dialect::Postgres => [("fsync", &["on"]), ("full_page_writes", &["on"])],
    };
    wanted.into_iter().enumerate().find_map(|(column, (name, good))| {
        let value = settings.text(column).ok()?;
        let is_good = good.iter().any(|good| good.eq_ignore_ascii_case(value));
        (!is_good).then(|| (format!("{name}={value}"), good[0]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(dialect: Dialect, values: [&str; 2]) -> Option<(String, &'static str)> {
        doubt(dialect, &Row(values.map(Into::into).to_vec()))
    }

    #[test]
    fn settings_that_lose_acknowledged_changes_are_found() {
        assert_eq!(found(Dialect::Mysql, ["1", "1"]), None);
        assert_eq!(found(Dialect::Mysql, ["3", "ON"]), None);
        for lossy in ["0", "2"] {
            let setting = format!("innodb_flush_log_at_trx_commit={lossy}");
            assert_eq!(found(Dialect::Mysql, [lossy, "1"]), Some((setting, "1")));
        }
        assert_eq!(found(Dialect::Mysql, ["1", "OFF"]), Some(("innodb_doublewrite=OFF".into(), "1")));
        assert_eq!(found(Dialect::Postgres, ["on", "on"]), None);
        assert_eq!(found(Dialect::Postgres, ["off", "on"]), Some(("fsync=off".into(), "on")));
        assert_eq!(found(Dialect::Postgres, ["on", "off"]), Some(("full_page_writes=off".into(), "on")));
    }

    #[test]
    fn an_unexpected_reply_raises_no_doubt() {
        assert_eq!(doubt(Dialect::Postgres, &Row(Vec::new())), None);
    }
}
