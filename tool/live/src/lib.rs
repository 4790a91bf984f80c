//! Shows a sweep while it goes on: on the terminal ([`Screen`]), and as a page that a browser opens ([`Page`]).
//!
//! Both read one state, [`Shared`], which the events of the sweep change: the thread that measures only notes what it is
//! told, and others draw it. Every word comes from `report`.

mod known;
mod page;
mod shared;
mod terminal;

pub use page::{Address, AddressError, Page, ServeError};
pub use shared::Shared;
pub use terminal::{Screen, Style, restore_terminal, resume_terminal, suspend_terminal};
