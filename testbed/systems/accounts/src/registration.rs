//! Who may make accounts.

use crate::accounts::Refused;

/// Who may make accounts, beside administrators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Registration {
    /// Everybody, each for themselves, but few from one address in a short time.
    #[default]
    Open,
    /// Nobody.
    Closed,
}

impl Registration {
    /// Lets somebody make an account who was refused as an administrator, or says why not.
    pub(crate) fn admit(self, refused: Refused) -> Result<(), Refused> {
        match (self, refused) {
            (Self::Open, _) => Ok(()),
            (Self::Closed, Refused::Nameless | Refused::Forbidden) => Err(Refused::Closed),
            (Self::Closed, refused) => Err(refused),
        }
    }
}
