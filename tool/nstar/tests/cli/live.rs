//! A sweep as it goes on: on a terminal of its own, which may change or go away, and in a browser.

use std::fs;

use crate::common::support::{Outcome, Place, Server, tool_program};
use crate::terminal::TERMINAL;

#[allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "shared with the tests of the testbed")]
#[path = "../common/browser.rs"]
mod browser;

/// Sleeps 5 ms for each request, whoever asks.
const SLEEPER: &str = r#"
import socketserver, sys, time
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(65536):
            time.sleep(0.005)
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    request_queue_size = 256
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// What a terminal was given, and how the sweep ended.
struct OnTerminal {
    outcome: Outcome,
    screen: String,
    stdout: String,
}

/// Sweeps a server on a terminal, where `action` is done once `text` is seen.
fn on_terminal(place: &Place, (action, text): (&str, &str), variables: &[&str], args: &[&str]) -> OnTerminal {
    let server = Server::python(SLEEPER);
    let (url, nstar) = (server.url("/"), tool_program().display().to_string());
    let usual = ["env", "-u", "NO_COLOR", "TERM=xterm-256color", "LC_ALL=C.UTF-8"];
    let words = ["python3", "-c", TERMINAL, action, text].into_iter().chain(usual);
    let words = words.chain(variables.iter().copied()).chain([nstar.as_str(), "sweep", &url]);
    let outcome = place.call(words.chain(args.iter().copied())).run().has_not_panicked();
    let read = |name: &str| String::from_utf8_lossy(&fs::read(place.path(name)).expect(name)).into_owned();
    OnTerminal { outcome, screen: read("screen"), stdout: read("stdout") }
}

/// Whether a sweep has an answer, or says that it has none that can be relied on.
fn is_answered(outcome: &Outcome) -> bool {
    matches!(outcome.status.code(), Some(0 | 4))
}

/// The rows that the cursor was sent to.
fn rows(screen: &str) -> Vec<u32> {
    let sent = screen.split("\x1b[").filter_map(|rest| rest.split_once(';'));
    sent.filter_map(|(row, _)| row.parse().ok()).collect()
}

#[test]
fn a_terminal_has_the_view_and_gets_itself_back() {
    let place = Place::beside_others();
    let seen = on_terminal(&place, ("nothing", "?"), &[], &["-c", "1,2,4", "-d", "1s"]);
    assert!(is_answered(&seen.outcome), "{}", seen.outcome);
    assert_eq!(seen.screen.matches(ENTER).count(), 1, "{:?}", seen.screen);
    let (_, after) = seen.screen.split_once(ENTER).expect("a screen of its own");
    let (view, after) = after.split_once(LEAVE).expect("given back");
    // Only what changes is drawn, so most words arrive in pieces: these are new when they come.
    for words in ["Measuring 1 user.", "requests", "Busiest", "Ctrl-C ends"] {
        assert!(view.contains(words), "no '{words}' in {view:?}");
    }
    assert!(rows(view).iter().all(|row| *row <= 24), "{view:?}");
    assert!(!after.contains('\x1b'), "{after:?}");
    assert!(seen.stdout.contains("req/s"), "the answer is on stdout: {}", seen.stdout);
}

#[test]
fn a_terminal_that_grows_is_filled() {
    let place = Place::beside_others();
    let seen = on_terminal(&place, ("resize", "Measuring"), &[], &["-c", "1,2,4", "-d", "1s"]);
    assert!(is_answered(&seen.outcome), "{}", seen.outcome);
    assert!(rows(&seen.screen).contains(&40), "the last row is used: {:?}", seen.screen);
}

#[test]
fn a_terminal_that_goes_away_does_not_end_the_sweep() {
    let place = Place::beside_others();
    let seen = on_terminal(&place, ("hang up", "Measuring"), &[], &["-c", "1,2,4", "-d", "1s"]);
    assert!(is_answered(&seen.outcome), "{}", seen.outcome);
    assert_eq!(place.run_file()["steps"].as_array().map(Vec::len), Some(3));
    assert!(seen.stdout.contains("req/s"), "{}", seen.stdout);
}

