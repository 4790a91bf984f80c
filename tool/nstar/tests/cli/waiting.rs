//! Servers on which users wait while nothing is busy: does the verdict name what they wait for?

use crate::common::{
    support::{Place, Server},
    verdict::{ACCEPTS_IN_BURSTS, HTTP, ONE_MUTEX, is_said, named, verdict},
};

#[test]
fn threads_piled_up_on_one_mutex_are_a_lock() {
    let place = Place::beside_sleepers();
    let server = Server::python(&format!("{HTTP}{ONE_MUTEX}"));
    let args = ["-c", "1..32", "-d", "1s", "--connections", "per-request"];
    let Some(run) = named(&place, &server.url("/"), &args) else { return };
    let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
    assert!(max < 202.0, "5 ms each, one at a time: {max}");
    if !is_said(&run, &["lock"]) {
        return;
    }
    let holder = verdict(&run)["bottleneck"]["holder"].as_str().expect("a holder");
    assert!(holder.starts_with("python3"), "{}", verdict(&run));
}

/// A request takes 6.25 ms on its own, and 5 ms under one mutex: 2.25 at a time, as with two workers or three.
const A_MUTEX_BEHIND_A_DELAY: &str = r#"
mutex = threading.Lock()
def hold():
    time.sleep(0.00625)
    with mutex: time.sleep(0.005)
serve(keep, hold)
"#;

#[test]
fn a_mutex_behind_a_delay_is_told_from_a_pool() {
    let place = Place::beside_sleepers();
    let server = Server::python(&format!("{HTTP}{A_MUTEX_BEHIND_A_DELAY}"));
    let Some(run) = named(&place, &server.url("/"), &["-c", "1..16", "-d", "2s"]) else { return };
    let findings = verdict(&run)["bottleneck"]["findings"].as_array().expect("findings").clone();
    let tried =
        findings.into_iter().find(|seen| seen["kind"] == "contention").expect("users at random moments");
    let log_odds = tried["log_odds"].as_f64().expect("odds");
    assert!(log_odds > -2.2, "said to be served several at a time: {}", verdict(&run));
    if log_odds < 2.2 {
        eprintln!("UNDECIDED: this machine was too busy for the experiment to tell, and it said so: {tried}");
        return;
    }
    is_said(&run, &["lock"]);
}

#[test]
fn a_listen_queue_that_is_too_short_is_the_accept_queue() {
    let place = Place::beside_sleepers();
    let server = Server::python(&format!("{HTTP}{ACCEPTS_IN_BURSTS}"));
    let args = ["-c", "1..32", "-d", "2s", "--connections", "per-request"];
    let Some(run) = named(&place, &server.url("/"), &args) else { return };
    if !is_said(&run, &["accept-queue"]) {
        return;
    }
    let port = format!("port {}", server.address.port());
    assert_eq!(verdict(&run)["bottleneck"]["holder"], port.as_str(), "{}", verdict(&run));
}

/// A thread per connection; each takes one mutex, and holds it for longer the more others wait for it.
const A_MUTEX_HELD_FOR_LONGER: &str = r#"
mutex, waiting = threading.Lock(), [0]
def hold():
    waiting[0] += 1
    with mutex: time.sleep(0.004 + 0.0004 * waiting[0])
    waiting[0] -= 1
serve(keep, hold)
"#;

#[test]
fn a_mutex_held_for_longer_the_more_wait_is_a_lock() {
    let place = Place::beside_sleepers();
    let server = Server::python(&format!("{HTTP}{A_MUTEX_HELD_FOR_LONGER}"));
    let Some(run) = named(&place, &server.url("/"), &["-c", "1..32", "-d", "1s"]) else { return };
    if !is_said(&run, &["lock"]) {
        return;
    }
    let evidence = verdict(&run)["bottleneck"]["findings"].to_string();
    assert!(evidence.contains("fell-with-users"), "{}", verdict(&run));
}

/// A thread per connection; each request takes 40 ms, once it is its turn: every 10 ms.
const A_RATE_THAT_DELAYS: &str = r#"
gate, due = threading.Lock(), [time.monotonic()]
def delay():
    with gate:
        turn = max(time.monotonic(), due[0])
        due[0] = turn + 0.01
    time.sleep(max(0, turn - time.monotonic()))
    time.sleep(0.04)
serve(keep, delay)
"#;

#[test]
fn requests_delayed_beyond_a_rate_are_a_rate_limit_where_threads_are_seen_to_sleep() {
    let place = Place::beside_sleepers();
    let server = Server::python(&format!("{HTTP}{A_RATE_THAT_DELAYS}"));
    let Some(run) = named(&place, &server.url("/"), &["-c", "1..32", "-d", "2s"]) else { return };
    if !is_said(&run, &["rate-limit"]) {
        return;
    }
    let evidence = verdict(&run)["bottleneck"]["findings"].to_string();
    assert!(evidence.contains("more-threads-sleep"), "{}", verdict(&run));
}

/// Lets 100 requests a second through, evenly, and rejects the others at once.
const A_RATE_LIMIT: &str = r#"
gate, last = threading.Lock(), [time.monotonic()]
def limited(connection, before):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while read(connection):
            with gate:
                now = time.monotonic()
                passes = now - last[0] >= 0.01
                if passes: last[0] = max(last[0] + 0.01, now - 0.05)
            if passes: time.sleep(0.001)
            status = b"200 OK" if passes else b"429 Too Many Requests"
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\nok")
    except OSError: pass
    connection.close()
serve(limited, None)
"#;

#[test]
fn requests_rejected_beyond_a_rate_are_a_rate_limit() {
    let place = Place::beside_sleepers();
    let server = Server::python(&format!("{HTTP}{A_RATE_LIMIT}"));
    let Some(run) = named(&place, &server.url("/"), &["-c", "1..32", "-d", "1s"]) else { return };
    is_said(&run, &["rate-limit"]);
    let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
    assert!(max < 106.0, "100 a second, and at most five more in a burst: {max}");
}
