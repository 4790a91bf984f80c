//! Without HTTP: bytes until the client closes its side.

use std::{io::Write, net::Shutdown, num::NonZeroUsize};

use rustix::net::sockopt;
use sink::{Options, Protocol};

use crate::support::{MODELS, Sink, eventually, pattern, rest};

fn raw() -> Options {
    let mut options = Options::default();
    options.protocol = Protocol::Raw;
    options.chunk = NonZeroUsize::new(1_024).unwrap();
    options
}

#[test]
fn everything_until_the_client_closes_is_counted() {
    for model in MODELS {
        let sink = Sink::start(model, raw());
        for bytes in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &pattern(2_000_000)] {
            let mut stream = sink.connect();
            stream.write_all(bytes).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(rest(&mut stream), "", "{model}: the server sends nothing");
        }
        assert_eq!((sink.totals.uploads(), sink.totals.upload_bytes()), (3, 2_000_018), "{model}");
        eventually("all is counted", || sink.totals.received_bytes() == 2_000_018);
        assert_eq!(sink.totals.to_string(), "received 2000018 bytes; 3 uploads completed, 0 failed");
    }
}

#[test]
fn a_reset_connection_counts_as_a_failure() {
    for model in MODELS {
        let sink = Sink::start(model, raw());
        let stream = sink.connect();
        sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).unwrap();
        drop(stream);
        eventually("the failure is counted", || sink.totals.failures() == 1);
        assert_eq!(sink.totals.uploads(), 0, "{model}");
    }
}
