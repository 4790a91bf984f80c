//! The routes of the booking server.

use std::net::IpAddr;

use api_server::{Api, Metrics, Route, RouteMatch};
use engine::service::Connection;
use http_io::{Problem, Response, server::Exchange};
use serve::Disk;

use crate::{
    bookings::Bookings,
    calendar,
    limits::{ClientLimit, check_space},
    options::{BookingError, Options},
    refusal::Refusal,
    requests::{self, BODY_LEN_MAX, Query},
    rooms::{DAYS_MAX, DAYS_OF_MANY_MAX},
    secrets::Secrets,
    tables::{SCHEMA, Tables},
    values::{guest::IdPolicy, room::Room},
};

/// The page to book and cancel on.
const PAGE: &str = include_str!("page.html");

/// A request and the address it came from.
type Call<'a> = api_server::Call<'a, IpAddr>;

/// The API of the booking server.
#[derive(Debug)]
pub struct BookingApi {
    bookings: Bookings,
    ids: IdPolicy,
    limit: Option<ClientLimit>,
    /// `None` where the database is a server's.
    disk: Option<Disk>,
    metrics: Metrics,
}

impl Api for BookingApi {
    const ROUTES: &'static [Route] = &[
        Route::new("/", "GET, HEAD"),
        Route::new("/rooms", "GET, HEAD, POST"),
        Route::new("/rooms/{id}", "GET, HEAD"),
        Route::new("/rooms/{id}/calendar.ics", "GET, HEAD"),
        Route::new("/bookings", "POST"),
        Route::new("/bookings/{id}", "GET, HEAD, DELETE"),
        Route::new("/audit", "GET, HEAD"),
    ];
    const BODY_LEN_MAX: u64 = BODY_LEN_MAX;
    /// A booking's id is a secret of its maker.
    const PATHS_ARE_SECRET: bool = true;
    type Sender = IpAddr;
    type Error = Refusal;

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn admit<C: Connection>(&self, exchange: &Exchange<'_, C>) -> Result<IpAddr, Problem> {
        exchange.check_origin()?;
        Ok(exchange.requester().address)
    }

    async fn answer(&self, found: RouteMatch<'_>, call: Call<'_>) -> Result<Response, Refusal> {
        let id = found.parameter;
        match (found.path, call.method) {
            ("/", _) => Ok(http_io::page(PAGE)),
            ("/rooms", "GET") => self.rooms(call).await,
            ("/rooms", _) => self.add_room(call).await,
            ("/rooms/{id}", _) => self.room(id, call).await,
            ("/rooms/{id}/calendar.ics", _) => self.calendar(id).await,
            ("/bookings", _) => self.book(call).await,
            ("/bookings/{id}", "GET") => self.booking(id).await,
            ("/bookings/{id}", _) => self.cancel(id, call).await,
            ("/audit", _) => self.audit(call).await,
            _ => Err(Refusal::new(404, "there is nothing of this name")),
        }
    }
}

impl BookingApi {
    /// Opens the database and starts its threads.
    pub(crate) fn open(
        options: &Options,
        rooms: Vec<Room>,
        metrics: Metrics,
        limit: Option<ClientLimit>,
    ) -> Result<Self, BookingError> {
        let tables = Tables::new(options.server.open_store(&SCHEMA, &metrics)?);
        let bookings = Bookings::new(tables, Secrets::open(&options.key)?, rooms);
        let disk = options.server.database.path().map(|path| {
            let failed = |source| BookingError::Folder { path: path.to_owned(), source };
            Disk::of(path, options.keep_free).map_err(failed)
        });
        Ok(Self { bookings, ids: options.ids, limit, disk: disk.transpose()?, metrics })
    }

    async fn rooms(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let query = Query::parse(call.query)?;
        let (after, limit) = query.page()?;
        let days = query.maybe_days(DAYS_OF_MANY_MAX)?;
        Ok(Response::json(200, &self.bookings.rooms().list(after, limit, days).await?))
    }

    async fn add_room(&self, call: Call<'_>) -> Result<Response, Refusal> {
        self.check_admin(call)?;
        let room = self.bookings.rooms().add(&requests::new_room(call.body)?).await?;
        let place = format!("/rooms/{}", room.id);
        Ok(Response::json(201, &room).with("Location", place))
    }

    async fn audit(&self, call: Call<'_>) -> Result<Response, Refusal> {
        self.check_admin(call)?;
        let (after, limit) = Query::parse(call.query)?.page()?;
        Ok(Response::json(200, &self.bookings.audit(after, limit).await?).with("Cache-Control", "no-store"))
    }

    fn check_admin(&self, call: Call<'_>) -> Result<(), Refusal> {
        let token = requests::bearer(call.authorization());
        if token.is_some_and(|token| self.bookings.is_admin(token)) {
            return Ok(());
        }
        Err(Refusal::new(401, "only the administrator may do this")
            .hint("send the token from the server's .admin file as `Authorization: Bearer TOKEN`"))
    }

    async fn room(&self, id: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let days = Query::parse(call.query)?.days(DAYS_MAX)?;
        Ok(Response::json(200, &self.bookings.rooms().schedule(number(id)?, days).await?))
    }

    async fn calendar(&self, id: &str) -> Result<Response, Refusal> {
        let days = calendar::days();
        let room = self.bookings.rooms().schedule(number(id)?, days).await?;
        Ok(Response::new(200, calendar::CONTENT_TYPE, calendar::render(&room, days)))
    }

    async fn book(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let key = call.headers.get("idempotency-key");
        let request = requests::booking(call.body, key, call.sender.to_string(), self.ids)?;
        self.disk.as_ref().map_or(Ok(()), check_space)?;
        self.limit.as_ref().map_or(Ok(()), |limit| limit.check(call.sender))?;
        let booking = self.bookings.book(request).await?;
        let place = format!("/bookings/{}", booking.id);
        Ok(private(Response::json(201, &booking), booking.version).with("Location", place))
    }

    async fn booking(&self, id: &str) -> Result<Response, Refusal> {
        let booking = self.bookings.get(id).await?;
        Ok(private(Response::json(200, &booking), booking.version))
    }

    async fn cancel(&self, id: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let version = requests::version(call.headers.get("if-match"));
        self.bookings.cancel(id, version, &call.sender.to_string()).await?;
        Ok(Response::done())
    }
}

/// Keeps caches from storing a response about one person.
fn private(response: Response, version: i64) -> Response {
    response.with("ETag", format!("\"{version}\"")).with("Cache-Control", "no-store")
}

fn number(id: &str) -> Result<i64, Refusal> {
    id.parse().map_err(|_| Refusal::new(404, "there is no such room").hint("GET /rooms lists them"))
}
