//! Servers on which users wait while nothing is busy: does the verdict name what they wait for?

use crate::common::{
    support::{Place, Server},
    verdict::{HTTP, kind, named, verdict},
};

/// A thread per connection; each takes one mutex for 5 ms: at most 200 requests a second.
const ONE_MUTEX: &str = r#"
mutex = threading.Lock()
def hold():
    with mutex: time.sleep(0.005)
serve(answer, hold)
"#;

/// Accepts every 50 ms what waits by then, at most backlog + 1 = 4 connections: a longer queue would let more in.
const ACCEPTS_IN_BURSTS: &str = r#"
listener = listen(3)
listener.setblocking(False)
while True:
    time.sleep(0.05)
    waiting = []
    while True:
        try: waiting.append(listener.accept()[0])
        except BlockingIOError: break
    for connection in waiting:
        connection.setblocking(True)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()
"#;

#[test]
fn threads_piled_up_on_one_mutex_are_a_lock() {
    let place = Place::new();
    let server = Server::python(&format!("{HTTP}{ONE_MUTEX}"));
    let args = ["-c", "1..64", "-d", "2s", "--connections", "per-request"];
    let Some(run) = named(&place, &server.url("/"), &args) else { return };
    assert_eq!(kind(&run), "lock", "{}", verdict(&run));
    let holder = verdict(&run)["bottleneck"]["holder"].as_str().expect("a holder");
    assert!(holder.starts_with("python3"), "{}", verdict(&run));
    let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
    assert!(max < 202.0, "5 ms each, one at a time: {max}");
}

#[test]
fn a_listen_queue_that_is_too_short_is_the_accept_queue() {
    let place = Place::new();
    let server = Server::python(&format!("{HTTP}{ACCEPTS_IN_BURSTS}"));
    let args = ["-c", "1..32", "-d", "3s", "--connections", "per-request"];
    let Some(run) = named(&place, &server.url("/"), &args) else { return };
    assert_eq!(kind(&run), "accept-queue", "{}", verdict(&run));
    let port = format!("port {}", server.address.port());
    assert_eq!(verdict(&run)["bottleneck"]["holder"], port.as_str(), "{}", verdict(&run));
}
