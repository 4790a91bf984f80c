//! How much an import may copy out of a description.

use std::cell::Cell;
use std::io::{self, Write};

use serde_json::Value as Json;

/// Bytes that may still be copied. A reference costs the description little, and what it stands for may be long.
pub(super) struct Budget {
    /// None once something did not fit.
    left: Cell<Option<usize>>,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Budget { left: Cell::new(Some(bytes)) }
    }

    /// Spends this many bytes. Returns false if they are not left; the budget is then spent for good, so that what comes
    /// later is refused without another look at its length.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        let left = self.left.get().and_then(|left| left.checked_sub(bytes));
        self.left.set(left);
        left.is_some()
    }

    /// Whether something did not fit.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get().is_none()
    }

    /// A copy of the value, at the cost of its length in JSON. None if that is not left.
    pub(super) fn copy(&self, value: &Json) -> Option<Json> {
        serde_json::to_writer(self, value).ok()?;
        Some(value.clone())
    }
}

/// Spends what is written, and keeps nothing of it.
impl Write for &Budget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.spend(bytes.len()) { Ok(bytes.len()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_budget_is_spent_to_the_last_byte_and_then_for_good() {
        let budget = Budget::new(10);
        assert_eq!(budget.copy(&json!([1, "a"])), Some(json!([1, "a"])));
        assert!(budget.spend(3) && !budget.is_spent());
        assert_eq!(budget.copy(&json!(1)), None);
        assert!(budget.is_spent() && !budget.spend(0));
    }
}
