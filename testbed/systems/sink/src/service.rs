//! The sink as a service of an engine.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use engine::service::{Connection, Factory, Service};
use http_io::{
    Method, Problem,
    server::{Error, Exchange, Handler, Http, HttpOptions},
};

use crate::{
    options::{Options, Protocol, Verify},
    upload::{Totals, Upload},
};

/// How long a raw client may be silent. Each idle one holds a descriptor.
const RAW_IDLE_MAX: Duration = Duration::from_secs(60);

/// Makes the sink.
pub fn factory(options: Options) -> SinkFactory {
    SinkFactory { options: Arc::new(options), totals: Totals::default() }
}

/// Makes the sink's services, which share one set of counters.
#[derive(Debug)]
pub struct SinkFactory {
    options: Arc<Options>,
    totals: Totals,
}

impl SinkFactory {
    /// The counters of the services.
    pub fn totals(&self) -> Totals {
        self.totals.clone()
    }
}

impl Factory for SinkFactory {
    type Service<C: Connection> = SinkService;

    fn make<C: Connection>(&self) -> io::Result<SinkService> {
        let handler = SinkHandler { options: Arc::clone(&self.options), totals: self.totals.clone() };
        let (hosts, open_metrics) = (self.options.hosts.clone(), self.options.open_metrics);
        Ok(SinkService(Http::new(handler, HttpOptions { hosts, open_metrics, ..HttpOptions::default() })))
    }
}

/// Serves the connections of one worker.
pub struct SinkService(Http<SinkHandler>);

impl<C: Connection> Service<C> for SinkService {
    async fn serve(&self, mut connection: C) {
        let SinkHandler { options, totals } = self.0.handler();
        connection.read_at_most(options.chunk.get());
        match options.protocol {
            Protocol::Http => self.0.serve(connection).await,
            Protocol::Raw => serve_raw(connection, totals).await,
        }
    }
}

/// Handles the requests of one worker.
#[derive(Debug)]
pub struct SinkHandler {
    options: Arc<Options>,
    totals: Totals,
}

impl<C: Connection> Handler<C> for SinkHandler {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let reads = matches!(exchange.method(), Method::Get | Method::Head);
        match exchange.path() {
            "/upload" if exchange.method() == Method::Post => {
                self.upload(exchange).await.inspect_err(|_| self.totals.failed())
            }
            "/healthz" if reads => exchange.respond(200).text(http_io::health::text()),
            "/metrics" if reads => {
                exchange.check_metrics()?;
                self.totals.answer(&self.options.connections).send(exchange)
            }
            "/upload" => Err(not_allowed("POST")),
            "/healthz" | "/metrics" => Err(not_allowed("GET, HEAD")),
            _ => Err(Problem::new(404, "there is nothing at this path").hint("try POST /upload").into()),
        }
    }

    fn failed(&self, peer: SocketAddr, error: &Error) {
        tracing::info!(target: "access", %peer, %error, "refused or cut off");
    }
}

impl SinkHandler {
    async fn upload<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let mut upload = Upload::new(&self.totals, self.options.verify);
        while let Some(piece) = exchange.next_piece_within(self.options.max_body).await? {
            upload.take(piece);
        }
        if !self.options.delay.is_zero() {
            exchange.pause(self.options.delay).await?;
        }
        tracing::info!(target: "access", peer = %exchange.peer(), bytes = upload.bytes(), "uploaded");
        exchange.respond(200).json(upload.finish())
    }
}

fn not_allowed(allowed: &'static str) -> Error {
    Problem::new(405, format!("only {allowed} may be used here")).header("Allow", allowed).into()
}

/// Takes everything one client sends, without HTTP.
async fn serve_raw<C: Connection>(mut connection: C, totals: &Totals) {
    let mut upload = Upload::new(totals, Verify::Nothing);
    let outcome = take_all(&mut connection, &mut upload).await;
    let (peer, bytes) = (connection.peer(), upload.bytes());
    match outcome {
        Ok(()) => {
            upload.finish();
            // The client may be gone by now, which does not matter.
            let _ = connection.finish().await;
            tracing::info!(target: "access", %peer, bytes, "closed");
        }
        Err(error) => {
            totals.failed();
            tracing::info!(target: "access", %peer, bytes, %error, "cut off");
        }
    }
}

async fn take_all<C: Connection>(connection: &mut C, upload: &mut Upload<'_>) -> io::Result<()> {
    loop {
        connection.set_deadline(Some(RAW_IDLE_MAX));
        if connection.fill().await? == 0 {
            return Ok(());
        }
        upload.take(connection.input());
        let taken = connection.input().len();
        connection.consume(taken);
    }
}