#[test]
fn colours_and_a_terminal_without_a_cursor_are_the_callers_choice() {
    let place = Place::beside_others();
    let colourless = on_terminal(&place, ("nothing", "?"), &["NO_COLOR=1"], &["-c", "1,2", "-d", "500ms"]);
    let view = colourless.screen.split(LEAVE).next().unwrap_or_default();
    let looks = view.split("\x1b[").filter_map(|rest| rest.split_once(|c: char| c.is_ascii_alphabetic()));
    let painted = looks.filter(|(code, _)| view.contains(&format!("\x1b[{code}m")) && *code != "0").count();
    assert_eq!(painted, 0, "{view:?}");
    let dumb = on_terminal(&place, ("nothing", "?"), &["TERM=dumb"], &["-c", "1,2", "-d", "500ms"]);
    assert!(!dumb.screen.contains('\x1b') && dumb.screen.contains("2 users"), "{:?}", dumb.screen);
}

#[test]
fn an_interrupt_ends_the_view_and_the_sweep() {
    for action in ["interrupt", "interrupt twice"] {
        let place = Place::beside_others();
        let seen = on_terminal(&place, (action, "Measuring"), &[], &["-c", "1,2,4,8", "-d", "2s"]);
        let outcome = seen.outcome.exits(130);
        assert!(seen.screen.contains(LEAVE), "{action}: {outcome}{:?}", seen.screen);
        let (_, after) = seen.screen.rsplit_once(LEAVE).expect("given back");
        assert!(!after.contains('\x1b'), "{action}: {after:?}");
    }
}

#[test]
fn addresses_that_a_page_is_not_served_on_are_mistakes() {
    let place = Place::beside_others();
    let url = "http://127.0.0.1:1/";
    let sweep =
        |args: &[&str]| place.nstar(["sweep", url].into_iter().chain(args.iter().copied())).run().exits(2);
    sweep(&["--ui", "0.0.0.0:0"]).complains("--ui-network");
    sweep(&["--ui", "example.com"]).complains("127.0.0.1:7070");
    sweep(&["--ui-network"]).complains("--ui");
    place.nstar(["sweep", "--ui", url]).run().exits(2).complains("put --ui behind");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    sweep(&["--ui", &address]).complains("in use, perhaps by another nstar");
}

#[test]
fn a_browser_shows_the_sweep_ends_it_and_opens_its_report() {
    let place = Place::beside_others();
    let server = Server::python(SLEEPER);
    let mut sweep = place.nstar(["sweep", &server.url("/"), "-c", "1..64", "--ui", "127.0.0.1:0"]).start();
    let said = sweep.wait_for_stderr("page: ");
    let url = said.lines().find_map(|line| line.strip_prefix("page: ")).expect("an address").to_owned();
    let Some(mut browser) = browser::Browser::open(&url) else {
        sweep.signal("INT");
        sweep.finish().exits(130);
        return;
    };
    browser.wait("document.querySelector('#now').innerText.includes('Measuring')");
    browser.wait("document.querySelectorAll('#figures .chart.wide .curve.main circle').length >= 2");
    browser.wait("document.querySelectorAll('#busiest tbody tr').length > 0");
    assert_eq!(browser.value("document.querySelector('#lost').hidden"), true);
    browser.fits_a_phone();
    browser.click("#end button");
    browser.arrive(&format!("{url}report"));
    browser.wait("document.querySelector('.brand').innerText.includes('capacity report')");
    assert_eq!(browser.errors, [""; 0]);
    let outcome = sweep.finish().has_not_panicked();
    assert!(is_answered(&outcome), "{outcome}");
    let run = place.run_file();
    assert!(run["steps"].as_array().is_some_and(|steps| steps.len() >= 2), "{run}");
    assert!(run["warnings"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "interrupted")));
}
