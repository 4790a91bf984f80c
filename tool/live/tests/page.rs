//! The page over real sockets: who gets what, how the sweep is ended, and how the page ends.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use analysis::search::outlook::{Purpose, TimeOf};
use live::{Address, Page, ServeError, Shared};
use sweep::progress::Event;

/// A generous bound on every wait: reached only by what would never happen.
const PATIENCE: Duration = Duration::from_secs(60);

struct Served {
    shared: Shared,
    page: Page,
    ended: Arc<AtomicBool>,
    client: Client,
}

/// Knows the whole address of the page.
#[derive(Clone)]
struct Client {
    address: String,
    /// The path of the page.
    path: String,
}

fn serve() -> Served {
    served(Page::serve)
}

fn served(serve: impl FnOnce(&Shared, &Address) -> Result<Page, ServeError>) -> Served {
    let ended = Arc::new(AtomicBool::new(false));
    let shared = Shared::new("http://127.0.0.1:1/<b>", ended.clone());
    let any: Address = "127.0.0.1:0".parse().expect("an address");
    let page = serve(&shared, &any).expect("a free port");
    let url = page.url();
    let rest = url.strip_prefix("http://").expect("a URL");
    let (address, path) = rest.split_once('/').expect("a path");
    let client = Client { address: address.to_owned(), path: format!("/{path}") };
    Served { shared, page, ended, client }
}

impl Client {
    fn send(&self, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.write_all(head.replace('\n', "\r\n").as_bytes()).expect("sent");
        stream
    }

    /// Sends a request to its end. Returns the whole response.
    fn ask(&self, method: &str, rest: &str, fields: &str) -> String {
        let (path, address) = (&self.path, &self.address);
        self.whole(&format!("{method} {path}{rest} HTTP/1.1\nHost: {address}\n{fields}\n"))
    }

    fn whole(&self, head: &str) -> String {
        let mut response = String::new();
        self.send(head).read_to_string(&mut response).expect("a response");
        response
    }

    /// What is answered to who asks for the page; nothing where the connection is closed instead.
    fn answer(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let head = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", self.path, self.address);
        let mut response = String::new();
        // One too many is closed, also before it could say anything.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.read_to_string(&mut response));
        response
    }

    /// Opens the stream of events.
    fn events(&self) -> TcpStream {
        self.send(&format!("GET {}events HTTP/1.1\nHost: {}\n\n", self.path, self.address))
    }
}

/// Reads until the text is there.
fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let (mut read, mut part) = (String::new(), [0; 4096]);
    while !read.contains(text) {
        let count = stream.read(&mut part).expect("more events");
        assert!(count > 0, "never '{text}': {read}");
        read += &String::from_utf8_lossy(&part[..count]);
    }
    read
}

fn begun(users: u32) -> Event {
    let time = Some(TimeOf { spent_us: 1_000_000, left_us_max: Some(9_000_000) });
    Event::StepBegun { users, purpose: Some(Purpose::Fewest { next: Some(2) }), time }
}

#[test]
fn a_page_is_shown_to_who_knows_its_address() {
    let served = serve();
    served.shared.on(&begun(1));
    let page = served.client.ask("GET", "", "");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("Measuring 1 user."), "{page}");
    assert!(page.contains("http:&#x2f;&#x2f;127.0.0.1:1&#x2f;&lt;b&gt;"), "{page}");
    for policy in ["default-src 'none'", "frame-ancestors 'none'", "X-Content-Type-Options: nosniff"] {
        assert!(page.contains(policy), "{page}");
    }
    let address = &served.client.address;
    let other = served.client.whole(&format!("GET / HTTP/1.1\nHost: {address}\n\n"));
    assert!(other.starts_with("HTTP/1.1 404 ") && !other.contains("Measuring"), "{other}");
    let rebound =
        served.client.whole(&format!("GET {} HTTP/1.1\nHost: evil.example\n\n", served.client.path));
    assert!(rebound.starts_with("HTTP/1.1 421 ") && !rebound.contains("Measuring"), "{rebound}");
    assert_eq!(served.client.whole("nonsense\n\n"), "", "what is no request is not answered");
}

