//! The server loop against well-behaved and misbehaving clients.

mod support;

use std::{cell::RefCell, io::Write, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use engine::service::Connection;
use http_io::{
    Credentials, Method, Problem,
    server::{Error, Exchange, Handler, HttpOptions, Prepared, serve},
};
use support::{Fake, Peer, Step, block_on, bytes};
use wire::{Limits, response};

#[derive(Default)]
struct Site {
    failures: RefCell<Vec<String>>,
}

impl<C: Connection> Handler<C> for Site {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        match (exchange.method(), exchange.path()) {
            (_, "/hello") => exchange.respond(200).text("hello"),
            (Method::Post, "/echo") => {
                let body = exchange.read_body(16).await?.to_vec();
                exchange.respond(200).body("application/octet-stream", &body)
            }
            (Method::Post, "/count") => {
                let mut total = 0;
                while let Some(piece) = exchange.next_piece().await? {
                    total += piece.len();
                }
                let told = format!("{} {total}", exchange.header_text("x-name"));
                exchange.respond(200).text(&told)
            }
            (_, "/sum") => exchange.respond(200).json_of(&[1 + 2]),
            (Method::Post, "/named") => {
                exchange.read_body(16).await?;
                let told = [exchange.header("x-name").unwrap_or_default(), b" ", exchange.body()].concat();
                exchange.respond(200).body("text/plain", &told)
            }
            (_, "/who") => match exchange.credentials() {
                Some(Credentials::Basic(basic)) => {
                    let name = basic.name().to_vec();
                    exchange.respond(200).body("text/plain", &name)
                }
                Some(Credentials::Bearer(_)) => exchange.respond(200).text("somebody"),
                None => exchange.respond(200).text("nobody"),
            },
            (_, "/unread") => exchange.respond(200).text("did not look"),
            (_, "/empty") => exchange.respond(204).empty(),
            (_, "/injected") => exchange.respond(200).header("X", "a\r\nSet-Cookie: b").text("never"),
            (_, "/silent") => Ok(()),
            (_, "/abandoned") => {
                drop(exchange.respond(200).header("X", "y"));
                Ok(())
            }
            (_, "/twice") => {
                exchange.respond(200).text("once")?;
                exchange.respond(200).text("again")
            }
            (_, "/prepared") => {
                exchange.send_prepared(&Prepared::new(200, 4).header("ETag", "\"x\"")?, b"body").await
            }
            (_, "/file") => exchange.respond(200).file(&numbers(), 2, 5).await,
            (_, "/short") => exchange.respond(200).file(&numbers(), 2, 50).await,
            (_, "/chunks") => {
                let mut chunks = exchange.respond(200).chunked()?;
                chunks.write(b"one").await?;
                chunks.write(b"").await?;
                chunks.write(b"two").await?;
                chunks.finish();
                Ok(())
            }
            (_, "/pieces") => {
                let mut chunks = exchange.respond(200).chunked()?;
                for _ in 0..16 {
                    chunks.write(&[b'p'; 64 << 10]).await?;
                }
                chunks.finish();
                Ok(())
            }
            (_, "/broken") => {
                exchange.respond(200).chunked()?.write(b"one").await?;
                Err(Problem::new(500, "the rest is lost").into())
            }
            (_, "/denied") => {
                Err(Problem::new(401, "who are you?").header("WWW-Authenticate", "Basic").into())
            }
            _ => Err(Problem::new(404, "no such page").hint("try /hello").into()),
        }
    }

    fn failed(&self, _peer: SocketAddr, error: &Error) {
        self.failures.borrow_mut().push(error.to_string());
    }
}

trait HeaderText {
    fn header_text(&self, name: &str) -> String;
}

impl<C: Connection> HeaderText for Exchange<'_, C> {
    fn header_text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.header(name).unwrap_or(b"nobody")).into_owned()
    }
}

fn numbers() -> Arc<std::fs::File> {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(b"0123456789").expect("written");
    Arc::new(file)
}

struct Served {
    peer: Rc<RefCell<Peer>>,
    failures: Vec<String>,
}

