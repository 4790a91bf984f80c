//! The booking server as a service of an engine.

use std::sync::Arc;

use api_server::{Api as _, ApiFactory, Metrics};

use crate::{
    http::api::BookingApi,
    options::Options,
    setup::{self, BookingError},
};

/// Makes the booking server's services.
pub type BookingFactory = ApiFactory<BookingApi, BookingError>;

/// Makes the booking server. Prepares the database first, so that its problems show before the server starts.
///
/// # Errors
/// When the database or the key cannot be opened, or do not belong together.
pub fn factory(options: Options) -> Result<BookingFactory, BookingError> {
    let rooms = setup::prepare(&options)?;
    // All processes share the counters.
    let connections = Arc::clone(&options.server.connections);
    let metrics = Metrics::new("booking", BookingApi::ROUTES, &[], &[], connections);
    let server = options.server.clone();
    Ok(ApiFactory::new(&server, move || BookingApi::open(&options, rooms.clone(), metrics.clone())))
}
