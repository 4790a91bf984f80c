//! Bytes arrive complete, whatever their number and pace.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    os::fd::AsFd,
    thread,
    time::Duration,
};

use engine::service::Connection;

use crate::{commands::Commands, common::*};

/// Sends back whatever it receives, and closes its side after the peer has.
struct Echo;

impl Program for Echo {
    async fn serve<C: Connection>(&self, mut connection: C) {
        while let Ok(1..) = connection.fill().await {
            let input = connection.input().to_vec();
            connection.consume(input.len());
            connection.output().extend_from_slice(&input);
            if connection.flush().await.is_err() {
                return;
            }
        }
        let _ = connection.shutdown_write();
    }
}

/// Reads at most the given number of bytes at a time, and answers how many came at most at once, and how many in all.
struct Pieces(usize);

impl Program for Pieces {
    async fn serve<C: Connection>(&self, mut connection: C) {
        connection.read_at_most(self.0);
        let (mut largest, mut all) = (0, 0);
        while let Ok(count @ 1..) = connection.fill().await {
            assert_eq!(connection.input().len(), count, "the count is what came");
            connection.consume(count);
            (largest, all) = (largest.max(count), all + count);
        }
        let _ = reply(&mut connection, &format!("{largest} {all}")).await;
    }
}

#[test]
fn no_read_brings_more_than_its_limit() {
    for model in models() {
        for (asked, largest, sent) in [(1_000, 1_000, 50_000), (0, 1, 2_000)] {
            let server = start(model, Pieces(asked));
            let mut client = connect(&server);
            client.write_all(&pattern(sent)).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(read_line(&mut client), format!("{largest} {sent}"), "{model}");
        }
    }
}

#[test]
fn small_messages_come_back() {
    for model in models() {
        let server = start(model, Echo);
        let mut client = connect(&server);
        for number in 0..100 {
            let said = format!("message {number}");
            assert_eq!(ask(&mut client, &said), said, "{model}");
        }
    }
}

#[test]
fn megabytes_come_back_whole_and_the_half_close_is_seen() {
    for model in models() {
        let server = start(model, Echo);
        let mut reader = connect(&server);
        let mut writer = reader.try_clone().unwrap();
        let sender = thread::spawn(move || {
            writer.write_all(&pattern(5_000_000)).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let back = rest(&mut reader);
        sender.join().unwrap();
        assert!(back == pattern(5_000_000), "{model}: {} bytes came back", back.len());
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut client = connect(&server);
        // Enough for a task to use up its turn several times.
        let requests: String = (0..1_000).map(|number| format!("number {number}\n")).collect();
        client.write_all(requests.as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(String::from_utf8(rest(&mut client)).unwrap(), requests, "{model}");
    }
}

#[test]
fn a_request_in_single_bytes_is_answered() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut client = connect(&server);
        client.set_nodelay(true).unwrap();
        for byte in b"one by one\n" {
            client.write_all(&[*byte]).unwrap();
        }
        assert_eq!(read_line(&mut client), "one by one", "{model}");
    }
}

#[test]
fn a_slow_reader_gets_everything_while_others_are_served() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut slow = connect(&server);
        let mut other = connect(&server);
        slow.write_all(b"send 8000000\n").unwrap();
        let mut got = vec![0; 10_000];
        slow.read_exact(&mut got).unwrap();
        assert_eq!(ask(&mut other, "still here"), "still here", "{model}");
        slow.shutdown(Shutdown::Write).unwrap();
        got.extend(rest(&mut slow));
        assert!(got == pattern(8_000_000), "{model}: {} bytes", got.len());
    }
}

#[test]
fn a_reset_in_the_middle_of_a_transfer_ends_that_connection_only() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut other = connect(&server);
        // It has been accepted by now, so that there are two.
        assert_eq!(ask(&mut other, "hello you"), "hello you", "{model}");
        let mut broken = connect(&server);
        broken.write_all(b"flood\n").unwrap();
        broken.read_exact(&mut [0; 1_000]).unwrap();
        reset(broken);
        eventually("one connection is left", || server.counters().active() == 1);
        assert_eq!(ask(&mut other, "still here"), "still here", "{model}");
        assert_eq!(server.counters().closed(), 1, "{model}");
    }
}

#[test]
fn a_reset_while_the_server_waits_for_input_is_seen() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut broken = connect(&server);
        assert_eq!(ask(&mut broken, "hello you"), "hello you");
        reset(broken);
        eventually("no connection is left", || server.counters().active() == 0);
    }
}

#[test]
fn borrowed_bytes_follow_their_head_to_a_slow_reader() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut client = connect(&server);
        client.write_all(b"borrowed head: 8000000\nborrowed empty: 0\nstill here\n").unwrap();
        let mut got = vec![0; 10_000];
        client.read_exact(&mut got).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        got.extend(rest(&mut client));
        let expected = [b"head:", &pattern(8_000_000)[..], b"empty:still here\n"].concat();
        assert!(got == expected, "{model}: {} bytes", got.len());
    }
}

/// Closes with a reset.
fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream.as_fd(), Some(Duration::ZERO)).expect("set");
}

/// A model that learns of a connection only after the kernel has accepted it could miss these.
#[test]
fn connections_reset_at_once_are_counted_like_all_others() {
    for model in models() {
        let server = start(model, Commands::new());
        for _ in 0..50 {
            reset(connect(&server));
        }
        eventually("all came", || server.counters().accepted() == 50);
        eventually("all went", || server.counters().active() == 0);
        assert_eq!(ask(&mut connect(&server), "hello you"), "hello you", "{model}");
    }
}

#[test]
fn ranges_of_a_file_follow_their_head() {
    for model in models() {
        let mut file = tempfile::tempfile().unwrap();
        let content = pattern(6_000_000);
        file.write_all(&content).unwrap();
        let server = start(model, Commands::with_file(file));
        for (offset, length) in [(0, 6_000_000), (1, 1_000), (5_999_999, 1), (3_000_000, 3_000_000), (7, 0)] {
            let mut client = connect(&server);
            client.write_all(format!("file head: {offset} {length}\n").as_bytes()).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let got = rest(&mut client);
            let expected = [b"head:", &content[offset..offset + length]].concat();
            assert!(got == expected, "{model}: {length} from {offset} gave {} bytes", got.len());
        }
    }
}

#[test]
fn a_file_shorter_than_promised_ends_the_connection() {
    for model in models() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"short").unwrap();
        let server = start(model, Commands::with_file(file));
        let mut client = connect(&server);
        client.write_all(b"file head: 0 9\nnever answered\n").unwrap();
        assert_eq!(rest(&mut client), b"head:short", "{model}");
    }
}
