//! The same service on every model of the engine, over real sockets.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use engine::{
    EngineError, Model, Options, Server,
    service::{Connection, Factory},
};
use http_io::{
    Method, Problem,
    client::{Client, ClientOptions, Request},
    server::{Error, Exchange, Handler, Http, HttpOptions},
};

/// Responds with the path, and forwards `/front` to an upstream server.
struct Tier<C> {
    behind: Option<Client<C>>,
    file: Arc<std::fs::File>,
    big: Arc<std::fs::File>,
}

impl<C: Connection> Handler<C> for Tier<C> {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        match exchange.path() {
            "/hello" => exchange.respond(200).text("hello"),
            "/echo" => {
                exchange.read_body(1000).await?;
                let body = exchange.body().to_vec();
                exchange.respond(200).body("text/plain", &body)
            }
            "/big" => exchange.respond(200).file(&self.big, 0, BIG_BYTES).await,
            "/file" => exchange.respond(200).file(&self.file, 0, FILE_BYTES as u64).await,
            "/pieces" => {
                let mut body = exchange.respond(200).chunked()?;
                let piece = vec![b'p'; 32 << 10];
                for _ in 0..BIG_BYTES / piece.len() as u64 {
                    body.write(&piece).await?;
                }
                body.finish();
                Ok(())
            }
            "/front" => self.pass_on(exchange).await,
            _ => Err(Problem::new(404, "no such page").into()),
        }
    }
}

impl<C: Connection> Tier<C> {
    async fn pass_on(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let behind = self.behind.as_ref().ok_or_else(|| Problem::new(404, "nothing behind"))?;
        let request = Request::new(Method::Get, "/hello");
        let response = behind
            .send(exchange.connection(), &request)
            .await
            .map_err(|error| Problem::new(503, "the tier behind is away").hint(error.to_string()))?;
        exchange.respond(response.status()).body("text/plain", response.body())
    }
}

const FILE_BYTES: usize = 3_000_000;
/// Workers of the models that have them.
const WORKERS: usize = 4;
/// A generous bound: only what never happens takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// More than the buffers between two sockets hold.
const BIG_BYTES: u64 = 64 << 20;

struct Tiers {
    behind: Option<SocketAddr>,
    options: HttpOptions,
}

impl Factory for Tiers {
    type Service<C: Connection> = Http<Tier<C>>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&vec![b'f'; FILE_BYTES])?;
        let big = tempfile::tempfile()?;
        big.set_len(BIG_BYTES)?;
        let behind = self.behind.map(|to| Client::new(to, ClientOptions::default()));
        Ok(Http::new(Tier { behind, file: Arc::new(file), big: Arc::new(big) }, self.options.clone()))
    }
}

fn start_on(model: Model, listen: SocketAddr, tiers: Tiers) -> Server {
    let options = Options { loops: 1, workers: WORKERS, ..Options::new(listen) };
    engine::start(model, &options, tiers).expect("a server")
}

/// Starts a server at a port that was free a moment ago. The system may have given it to another test meanwhile.
fn start_again(model: Model, listen: SocketAddr) -> Server {
    let begun = Instant::now();
    let options = Options { loops: 1, workers: WORKERS, ..Options::new(listen) };
    loop {
        let tiers = Tiers { behind: None, options: HttpOptions::default() };
        match engine::start(model, &options, tiers) {
            Err(EngineError::AddressInUse { .. }) if begun.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(20));
            }
            started => return started.expect("a server"),
        }
    }
}

fn start(model: Model, behind: Option<SocketAddr>) -> Server {
    let options = HttpOptions { head_timeout: Duration::from_millis(50), ..HttpOptions::default() };
    start_on(model, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Tiers { behind, options })
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.local_addr()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends `request` and reads until the server closes.
fn ask(mut stream: TcpStream, request: &[u8]) -> String {
    stream.write_all(request).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer and a clean end");
    String::from_utf8(answer).expect("text")
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n")
}

fn get_and_close(server: &Server, path: &str) -> String {
    ask(connect(server), get(path, "Connection: close\r\n").as_bytes())
}

#[test]
fn pipelined_requests_a_body_and_a_file() {
    for &model in Model::ALL {
        let server = start(model, None);
        let post =
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let stream =
            [&get("/hello", ""), post, &get("/file", ""), &get("/hello", "Connection: close\r\n")].concat();
        let answer = ask(connect(&server), stream.as_bytes());
        assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 4, "{model}");
        assert_eq!(answer.matches("\r\n\r\nhello").count(), 2);
        assert!(answer.contains("\r\n\r\nabc") && answer.contains(&"f".repeat(FILE_BYTES)));
    }
}

