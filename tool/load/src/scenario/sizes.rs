//! Sizes of generated bodies.

use std::str::FromStr;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use super::error::ScenarioError;
use super::section::{Field, Section, SourceText, number_of, wrong};

/// Longest generated body, bytes: anything longer is a typing error.
const SIZE_MAX: u64 = 1 << 40;

/// The form of a size, for error messages.
const SIZE: &str = "a size such as 1024, \"100 KB\" or \"1 MiB\", of at most 1 TiB";

/// Sizes of which each request has one, all equally often. A size given twice is sent twice as often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes(Box<[u64]>);

/// A text that does not consist of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not {SIZE}; several are separated by commas")]
pub struct SizeError(String);

impl Sizes {
    /// Takes sizes in bytes. Returns `None` if there are none, or if one exceeds 1 TiB.
    pub fn new(sizes: impl Into<Box<[u64]>>) -> Option<Self> {
        Some(Self(sizes.into())).filter(Self::is_sound)
    }

    /// Whether there is at least one, and none is too large.
    pub(crate) fn is_sound(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|size| *size <= SIZE_MAX)
    }

    /// Returns the size if there is only one.
    pub(crate) fn only(&self) -> Option<u64> {
        match *self.0 {
            [size] => Some(size),
            _ => None,
        }
    }

    /// Returns all sizes, as they were given.
    pub(crate) fn all(&self) -> &[u64] {
        &self.0
    }

    /// Returns the largest size.
    pub(crate) fn largest(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or_default()
    }

    /// Returns the size of the `k`-th body. Of as many bodies as there are sizes each size has one, in turn, from one that
    /// `start` gives for the round: sizes drawn independently make the load of a short run heavier or lighter by chance.
    pub(crate) fn of_turn(&self, k: u64, start: impl Fn(u64) -> u64) -> u64 {
        let count = self.0.len() as u64;
        let (round, turn) = (k / count, k % count);
        self.0[((start(round) % count + turn) % count) as usize]
    }
}

impl FromStr for Sizes {
    type Err = SizeError;

    /// Parses sizes separated by commas: `1MB`, or `100KB,1MB,10MB`.
    fn from_str(text: &str) -> Result<Self, SizeError> {
        let one = |part: &str| parse_size(part).ok_or_else(|| SizeError(part.trim().into()));
        let sizes = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
        Sizes::new(sizes).ok_or_else(|| SizeError(text.into()))
    }
}

/// Parses a number of bytes, with or without a unit.
fn parse_size(text: &str) -> Option<u64> {
    let size = text.trim().parse::<ByteSize>().ok()?.as_u64();
    (size <= SIZE_MAX).then_some(size)
}

/// Reads the table of a generated body: `{ size = .. }` or `{ sizes = [..] }`.
pub(super) fn read_sizes(source: SourceText<'_>, body: Field<'_>) -> Result<Sizes, ScenarioError> {
    let mut section = Section::under(source, "body".into(), body)?;
    let fields = match (section.field("size"), section.array("sizes")?) {
        (Some(field), None) => vec![field],
        (None, Some(fields)) => fields,
        (Some(field), Some(_)) => return Err(wrong(source, field, "left out if there are `sizes`")),
        (None, None) => {
            return Err(section.missing("size", "a number of bytes, or `sizes`, a list of them"));
        }
    };
    let sizes = fields.into_iter().map(|field| read_size(source, field)).collect::<Result<Vec<_>, _>>()?;
    let sizes = Sizes::new(sizes).ok_or_else(|| section.missing("sizes", "at least one size"))?;
    section.finish()?;
    Ok(sizes)
}

fn read_size(source: SourceText<'_>, field: Field<'_>) -> Result<u64, ScenarioError> {
    match field.value {
        DeValue::String(text) => parse_size(text).ok_or_else(|| wrong(source, field, SIZE)),
        DeValue::Integer(_) => number_of(source, field, 0..=SIZE_MAX),
        _ => Err(wrong(source, field, SIZE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn sizes_have_units() {
        let sizes: Sizes = "100 KB,1MiB,7".parse().unwrap();
        assert_eq!(sizes, Sizes::new([100_000, 1 << 20, 7]).unwrap());
        assert_eq!((sizes.largest(), sizes.only()), (1 << 20, None));
        assert_eq!("1 GB".parse::<Sizes>().unwrap().only(), Some(1_000_000_000));
        for text in ["", "1MB,", "much", "-1", "2 TiB", "1e99 MB"] {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
        assert!(Sizes::new([]).is_none() && Sizes::new([SIZE_MAX + 1]).is_none());
    }

    #[test]
    fn each_round_has_every_size_once_from_any_start() {
        let sizes = Sizes::new([1, 2, 3]).unwrap();
        let drawn: Vec<u64> = (0..9).map(|k| sizes.of_turn(k, |round| [0, 2, 7][round as usize])).collect();
        assert_eq!(drawn, [1, 2, 3, 3, 1, 2, 2, 3, 1]);
        assert_eq!(Sizes::new([5]).unwrap().of_turn(u64::MAX, |_| u64::MAX), 5);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "[0-9a-zA-Z., -]{0,20}") {
            if let Ok(sizes) = text.parse::<Sizes>() {
                prop_assert!(sizes.largest() <= SIZE_MAX);
            }
        }
    }
}