/// A response as the peer received it.
#[derive(Debug, PartialEq)]
struct Got {
    status: u16,
    closes: bool,
    body: String,
    head: String,
}

fn serve_to(fake: Fake) -> Served {
    let options = HttpOptions {
        limits: Limits { head_bytes: 512, request_line_bytes: 128, body_bytes: 64, ..Limits::default() },
        drain_bytes: 100,
        ..HttpOptions::default()
    };
    let (site, peer) = (Site::default(), fake.peer.clone());
    block_on(serve(fake, &site, &options));
    assert!(peer.borrow().closed);
    Served { peer, failures: site.failures.into_inner() }
}

fn serve_steps(steps: impl IntoIterator<Item = Step>) -> Served {
    serve_to(Fake::new(steps))
}

impl Served {
    /// Splits everything that the peer received into the responses to these methods.
    fn answers(&self, asked: &[Method]) -> Vec<Got> {
        let received = self.peer.borrow().received.clone();
        let mut rest = &received[..];
        let mut answers = Vec::new();
        for &method in asked {
            let head =
                response::parse(rest, method, &Limits::default()).expect("HTTP").expect("a whole head");
            let (head_bytes, after) = rest.split_at(head.len);
            let (body, after) = take_body(head.framing, after);
            answers.push(Got {
                status: head.status,
                closes: !head.keep_alive,
                body: String::from_utf8(body).expect("text"),
                head: String::from_utf8(head_bytes.to_vec()).expect("text"),
            });
            rest = after;
        }
        assert_eq!(rest, b"", "more was sent than asked for");
        answers
    }

    fn only_answer(&self) -> Got {
        self.answers(&[Method::Get]).remove(0)
    }

    fn statuses(&self, count: usize) -> Vec<u16> {
        self.answers(&vec![Method::Get; count]).iter().map(|got| got.status).collect()
    }

    fn lingered(&self) -> bool {
        self.peer.borrow().write_closed
    }
}