#[test]
fn a_half_closed_client_gets_its_answer() {
    for &model in Model::ALL {
        let server = start(model, None);
        let mut stream = connect(&server);
        stream.write_all(get("/file", "").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(ask(stream, b"").len() > FILE_BYTES, "{model}");
    }
}

#[test]
fn a_refused_upload_still_sees_why() {
    for &model in Model::ALL {
        let server = start(model, None);
        let upload = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n".to_owned()
            + &"x".repeat(200_000);
        assert!(ask(connect(&server), upload.as_bytes()).starts_with("HTTP/1.1 413 "), "{model}");
        let rubbish = "rubbish\r\n\r\n".to_owned() + &"x".repeat(100_000);
        assert!(ask(connect(&server), rubbish.as_bytes()).starts_with("HTTP/1.1 400 "), "{model}");
    }
}

#[test]
fn a_slow_sender_is_told() {
    for &model in Model::ALL {
        let server = start(model, None);
        assert!(ask(connect(&server), b"GET /hello HT").starts_with("HTTP/1.1 408 "), "{model}");
    }
}

#[test]
fn an_idle_connection_ends_when_the_server_drains() {
    for &model in Model::ALL {
        let server = start(model, None);
        let mut stream = connect(&server);
        stream.write_all(get("/hello", "").as_bytes()).unwrap();
        let mut first = [0; 4096];
        assert!(stream.read(&mut first).unwrap() > 0);
        server.drain(Duration::from_secs(30));
        assert_eq!(stream.read(&mut first).unwrap(), 0, "{model}");
        server.join();
    }
}

#[test]
fn another_tier_may_go_and_come_back() {
    for &model in Model::ALL {
        let behind = start(model, None);
        let address = behind.local_addr();
        let front = start(model, Some(address));
        for _ in 0..3 {
            assert!(get_and_close(&front, "/front").ends_with("\r\n\r\nhello"), "{model}");
        }
        behind.drain(Duration::from_secs(30));
        behind.join();
        let is_told =
            |away: &str| away.starts_with("HTTP/1.1 503 ") && away.contains("cannot connect to 127.0.0.1");
        // A process that another test forks holds copies of all sockets until it has dropped them.
        let begun = Instant::now();
        let mut away = get_and_close(&front, "/front");
        while !is_told(&away) && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
            away = get_and_close(&front, "/front");
        }
        assert!(is_told(&away), "{model} {away}");
        let back = start_again(model, address);
        assert!(get_and_close(&front, "/front").ends_with("\r\n\r\nhello"), "{model}");
        drop(back);
    }
}

/// Starts a server that cuts off whoever takes less than so many bytes in `within`.
fn start_impatient(model: Model, progress_bytes: u64, within: Duration) -> Server {
    let options = HttpOptions { write_timeout: within, progress_bytes, ..HttpOptions::default() };
    start_on(model, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Tiers { behind: None, options })
}

/// As many as there are workers ask for much and read nothing.
#[test]
fn readers_that_stall_are_cut_off_and_others_are_served() {
    for &model in Model::ALL {
        let server = start_impatient(model, 16 << 10, Duration::from_millis(300));
        let stalled: Vec<_> = (0..WORKERS)
            .map(|_| {
                let mut stream = connect(&server);
                stream.write_all(get("/big", "").as_bytes()).expect("sent");
                // It has been read, and the response has begun.
                stream.read_exact(&mut [0; 9]).expect("a response");
                stream
            })
            .collect();
        // On models with workers it waits until one of them is free.
        assert!(get_and_close(&server, "/hello").ends_with("hello"), "{model}");
        let begun = Instant::now();
        while server.counters().active() > 0 {
            assert!(begun.elapsed() < PATIENCE, "{model}: {} are held", server.counters().active());
            thread::sleep(Duration::from_millis(10));
        }
        drop(stalled);
    }
}

/// Takes as long as many time-outs, and is never still for one of them.
#[test]
fn readers_that_are_slow_but_move_get_everything() {
    take_slowly_on_all_models("/big", 16 << 10);
}

/// Each piece is smaller than what must be taken in a time-out, and all of them together have many.
#[test]
fn readers_of_many_pieces_that_are_slow_but_move_get_everything() {
    take_slowly_on_all_models("/pieces", 256 << 10);
}

fn take_slowly_on_all_models(path: &str, progress_bytes: u64) {
    thread::scope(|scope| {
        for &model in Model::ALL {
            scope.spawn(move || take_slowly(model, path, progress_bytes));
        }
    });
}

fn take_slowly(model: Model, path: &str, progress_bytes: u64) {
    let within = Duration::from_secs(4);
    let server = start_impatient(model, progress_bytes, within);
    let mut stream = connect(&server);
    stream.write_all(get(path, "Connection: close\r\n").as_bytes()).expect("sent");
    let (begun, mut got, mut piece) = (Instant::now(), 0, vec![0; 2 << 20]);
    loop {
        let count = stream.read(&mut piece).expect("the rest");
        if count == 0 {
            break;
        }
        got += count as u64;
        if begun.elapsed() < 2 * within {
            thread::sleep(within / 20);
        }
    }
    let took = begun.elapsed();
    assert!(got > BIG_BYTES && took > within, "{model}: {got} in {took:?}");
}
