//! Variables of the environment that stand for the secrets of a scenario.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::left_out::LeftOut;
use crate::scenario::Value;

/// The most variables for the texts under one name. People set each by hand, and a recording may hold a new token for every
/// request.
const VARIABLES_MAX: usize = 16;

/// The longest part of a name that a value is called by, in characters: it stands wherever one of its secrets stood.
const NAME_MAX: usize = 64;

/// The variables of a scenario.
#[derive(Default)]
pub(crate) struct Variables {
    values: Vec<(String, Value)>,
    /// Names of values.
    taken: HashSet<String>,
    /// Slots that stand for secrets, by the secrets' texts.
    slots: HashMap<String, String>,
    /// What there is of each name, by what values are called after it.
    named: BTreeMap<String, Named>,
}

/// The variables of one name.
struct Named {
    /// The name as it was found first.
    name: String,
    /// How many there are.
    count: usize,
    /// The last of them, and the slot that stands for it.
    variable: String,
    slot: String,
    /// How many more texts that one stands for.
    others: usize,
}

impl Variables {
    /// The slot that stands for a secret, and what is to be told of a new variable. A text that occurs twice has one slot. Of
    /// one name, the last variable that it may have stands for all further texts.
    pub(crate) fn slot(&mut self, name: &str, text: &str) -> (String, Option<LeftOut>) {
        if let Some(slot) = self.slots.get(text) {
            return (slot.clone(), None);
        }
        let plain = plain(name);
        let (slot, told) = match self.shared(&plain) {
            Some(slot) => (slot, None),
            None => self.variable(name, plain),
        };
        self.slots.insert(text.to_owned(), slot.clone());
        (slot, told)
    }

    /// The slot for one more text of a name that has all its variables.
    fn shared(&mut self, plain: &str) -> Option<String> {
        let named = self.named.get_mut(plain).filter(|named| named.count >= VARIABLES_MAX)?;
        named.others += 1;
        Some(named.slot.clone())
    }

    /// A new variable, by its slot.
    fn variable(&mut self, name: &str, plain: String) -> (String, Option<LeftOut>) {
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let free = std::iter::once(plain.clone()).chain(numbered).find(|value| !self.taken.contains(value));
        let value = free.unwrap_or_else(|| plain.clone());
        // A shell takes no name that begins with a digit, and sets PWD itself.
        let is_unfit = value == "pwd" || value.starts_with(|c: char| c.is_ascii_digit());
        let variable = format!("{}{}", if is_unfit { "_" } else { "" }, value.to_ascii_uppercase());
        let slot = format!("${{{value}}}");
        let told = LeftOut::Secret { name: name.to_owned(), variable: variable.clone() };
        let named = self.named.entry(plain).or_insert_with(|| Named {
            name: name.to_owned(),
            count: 0,
            variable: String::new(),
            slot: String::new(),
            others: 0,
        });
        named.count += 1;
        named.variable.clone_from(&variable);
        named.slot.clone_from(&slot);
        self.taken.insert(value.clone());
        self.values.push((value, Value::Env(variable)));
        (slot, Some(told))
    }

    /// The values of the scenario, and what is to be told of names with more texts than variables.
    pub(crate) fn finish(self) -> (Vec<(String, Value)>, Vec<LeftOut>) {
        let shared = self.named.into_values().filter(|named| named.others > 0);
        let told = |Named { name, variable, others, .. }| LeftOut::SharedVariable { name, variable, others };
        (self.values, shared.map(told).collect())
    }
}

/// What a value is called after this name.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().take(NAME_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording with a new token for each of thousands of requests asked for as many variables.
    #[test]
    fn many_texts_of_one_name_share_a_variable_from_some_number_on() {
        let mut variables = Variables::default();
        let slots: Vec<String> =
            (0..5_000).map(|text| variables.slot("Token", &text.to_string()).0).collect();
        // A text that was there before is none of the others.
        assert_eq!(variables.slot("token", "4999"), ("${token_16}".into(), None));
        assert_eq!(variables.slot("pin", "5000").0, "${pin}");
        assert_eq!((slots[0].as_str(), slots[1].as_str()), ("${token}", "${token_2}"));
        assert!(slots[15..].iter().all(|slot| slot == "${token_16}"));
        let (values, told) = variables.finish();
        assert_eq!(values.len(), VARIABLES_MAX + 1);
        let shared =
            LeftOut::SharedVariable { name: "Token".into(), variable: "TOKEN_16".into(), others: 4_984 };
        assert_eq!(told, [shared]);
    }

    #[test]
    fn names_that_read_the_same_are_numbered_and_long_ones_cut() {
        let mut variables = Variables::default();
        let mut slot = |name: &str, text: &str| variables.slot(name, text).0;
        assert_eq!(slot("X-Key", "a"), "${x_key}");
        assert_eq!(slot("x_key_2", "b"), "${x_key_2}");
        assert_eq!(slot("x key", "c"), "${x_key_3}");
        assert_eq!(slot(&"k".repeat(1_000), "d"), format!("${{{}}}", "k".repeat(NAME_MAX)));
        assert_eq!(slot("pwd", "e"), "${pwd}");
        let (values, _) = variables.finish();
        assert_eq!(values.last(), Some(&("pwd".into(), Value::Env("_PWD".into()))));
    }
}
