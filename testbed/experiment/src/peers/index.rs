//! How peers find what others have. To start one more kind is a line in each of these functions.

use std::{ffi::OsString, fmt, str::FromStr};

use crate::{
    systems::{System, SystemError},
    tiers::{Ground, Setting},
};

/// How peers find what others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// One server that all of them ask.
    Central,
    /// A distributed hash table, of which every peer keeps a part.
    Dht,
    /// Every peer knows all others, and so which of them keep what: one hop.
    Partitioned,
}

impl IndexKind {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Central, Self::Dht, Self::Partitioned];

    /// Starts the server that the peers ask, where they ask one.
    pub(super) fn serve(self, setting: &Setting, ground: Ground<'_>) -> Result<Option<System>, SystemError> {
        let database = ground.folder.join("index.db").into_os_string();
        match self {
            Self::Central => {
                System::start(&setting.behind("index", ["--database".into(), database], ground)).map(Some)
            }
            Self::Dht | Self::Partitioned => Ok(None),
        }
    }

    /// What a peer is told of it, when `others` run already.
    pub(super) fn flags(self, index: Option<&System>, others: &[System]) -> Vec<OsString> {
        match self {
            Self::Central => {
                index.map(|index| vec!["--index".into(), index.url().into()]).unwrap_or_default()
            }
            Self::Dht => among_peers("--dht", others),
            Self::Partitioned => among_peers("--partitioned", others),
        }
    }
}

/// What a peer is told that keeps a part of the index itself, of this kind.
fn among_peers(kind: &str, others: &[System]) -> Vec<OsString> {
    let known = others.first().and_then(|first| first.address_after("among the peers on "));
    let join = known.map(|known| ["--bootstrap".into(), known.to_string().into()]);
    let alone = [kind.into(), "--dht-listen".into(), "127.0.0.1:0".into()];
    alone.into_iter().chain(join.into_iter().flatten()).collect()
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Central => "central",
            Self::Dht => "dht",
            Self::Partitioned => "partitioned",
        })
    }
}

impl FromStr for IndexKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == text).ok_or_else(|| {
            let known = Self::ALL.map(|kind| kind.to_string()).join(", ");
            format!("'{text}' is no index known here; there are: {known}")
        })
    }
}
