//! `nstar-lab fill`: gives a database its data before a load, so that a load hardly changes its size.

use nstar::{
    exit::{Exit, Failure},
    output,
};
use serde_json::json;
use serve::with_password;

use super::FillBookings;

/// Fills the database of a booking server, which may be running, but has no bookings yet. With 0 rows it only gathers
/// statistics and writes the log to its place.
pub(crate) fn bookings(flags: &FillBookings) -> Result<Exit, Failure> {
    let database = with_password(&flags.database, &flags.login)?;
    booking::fill(&database, flags.rows).map_err(Failure::failed)?;
    // For the report of the experiment.
    output::print(&format!("{}\n", json!({ "bookings": flags.rows })))?;
    Ok(Exit::Done)
}
