//! Whether the index answers, as far as that is known.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::seam::IndexError;

/// For so long what is known of the index is believed.
const KNOWN_FOR: Duration = Duration::from_secs(2);

/// What came of the last request.
#[derive(Debug, Default)]
pub(super) struct Contact(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    asked: Option<Instant>,
    trouble: Option<String>,
    /// Whether it answers, and refuses what this peer asks.
    refuses: bool,
}

impl Contact {
    /// Notes what came of a request.
    pub(super) fn note<T>(&self, answer: &Result<T, IndexError>) {
        let mut last = self.lock();
        last.asked = Some(Instant::now());
        last.refuses = matches!(answer, Err(IndexError::Refused { .. }));
        last.trouble = match answer {
            // It answers, and is told everything again.
            Ok(_) | Err(IndexError::Forgotten { .. }) => None,
            Err(error) => Some(error.to_string()),
        };
    }

    /// Notes whether it is there at all. One that is may refuse what this peer asks all the same, as it did last.
    pub(super) fn note_look(&self, look: &Result<(), IndexError>) {
        if look.is_err() || !self.lock().refuses {
            self.note(look);
        }
    }

    /// Whether it is time to see whether it answers. Whoever is told so is to do it: others are not told meanwhile.
    pub(super) fn is_due(&self) -> bool {
        let mut last = self.lock();
        let due = last.asked.is_none_or(|asked| asked.elapsed() >= KNOWN_FOR);
        if due {
            last.asked = Some(Instant::now());
        }
        due
    }

    /// What was wrong when it was asked last.
    pub(super) fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_is_there_may_refuse_all_the_same() {
        let (contact, index, reason) = (Contact::default(), String::new, String::new);
        contact.note::<()>(&Err(IndexError::Refused { index: index(), reason: reason() }));
        contact.note_look(&Ok(()));
        assert!(contact.trouble().is_some());
        contact.note(&Ok(()));
        assert_eq!(contact.trouble(), None);
        contact.note::<()>(&Err(IndexError::Away { index: index(), reason: reason() }));
        contact.note_look(&Ok(()));
        assert_eq!(contact.trouble(), None);
    }
}
