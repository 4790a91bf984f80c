//! Whose request it is.

use std::rc::Rc;

use accounts::User;

/// Whose request it is, once it was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Anyone's: there are no accounts.
    Anyone,
    /// A user's whom the accounts know. One worker's own copy, so that none of the others is in its way.
    User(Rc<User>),
}

impl Caller {
    /// The user, where there are accounts.
    pub(crate) fn user(&self) -> Option<&User> {
        match self {
            Self::Anyone => None,
            Self::User(user) => Some(user),
        }
    }
}

impl From<Option<User>> for Caller {
    fn from(user: Option<User>) -> Self {
        user.map_or(Self::Anyone, |user| Self::User(Rc::new(user)))
    }
}
