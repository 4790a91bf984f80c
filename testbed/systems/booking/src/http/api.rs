//! The routes of the booking server, apart from connections and headers.

use http_io::Response;
use store::{Commits, Store};

use super::{
    calendar,
    requests::{self, Query},
};
use crate::{
    bookings::Bookings,
    metrics::Metrics,
    options::Options,
    refusal::Refusal,
    rooms::{DAYS_MAX, DAYS_OF_MANY_MAX},
    secrets::Secrets,
    setup::BookingError,
    tables::{SCHEMA, Tables},
    values::{aadhaar::IdPolicy, room::Room},
};

/// The page to book and cancel on.
const PAGE: &str = include_str!("page.html");

/// The parts of a request that matter here.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) authorization: Option<&'a [u8]>,
    pub(crate) idempotency_key: Option<&'a [u8]>,
    pub(crate) if_match: Option<&'a [u8]>,
    pub(crate) from: std::net::IpAddr,
    pub(crate) body: &'a [u8],
}

/// What a path leads to. Logs and metrics show only its name, as a booking's id is a secret of its maker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Page,
    Rooms,
    Room(&'a str),
    Calendar(&'a str),
    Bookings,
    Booking(&'a str),
    Audit,
    Health,
    Metrics,
    Other,
}

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Self {
        let mut parts = path.trim_start_matches('/').split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(""), None, ..) => Self::Page,
            (Some("rooms"), None, ..) => Self::Rooms,
            (Some("rooms"), Some(id), None, _) => Self::Room(id),
            (Some("rooms"), Some(id), Some("calendar.ics"), None) => Self::Calendar(id),
            (Some("bookings"), None, ..) => Self::Bookings,
            (Some("bookings"), Some(id), None, _) => Self::Booking(id),
            (Some("audit"), None, ..) => Self::Audit,
            (Some("healthz"), None, ..) => Self::Health,
            (Some("metrics"), None, ..) => Self::Metrics,
            _ => Self::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Page => "/",
            Self::Rooms => "/rooms",
            Self::Room(_) => "/rooms/{id}",
            Self::Calendar(_) => "/rooms/{id}/calendar.ics",
            Self::Bookings => "/bookings",
            Self::Booking(_) => "/bookings/{id}",
            Self::Audit => "/audit",
            Self::Health => "/healthz",
            Self::Metrics => "/metrics",
            Self::Other => "other",
        }
    }

    fn methods(self) -> &'static str {
        match self {
            Self::Rooms => "GET, HEAD, POST",
            Self::Bookings => "POST",
            Self::Booking(_) => "GET, HEAD, DELETE",
            _ => "GET, HEAD",
        }
    }
}

/// Responds to the requests of the booking server.
#[derive(Debug)]
pub(crate) struct Api {
    bookings: Bookings,
    ids: IdPolicy,
    metrics: Metrics,
}

impl Api {
    /// Opens the database and starts its threads.
    pub(crate) fn open(options: &Options, rooms: Vec<Room>, metrics: Metrics) -> Result<Self, BookingError> {
        let mut store = store::Options::default();
        let counts = metrics.clone();
        store.commits = Commits::new(move |changes, took| counts.committed(changes, took));
        store.queue = options.queue;
        let tables = Tables::new(Store::open(&options.database, &SCHEMA, &store)?);
        let bookings = Bookings::new(tables, Secrets::open(&options.key)?, rooms);
        Ok(Self { bookings, ids: options.ids, metrics })
    }

    /// Responds to a request. Returns the name of its route, under which it was counted.
    pub(crate) async fn answer(&self, call: Call<'_>) -> (&'static str, Response) {
        let route = Route::of(call.path);
        let answer = self.answer_to(route, call).await.unwrap_or_else(Response::from);
        self.metrics.answered(route.name(), answer.status);
        (route.name(), answer)
    }

    async fn answer_to(&self, route: Route<'_>, call: Call<'_>) -> Result<Response, Refusal> {
        match (route, call.method) {
            (Route::Page, "GET" | "HEAD") => Ok(http_io::page(PAGE)),
            (Route::Rooms, "GET" | "HEAD") => self.rooms(call).await,
            (Route::Rooms, "POST") => self.add_room(call).await,
            (Route::Room(id), "GET" | "HEAD") => self.room(id, call).await,
            (Route::Calendar(id), "GET" | "HEAD") => self.calendar(id).await,
            (Route::Bookings, "POST") => self.book(call).await,
            (Route::Booking(id), "GET" | "HEAD") => self.booking(id).await,
            (Route::Booking(id), "DELETE") => self.cancel(id, call).await,
            (Route::Audit, "GET" | "HEAD") => self.audit(call).await,
            (Route::Health, "GET" | "HEAD") => Ok(Response::new(200, "text/plain", "ok\n")),
            (Route::Metrics, "GET" | "HEAD") => Ok(self.metrics.show()),
            (Route::Other, _) => Err(Refusal::new(404, "there is nothing at this path")),
            (route, _) => {
                let allowed = route.methods();
                let refusal = Refusal::new(405, format!("only {allowed} may be used here"));
                Ok(Response::from(refusal).with("Allow", allowed))
            }
        }
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
        let token = requests::bearer(call.authorization);
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
        let request = requests::booking(call.body, call.idempotency_key, call.from.to_string(), self.ids)?;
        let booking = self.bookings.book(request).await?;
        let place = format!("/bookings/{}", booking.id);
        Ok(private(Response::json(201, &booking), booking.version).with("Location", place))
    }

    async fn booking(&self, id: &str) -> Result<Response, Refusal> {
        let booking = self.bookings.get(id).await?;
        Ok(private(Response::json(200, &booking), booking.version))
    }

    async fn cancel(&self, id: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let version = requests::version(call.if_match);
        self.bookings.cancel(id, version, &call.from.to_string()).await?;
        Ok(Response::done())
    }
}

/// Keeps caches from storing a response about one person.
fn private(answer: Response, version: i64) -> Response {
    answer.with("ETag", format!("\"{version}\"")).with("Cache-Control", "no-store")
}

fn number(id: &str) -> Result<i64, Refusal> {
    id.parse().map_err(|_| Refusal::new(404, "there is no such room").hint("GET /rooms lists them"))
}
