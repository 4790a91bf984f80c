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
