//! What clients were told: the only thing that the systems are judged by.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What may be there under a key: `None` stands for nothing.
pub(crate) type Value = Option<String>;

/// What was acknowledged, and what was asked for without an answer. Both of a change without an answer are right: that it
/// was made, and that it was not.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The values that are right, of which the first was acknowledged.
    right: BTreeMap<String, Vec<Value>>,
    acknowledged: u64,
    faults: Vec<String>,
}

impl Ledger {
    /// Notes that somebody asks to set a key.
    pub(crate) fn attempt(&self, key: &str, value: Value) {
        let mut inner = self.lock();
        let right = inner.right.entry(key.to_owned()).or_insert_with(|| vec![None]);
        if !right.contains(&value) {
            right.push(value);
        }
    }

    /// Notes that a key was acknowledged to be set.
    pub(crate) fn acknowledge(&self, key: &str, value: Value) {
        let mut inner = self.lock();
        inner.acknowledged += 1;
        inner.right.insert(key.to_owned(), vec![value]);
    }

    /// Notes a fault that was seen while the server worked.
    pub(crate) fn fault(&self, what: String) {
        self.lock().faults.push(what);
    }

    /// Compares what is there with what was told, and notes what differs. From then on only what was seen is right: after a
    /// cut everything that is left is on the disk.
    pub(crate) fn compare(&self, key: &str, found: Value) {
        let mut inner = self.lock();
        let right = inner.right.entry(key.to_owned()).or_insert_with(|| vec![None]);
        let is_right = right.contains(&found);
        let before = std::mem::replace(right, vec![found.clone()]);
        if !is_right {
            inner.faults.push(format!("{key}: {} is there, not {}", show(&found), list(&before)));
        }
    }

    /// Keeps of the values that are right those that fit what is there. If none does, notes that.
    pub(crate) fn narrow(&self, key: &str, found: &str, fits: impl Fn(&Value) -> bool) {
        let mut inner = self.lock();
        let right = inner.right.entry(key.to_owned()).or_insert_with(|| vec![None]);
        let before = right.clone();
        right.retain(fits);
        if right.is_empty() {
            inner.faults.push(format!("{key}: {found} is there, not {}", list(&before)));
        }
    }

    /// All keys with the values that are right.
    pub(crate) fn entries(&self) -> Vec<(String, Vec<Value>)> {
        self.lock().right.iter().map(|(key, right)| (key.clone(), right.clone())).collect()
    }

    /// A random key whose value is certain and not nothing, of those that begin like this.
    pub(crate) fn any(&self, prefix: &str, random: &mut fastrand::Rng) -> Option<(String, String)> {
        let inner = self.lock();
        let keys = inner.right.range(prefix.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        let certain = keys.filter_map(|(key, right)| match right.as_slice() {
            [Some(value)] => Some((key, value)),
            _ => None,
        });
        let certain: Vec<_> = certain.collect();
        let chosen = certain.get(random.usize(..certain.len().max(1)))?;
        Some((chosen.0.clone(), chosen.1.clone()))
    }

    /// How many changes were acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.lock().acknowledged
    }

    /// Takes the faults that were found.
    pub(crate) fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().faults)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn show(value: &Value) -> String {
    value.as_ref().map_or_else(|| "nothing".to_owned(), |value| format!("'{value}'"))
}

fn list(right: &[Value]) -> String {
    let right: Vec<String> = right.iter().map(show).collect();
    right.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Value {
        Some(text.to_owned())
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_what_was_not_may() {
        let ledger = Ledger::default();
        ledger.attempt("a", some("1"));
        ledger.compare("a", None);
        assert_eq!(ledger.take_faults(), [""; 0]);
        ledger.attempt("a", some("1"));
        ledger.acknowledge("a", some("1"));
        ledger.attempt("a", some("2"));
        ledger.compare("a", some("2"));
        assert_eq!(ledger.take_faults(), [""; 0]);
        ledger.compare("a", some("1"));
        assert_eq!(ledger.take_faults(), ["a: '1' is there, not '2'"], "it was seen to be 2");
        ledger.attempt("a", None);
        ledger.compare("a", some("3"));
        assert_eq!(ledger.take_faults(), ["a: '3' is there, not '1' or nothing"]);
        assert_eq!(ledger.acknowledged(), 1);
    }

    #[test]
    fn what_nobody_asked_for_is_a_fault() {
        let ledger = Ledger::default();
        ledger.compare("a", some("1"));
        assert_eq!(ledger.take_faults(), ["a: '1' is there, not nothing"]);
    }
}