#[test]
fn changes_are_streamed_as_they_happen() {
    let served = serve();
    let mut events = served.client.events();
    let first = read_until(&mut events, "event: now");
    assert!(first.contains("text/event-stream"), "{first}");
    served.shared.on(&begun(7));
    read_until(&mut events, "Measuring 7 users.");
    served.shared.say("something <else>");
    read_until(&mut events, "something &lt;else&gt;");
}

#[test]
fn the_sweep_is_ended_by_a_post_of_the_page_alone() {
    let served = serve();
    let foreign = served.client.ask("POST", "end", "Origin: http://evil.example\n");
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    assert!(served.client.ask("GET", "end", "").starts_with("HTTP/1.1 405 "));
    assert!(!served.ended.load(Ordering::Relaxed), "nothing of that ends it");
    let origin = format!("Origin: http://{}\nContent-Length: 0\n", served.client.address);
    let answer = served.client.ask("POST", "end", &origin);
    assert!(answer.starts_with("HTTP/1.1 303 ") && answer.contains("Location: ./"), "{answer}");
    assert!(served.ended.load(Ordering::Relaxed));
    let mut events = served.client.events();
    read_until(&mut events, "Ending with what was measured.");
}

#[test]
fn a_page_that_is_open_is_sent_to_the_report_and_waited_for() {
    let served = serve();
    assert!(served.client.ask("GET", "report", "").starts_with("HTTP/1.1 404 "), "not yet");
    let mut events = served.client.events();
    read_until(&mut events, "event: now");
    let Served { page, client, .. } = served;
    let ending = thread::spawn(move || page.end_with("<!doctype html>the report".into()));
    read_until(&mut events, "event: over");
    let report = client.ask("GET", "report", "");
    assert!(report.ends_with("<!doctype html>the report"), "{report}");
    ending.join().expect("it ends once the report was fetched");
}

#[test]
fn a_page_that_is_open_is_told_why_there_is_no_report() {
    let served = serve();
    let mut events = served.client.events();
    read_until(&mut events, "event: now");
    let ending = thread::spawn(move || served.page.end_without("refused <here>"));
    read_until(&mut events, "refused &lt;here&gt;");
    ending.join().expect("it ends once that was told");
}

#[test]
fn a_page_that_nobody_opened_ends_at_once_and_frees_its_port() {
    let served = serve();
    let address = served.client.address.clone();
    served.page.end_with(String::new());
    // The thread that listened ends a moment later.
    while TcpStream::connect(&address).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_port_that_is_taken_is_told_with_what_to_do() {
    let served = serve();
    let same: Address = served.client.address.parse().expect("an address");
    let error = Page::serve(&served.shared, &same).expect_err("it is taken");
    assert!(matches!(error, ServeError::InUse(_)), "{error}");
    let said = error.to_string();
    assert!(said.contains("in use") && said.contains("127.0.0.1:0"), "{said}");
}

#[test]
fn clients_that_say_nothing_keep_others_away_for_a_while_and_no_longer() {
    let place_is_kept = Duration::from_secs(2);
    let served = served(|shared, address| Page::serve_within(shared, address, place_is_kept));
    let (places, begun) = (0..Page::CONNECTIONS_MAX, Instant::now());
    let silent: Vec<_> =
        places.map(|_| TcpStream::connect(&served.client.address).expect("a connection")).collect();
    let mut answer = served.client.answer();
    // A machine that took so long to connect them may have ended the first by now.
    assert!(answer.is_empty() || begun.elapsed() >= place_is_kept, "all places were taken: {answer}");
    while answer.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "clients that say nothing keep their places");
        thread::sleep(Duration::from_millis(50));
        answer = served.client.answer();
    }
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for mut client in silent {
        client.set_read_timeout(Some(PATIENCE)).expect("a limit");
        assert_eq!(client.read(&mut [0]).expect("its end"), 0, "it is ended without a word");
    }
}