fn take_body(framing: wire::Framing, mut rest: &[u8]) -> (Vec<u8>, &[u8]) {
    use wire::body::{Decoder, Event};
    let mut decoder = Decoder::new(framing, &Limits::default()).expect("a sane length");
    let mut body = Vec::new();
    loop {
        match decoder.next(rest).expect("a readable body") {
            Event::Framing(count) => rest = &rest[count..],
            Event::Data(count) => {
                body.extend_from_slice(&rest[..count]);
                decoder.advance(count as u64);
                rest = &rest[count..];
            }
            Event::NeedMore => decoder.close().expect("a complete body"),
            Event::End => return (body, rest),
        }
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn post(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nX-Name: me\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn answers_and_keeps_the_connection() {
    let served = serve_steps([bytes(&get("/hello")), bytes(&get("/nowhere"))]);
    let answers = served.answers(&[Method::Get, Method::Get]);
    assert_eq!((answers[0].status, answers[0].body.as_str(), answers[0].closes), (200, "hello", false));
    assert!(answers[0].head.contains("\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n"));
    assert!(answers[0].head.contains("\r\nDate: ") && answers[0].head.contains(" GMT\r\n"));
    assert_eq!(answers[1].status, 404);
    assert_eq!(answers[1].body, "{\"error\":\"no such page\",\"hint\":\"try /hello\"}\n");
    assert!(!answers[1].closes);
    assert!(!served.lingered());
}

#[test]
fn pipelined_requests_are_answered_in_turn_and_sent_together() {
    let stream = [get("/hello"), post("/echo", "abc"), get("/empty"), get("/file"), get("/hello")].concat();
    let served = serve_steps([bytes(&stream)]);
    let answers = served.answers(&[Method::Get; 5]);
    let bodies: Vec<_> = answers.iter().map(|got| got.body.as_str()).collect();
    assert_eq!(bodies, ["hello", "abc", "", "23456", "hello"]);
    // The file goes out together with everything held back before it.
    assert_eq!(served.peer.borrow().flushes, 2);
}

#[test]
fn the_answer_does_not_depend_on_how_the_bytes_are_cut() {
    let chunked = "POST /count HTTP/1.1\r\nHost: a\r\nX-Name: me\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: u\r\n\r\n";
    let stream = [get("/hello"), post("/count", "abcdef"), chunked.to_owned(), get("/empty")].concat();
    let expected = ["hello", "me 6", "me 7", ""];
    for cut in 0..=stream.len() {
        let (head, tail) = stream.split_at(cut);
        let pieces = [head, tail].into_iter().filter(|piece| !piece.is_empty()).map(bytes);
        let answers = serve_steps(pieces).answers(&[Method::Get; 4]);
        assert_eq!(answers.iter().map(|got| got.body.as_str()).collect::<Vec<_>>(), expected, "cut at {cut}");
    }
    let one_by_one = stream.bytes().map(|byte| Step::Bytes(vec![byte]));
    let answers = serve_steps(one_by_one).answers(&[Method::Get; 4]);
    assert_eq!(answers.iter().map(|got| got.body.as_str()).collect::<Vec<_>>(), expected);
}

#[test]
fn a_slow_sender_is_told_and_an_idle_one_is_not() {
    for (steps, status) in [
        (vec![bytes("GET / HT"), Step::Stall], Some(408)),
        (
            vec![bytes("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"), Step::Stall],
            Some(408),
        ),
        (vec![Step::Stall], None),
        (vec![Step::Reset], None),
    ] {
        let served = serve_steps(steps);
        match status {
            Some(status) => {
                let got = served.only_answer();
                assert_eq!((got.status, got.closes, served.lingered()), (status, true, true));
            }
            None => assert!(served.peer.borrow().received.is_empty()),
        }
    }
}

#[test]
fn what_is_not_a_request_is_refused_and_nothing_behind_it_is_served() {
    let long_header = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(600));
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(200));
    for (request, status) in [
        ("nonsense\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 400),
        (&long_header, 431),
        (&long_target, 414),
    ] {
        let served = serve_steps([bytes(&[request, &get("/hello")].concat()), bytes(&get("/hello"))]);
        let got = served.only_answer();
        assert_eq!((got.status, got.closes, served.lingered()), (status, true, true), "{request}");
        assert_eq!(served.failures.len(), 1);
    }
}

#[test]
fn earlier_answers_come_before_a_refusal() {
    assert_eq!(serve_steps([bytes(&(get("/hello") + "rubbish\r\n\r\n"))]).statuses(2), [200, 400]);
}

#[test]
fn headers_outlive_the_reading_of_the_body() {
    let stream = [post("/named", "abc"), get("/hello"), post("/named", "")].concat();
    let answers = serve_steps([bytes(&stream)]).answers(&[Method::Get; 3]);
    assert_eq!(answers.iter().map(|got| got.body.as_str()).collect::<Vec<_>>(), ["me abc", "hello", "me "]);
}

#[test]
fn credentials_are_read_only_where_there_is_no_doubt() {
    let (basic, bearer) =
        ("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n", "Authorization: Bearer abc\r\n");
    for (headers, who) in [
        (basic.to_owned(), "Aladdin"),
        (bearer.to_owned(), "somebody"),
        (String::new(), "nobody"),
        ("Authorization: Digest x\r\n".to_owned(), "nobody"),
        (basic.to_owned() + bearer, "nobody"),
    ] {
        let request = format!("GET /who HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
        assert_eq!(serve_steps([bytes(&request)]).only_answer().body, who, "{headers}");
    }
}

#[test]
fn a_body_beyond_its_limit_is_refused() {
    let announced = post("/echo", &"x".repeat(17));
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   8\r\nxxxxxxxx\r\n9\r\nxxxxxxxxx\r\n0\r\n\r\n";
    let servers_own = post("/count", &"x".repeat(65));
    for request in [announced.as_str(), chunked, &servers_own] {
        let served = serve_steps([bytes(request), bytes(&get("/hello"))]);
        let got = served.only_answer();
        assert_eq!((got.status, got.closes, served.lingered()), (413, true, true), "{request}");
    }
}

#[test]
fn broken_chunks_and_bodies_cut_short_are_refused() {
    let broken = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
    assert_eq!(serve_steps([bytes(broken)]).only_answer().status, 400);
    let cut = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab";
    assert_eq!(serve_steps([bytes(cut), Step::Eof]).only_answer().status, 400);
    assert_eq!(serve_steps([bytes("GET /hel"), Step::Eof]).only_answer().status, 400);
    assert!(serve_steps([bytes(cut), Step::Reset]).peer.borrow().received.is_empty());
}

#[test]
fn a_half_closed_client_gets_its_answers() {
    let served = serve_steps([bytes(&[get("/hello"), get("/chunks")].concat()), Step::Eof]);
    assert_eq!(served.statuses(2), [200, 200]);
}

#[test]
fn the_body_is_asked_for_only_when_it_is_wanted() {
    let head = |path: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    };
    let wanted = serve_steps([
        bytes(&head("/echo")),
        Step::Received("HTTP/1.1 100 Continue\r\n\r\n"),
        bytes("abc"),
        bytes(&get("/hello")),
    ]);
    let answers = wanted.answers(&[Method::Post; 3]);
    assert_eq!(answers.iter().map(|got| got.status).collect::<Vec<_>>(), [100, 200, 200]);
    assert_eq!(answers[1].body, "abc");

    let unwanted = serve_steps([bytes(&head("/unread")), Step::Received("did not look"), bytes("abc")]);
    let got = unwanted.only_answer();
    assert_eq!((got.status, got.closes, unwanted.lingered()), (200, true, true));

    let sent_anyway = serve_steps([bytes(&(head("/echo") + "abc"))]);
    assert_eq!(sent_anyway.only_answer().body, "abc");
}

#[test]
fn an_unread_body_is_read_away_if_it_is_short() {
    let short = serve_steps([bytes(&post("/unread", &"x".repeat(50))), bytes(&get("/hello"))]);
    assert_eq!(short.statuses(2), [200, 200]);
    let long = serve_steps([bytes(&post("/unread", &"x".repeat(101))), bytes(&get("/hello"))]);
    assert!(long.only_answer().closes && long.lingered());
    let chunks = format!(
        "POST /unread HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n{}",
        "x".repeat(101)
    );
    let endless = serve_steps([bytes(&chunks), bytes(&get("/hello"))]);
    assert!(endless.only_answer().status == 200 && endless.lingered());
}

#[test]
fn head_and_bodyless_statuses_send_no_body() {
    let head = "HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\nHEAD /file HTTP/1.1\r\nHost: a\r\n\r\n\
                HEAD /chunks HTTP/1.1\r\nHost: a\r\n\r\nHEAD /prepared HTTP/1.1\r\nHost: a\r\n\r\n";
    let answers = serve_steps([bytes(&(head.to_owned() + &get("/empty")))]).answers(&[
        Method::Head,
        Method::Head,
        Method::Head,
        Method::Head,
        Method::Get,
    ]);
    assert!(answers[0].head.contains("Content-Length: 5\r\n"));
    assert!(answers[1].head.contains("Content-Length: 5\r\n"));
    assert!(answers[2].head.contains("Transfer-Encoding: chunked\r\n"));
    assert!(answers[3].head.contains("Content-Length: 4\r\n"));
    assert!(!answers[4].head.contains("Content-Length"));
}

#[test]
fn the_end_of_the_connection_is_announced() {
    let close = "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert!(serve_steps([bytes(&(close.to_owned() + &get("/hello")))]).only_answer().closes);
    assert!(serve_steps([bytes("GET /hello HTTP/1.0\r\n\r\n")]).only_answer().closes);
    let kept = serve_steps([bytes(&"GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".repeat(2))]);
    let answers = kept.answers(&[Method::Get; 2]);
    assert!(answers.iter().all(|got| !got.closes && got.head.contains("Connection: keep-alive\r\n")));
}

#[test]
fn a_draining_server_finishes_the_request_in_hand() {
    let mut fake = Fake::new([bytes(&get("/hello")), bytes(&get("/hello"))]);
    fake.draining = true;
    assert!(serve_to(fake).peer.borrow().received.is_empty(), "idle when draining began");
    let upload = "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    for steps in [
        vec![bytes(&get("/hello"))],
        vec![bytes("GET /hello HTTP/1.1\r\n"), bytes("Host: a\r\n\r\n"), bytes(&get("/hello"))],
        vec![bytes(upload), Step::Received("100 Continue"), bytes("a"), bytes("bc"), bytes(&get("/hello"))],
    ] {
        let mut fake = Fake::new(steps);
        block_on(fake.fill()).unwrap();
        fake.draining = true;
        let served = serve_to(fake);
        let answers = if served.peer.borrow().received.starts_with(b"HTTP/1.1 100") { 2 } else { 1 };
        let last = served.answers(&vec![Method::Get; answers]).pop().unwrap();
        assert!(last.status == 200 && last.closes);
    }
}

#[test]
fn bodies_of_unknown_length() {
    let served = serve_steps([bytes(&(get("/chunks") + &get("/hello")))]);
    assert_eq!(served.answers(&[Method::Get; 2])[0].body, "onetwo");
    let old = serve_steps([bytes("GET /chunks HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")]).only_answer();
    assert!(old.closes && old.body == "onetwo" && !old.head.contains("chunked"));
    let broken = serve_steps([bytes(&(get("/broken") + &get("/hello")))]);
    assert!(broken.peer.borrow().received.ends_with(b"\r\n3\r\none\r\n"), "the last chunk must not come");
}

/// The least is 256 KiB in 30 s, and each piece has 64 KiB.
#[test]
fn the_pieces_of_a_body_share_one_pace() {
    for (seconds, whole) in [(7, true), (8, false), (20, false)] {
        let fake = Fake::new([bytes(&get("/pieces"))]);
        fake.peer.borrow_mut().takes = Duration::from_secs(seconds);
        let served = serve_to(fake);
        let received = served.peer.borrow().received.clone();
        assert_eq!(received.ends_with(b"\r\n0\r\n\r\n"), whole, "{seconds} s a piece");
        assert_eq!(served.failures.is_empty(), whole, "{seconds} s a piece");
        assert!(whole || received.len() < 4 * (64 << 10), "{seconds} s a piece: it had no more time");
    }
}

#[test]
fn a_file_that_turns_out_shorter_ends_the_connection() {
    let served = serve_steps([bytes(&(get("/short") + &get("/hello")))]);
    assert!(served.peer.borrow().received.ends_with(b"Content-Length: 50\r\n\r\n"));
    assert_eq!(served.failures.len(), 1);
}

#[test]
fn a_handlers_mistakes_do_not_reach_the_wire() {
    for path in ["/injected", "/silent", "/abandoned"] {
        let served = serve_steps([bytes(&(get(path) + &get("/hello")))]);
        let answers = served.answers(&[Method::Get; 2]);
        assert_eq!((answers[0].status, answers[1].status), (500, 200), "{path}");
        assert!(!answers[0].head.contains("Set-Cookie"));
        assert_eq!(served.failures.len(), 1);
    }
    let twice = serve_steps([bytes(&(get("/twice") + &get("/hello")))]);
    assert_eq!(twice.answers(&[Method::Get; 2])[0].body, "once");
}

#[test]
fn a_value_is_sent_as_json() {
    let got = serve_steps([bytes(&get("/sum"))]).only_answer();
    assert_eq!((got.status, got.body.as_str()), (200, "[3]"));
}

#[test]
fn problems_carry_their_headers() {
    let got = serve_steps([bytes(&get("/denied"))]).only_answer();
    assert_eq!((got.status, got.closes), (401, false));
    assert!(got.head.contains("WWW-Authenticate: Basic\r\n"));
}

#[test]
fn a_prepared_head_gets_its_date_and_its_body() {
    let got = serve_steps([bytes(&get("/prepared"))]).only_answer();
    assert_eq!((got.status, got.body.as_str()), (200, "body"));
    assert!(got.head.contains("ETag: \"x\"\r\n") && got.head.contains("Date: "));
}

#[test]
fn a_client_that_is_gone_ends_the_connection_quietly() {
    let fake = Fake::new([bytes(&get("/hello")), bytes(&get("/hello"))]);
    fake.peer.borrow_mut().gone = true;
    assert!(serve_to(fake).peer.borrow().received.is_empty());
}
