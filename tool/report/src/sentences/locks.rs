//! Sentences about the locks of a database.

use analysis::run::{Database, LockEvidence as Seen};

use super::holders::{database, processes, subject};
use crate::number::{count, percent, tenths, time};
use crate::words::users;

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::SessionsWaited { database: of, waiting, at_work, users, contended, samples } => format!(
            "On average {} of the {} sessions at work in {} waited for a lock that another transaction held, with more \
             users than N* = {}; in {} of {} samples at least one did.",
            tenths(*waiting),
            tenths(*at_work),
            database(of),
            count((*users).into()),
            percent(*contended),
            count(*samples)
        ),
        Seen::ShareOfResponse { waited_us, users: number, share, inside } => {
            let rest = inside.map_or_else(String::new, |inside| {
                format!(
                    "; of {} {} were in the database at a time, the others in front of it",
                    users(*number),
                    tenths(inside)
                )
            });
            format!(
                "By Little's law a request waited {} for them with {}, {} of its response time{rest}.",
                time(*waited_us),
                users(*number),
                percent(*share)
            )
        }
        Seen::QueueGrew { from_users, from_waiting, to_users, to_waiting } => format!(
            "With {} {} waited, with {} {}.",
            users(*from_users),
            tenths(*from_waiting),
            users(*to_users),
            tenths(*to_waiting)
        ),
        Seen::CountedByDatabase { waiting } => {
            format!("The database itself counted waits that come to {} at a time.", tenths(*waiting))
        }
        Seen::AllElseHadRoom { busiest: Some((resource, busy)) } => {
            format!("All else had room. {} was the busiest, at {}.", subject(resource), percent(*busy))
        }
        Seen::AllElseHadRoom { busiest: None } => "All else had room.".to_owned(),
        Seen::NotAsked { of } => format!(
            "Whether transactions waited for locks in {} is not known: --watch-database URL asks it.",
            processes(of)
        ),
        Seen::NotTheCause { database, waiting, at_work } => format!(
            "Locks of the database are not what stops it: {}.",
            sessions_waited(database, *waiting, *at_work)
        ),
        Seen::PartOfTheWaiting { database, waiting, at_work } => format!(
            "Locks of the database are part of the waiting: {}.",
            sessions_waited(database, *waiting, *at_work)
        ),
    }
}

/// `on average 3.2 of the 16 sessions at work in mariadbd (pid 912) waited for one ..`
pub(super) fn sessions_waited(of: &Database, waiting: f64, at_work: f64) -> String {
    format!(
        "on average {} of the {} sessions at work in {} waited for one that another transaction held",
        tenths(waiting),
        tenths(at_work),
        database(of)
    )
}
