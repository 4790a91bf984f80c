//! The requests of the booking server, apart from how they come and go.

use http_io::Response;
use store::{Commits, Store};

use crate::{
    aadhaar::Accepted,
    desk::{DAYS_MAX, DAYS_OF_MANY_MAX, Desk},
    error::BookingError,
    feed,
    metrics::Metrics,
    options::Options,
    refusal::Refusal,
    requests::{self, Query},
    room::Room,
    secrets::Secrets,
    tables::{SCHEMA, Tables},
};

/// The page to book and cancel on.
const PAGE: &str = include_str!("page.html");

/// What is asked.
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

/// A path, told apart from the others. Its name is what logs and metrics show: a booking's id is a secret of its maker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Page,
    Rooms,
    Room(&'a str),
    Feed(&'a str),
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
            (Some("rooms"), Some(id), Some("calendar.ics"), None) => Self::Feed(id),
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
            Self::Feed(_) => "/rooms/{id}/calendar.ics",
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

/// The booking server's answers to its requests.
#[derive(Debug)]
pub(crate) struct Api {
    desk: Desk,
    accepted: Accepted,
    metrics: Metrics,
}

impl Api {
    /// Opens the database and starts the threads.
    pub(crate) fn open(options: &Options, rooms: Vec<Room>, metrics: Metrics) -> Result<Self, BookingError> {
        let mut store = store::Options::default();
        let counts = metrics.clone();
        store.commits = Commits::new(move |changes, took| counts.committed(changes, took));
        store.queue = options.queue;
        let tables = Tables::new(Store::open(&options.database, &SCHEMA, &store)?);
        let desk = Desk::new(tables, Secrets::open(&options.key)?, rooms);
        Ok(Self { desk, accepted: options.accepted, metrics })
    }

    /// Answers a request, and counts it under the name it returns.
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
            (Route::Feed(id), "GET" | "HEAD") => self.feed(id).await,
            (Route::Bookings, "POST") => self.book(call).await,
            (Route::Booking(id), "GET" | "HEAD") => self.booking(id).await,
            (Route::Booking(id), "DELETE") => self.cancel(id, call).await,
            (Route::Audit, "GET" | "HEAD") => self.audit(call).await,
            (Route::Health, "GET" | "HEAD") => Ok(Response::new(200, "text/plain", "ok\n")),
            (Route::Metrics, "GET" | "HEAD") => Ok(self.metrics.show()),
            (Route::Other, _) => Err(Refusal::new(404, "there is nothing of this name")),
            (route, _) => {
                let allowed = route.methods();
                let refusal = Refusal::new(405, format!("only {allowed} may be used here"));
                Ok(Response::from(refusal).with("Allow", allowed))
            }
        }
    }

    async fn rooms(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let query = Query::read(call.query)?;
        let (after, limit) = query.page()?;
        let span = query.maybe_span(DAYS_OF_MANY_MAX)?;
        Ok(Response::json(200, &self.desk.rooms(after, limit, span).await?))
    }

    async fn add_room(&self, call: Call<'_>) -> Result<Response, Refusal> {
        self.check_admin(call)?;
        let room = self.desk.add_room(&requests::new_room(call.body)?).await?;
        let place = format!("/rooms/{}", room.id);
        Ok(Response::json(201, &room).with("Location", place))
    }

    async fn audit(&self, call: Call<'_>) -> Result<Response, Refusal> {
        self.check_admin(call)?;
        let (after, limit) = Query::read(call.query)?.page()?;
        Ok(Response::json(200, &self.desk.audit(after, limit).await?).with("Cache-Control", "no-store"))
    }

    fn check_admin(&self, call: Call<'_>) -> Result<(), Refusal> {
        let token = requests::bearer(call.authorization);
        if token.is_some_and(|token| self.desk.is_admin(token)) {
            return Ok(());
        }
        Err(Refusal::new(401, "only the administrator may do this")
            .hint("send the token from the server's .admin file as `Authorization: Bearer TOKEN`"))
    }

    async fn room(&self, id: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let span = Query::read(call.query)?.span(DAYS_MAX)?;
        Ok(Response::json(200, &self.desk.room_days(number(id)?, span).await?))
    }

    async fn feed(&self, id: &str) -> Result<Response, Refusal> {
        let span = feed::span();
        let room = self.desk.room_days(number(id)?, span).await?;
        Ok(Response::new(200, feed::CONTENT_TYPE, feed::render(&room, span)))
    }

    async fn book(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let wish = requests::wish(call.body, call.idempotency_key, call.from.to_string(), self.accepted)?;
        let booking = self.desk.book(wish).await?;
        let place = format!("/bookings/{}", booking.id);
        Ok(private(Response::json(201, &booking), booking.version).with("Location", place))
    }

    async fn booking(&self, id: &str) -> Result<Response, Refusal> {
        let booking = self.desk.booking(id).await?;
        Ok(private(Response::json(200, &booking), booking.version))
    }

    async fn cancel(&self, id: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let version = requests::version(call.if_match);
        self.desk.cancel(id, version, &call.from.to_string()).await?;
        Ok(Response::done())
    }
}

/// What concerns one person is kept by no cache.
fn private(answer: Response, version: i64) -> Response {
    answer.with("ETag", format!("\"{version}\"")).with("Cache-Control", "no-store")
}

fn number(id: &str) -> Result<i64, Refusal> {
    id.parse().map_err(|_| Refusal::new(404, "there is no such room").hint("GET /rooms lists them"))
}
