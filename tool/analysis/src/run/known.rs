//! Reads typed data from files of newer versions: what this version does not know becomes the default, which stands for
//! words alone.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Read<T> {
    Known(T),
    Unknown(IgnoredAny),
}

impl<T: Default> Read<T> {
    fn or_default(self) -> T {
        match self {
            Self::Known(value) => value,
            Self::Unknown(_) => T::default(),
        }
    }
}

/// Reads a value; the default where this version does not know it.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Read::deserialize(from).map(Read::or_default)
}

/// Reads a list; the default in place of each entry that this version does not know.
pub(crate) fn each_or_default<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    let all = Vec::<Read<T>>::deserialize(from)?;
    Ok(all.into_iter().map(Read::or_default).collect())
}
