//! Who may change what is registered at an address: whoever was first, for as long as that lives.

use std::net::SocketAddr;

use store::{Row, StoreError};
use tls::PublicKey;

/// Who asks for a change of what is registered at an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registrant {
    pub(crate) peer: SocketAddr,
    /// None: may change whatever is registered, by whomever.
    pub(crate) key: Option<PublicKey>,
}

/// What is known of a peer that lives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) number: i64,
    /// The key that registered it. None: nobody's, so that anyone may change it.
    holder: Option<PublicKey>,
}

/// Why nothing is changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error("{peer} is registered by another member, {holder}")]
    Held { peer: SocketAddr, holder: PublicKey },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Registrant {
    /// As the database has the key.
    pub(super) fn holder(&self) -> String {
        self.key.map(|key| key.to_string()).unwrap_or_default()
    }
}

impl Known {
    /// Reads the columns id and holder.
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let holder = Some(row.text(1)?).filter(|text| !text.is_empty()).map(str::parse).transpose();
        Ok(Self { number: row.int(0)?, holder: holder.map_err(|_| StoreError::Failed)? })
    }

    /// Its number, for who may change what it has.
    pub(super) fn number_for(&self, who: &Registrant) -> Result<i64, ChangeError> {
        match (self.holder, who.key) {
            (Some(holder), Some(key)) if holder != key => Err(ChangeError::Held { peer: who.peer, holder }),
            _ => Ok(self.number),
        }
    }
}
