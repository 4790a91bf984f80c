//! Who may create accounts.

use crate::refused::Refused;

/// Who may create accounts, besides administrators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Registration {
    /// Everybody, but only a few from one address in a short time.
    #[default]
    Open,
    /// Nobody.
    Closed,
}

impl Registration {
    /// Decides whether a caller who is not an administrator may create an account. `refused` says why they are not one.
    pub(crate) fn admit(self, refused: Refused) -> Result<(), Refused> {
        match (self, refused) {
            (Self::Open, _) => Ok(()),
            (Self::Closed, Refused::Nameless | Refused::Forbidden) => Err(Refused::Closed),
            (Self::Closed, refused) => Err(refused),
        }
    }
}
