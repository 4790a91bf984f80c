//! Calls to another tier.

use std::{
    cell::RefCell,
    io,
    net::{SocketAddr, TcpListener, TcpStream},
};

use engine::{
    Model, Options,
    service::{Connection, Factory, Service},
};

use crate::{commands::Commands, common::*};

#[test]
fn another_tier_is_asked_over_a_kept_connection() {
    for model in models() {
        let back = start(model, Commands::new());
        let front = start(model, Commands::new());
        let mut client = connect(&front);
        let question = format!("ask {} sleep 1", back.local_addr());
        for _ in 0..3 {
            assert_eq!(ask(&mut client, &question), "slept and slept", "{model}");
        }
        assert_eq!(back.counters().accepted(), 3, "{model}");
    }
}

#[test]
fn a_tier_that_is_down_or_hangs_up_fails_only_the_request() {
    // A port that a client has: nobody listens there, and no test beside this one gets it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let away = taken.local_addr().unwrap();
    for model in models() {
        let front = start(model, Commands::new());
        let mut client = connect(&front);
        let answer = ask(&mut client, &format!("ask {away} x"));
        assert!(answer.starts_with("failed: Connection refused"), "{model}: {answer}");
        let back = start(model, Commands::new());
        let answer = ask(&mut client, &format!("ask {} panic", back.local_addr()));
        assert!(answer.starts_with("failed: ") || answer.is_empty(), "{model}: {answer}");
        assert_eq!(ask(&mut client, "still here"), "still here", "{model}");
    }
}

/// Forwards each line to another server, over connections that are kept for later requests.
struct Gateway {
    to: SocketAddr,
}

struct Kept<C> {
    to: SocketAddr,
    idle: RefCell<Vec<C>>,
}

impl Factory for Gateway {
    type Service<C: Connection> = Kept<C>;

    fn make<C: Connection>(&self) -> io::Result<Kept<C>> {
        Ok(Kept { to: self.to, idle: RefCell::default() })
    }
}

impl<C: Connection> Service<C> for Kept<C> {
    async fn serve(&self, mut connection: C) {
        while let Some(request) = line(&mut connection).await {
            let answer = self.ask(&connection, &request).await;
            let answer = answer.unwrap_or_else(|error| format!("failed: {error}"));
            if reply(&mut connection, &answer).await.is_err() {
                return;
            }
        }
    }
}

impl<C: Connection> Kept<C> {
    async fn ask(&self, connection: &C, request: &str) -> io::Result<String> {
        let kept = self.idle.borrow_mut().pop().and_then(|mut kept| (!kept.is_stale()).then_some(kept));
        let mut upstream = match kept {
            Some(kept) => kept,
            None => connection.connect(self.to).await?,
        };
        reply(&mut upstream, request).await?;
        let answer = line(&mut upstream).await.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.idle.borrow_mut().push(upstream);
        Ok(answer)
    }
}

#[test]
fn a_kept_connection_serves_the_next_peer_of_its_service() {
    for model in models() {
        let back = start(model, Commands::new());
        let one_loop = Options { loops: 1, workers: 1, ..options() };
        let front = engine::start(model, &one_loop, Gateway { to: back.local_addr() }).unwrap();
        for number in 0..3 {
            let mut client = connect(&front);
            for _ in 0..3 {
                let request = format!("number {number}");
                assert_eq!(ask(&mut client, &request), request, "{model}");
            }
        }
        let services = if matches!(model, Model::Threads | Model::Processes) { 3 } else { 1 };
        assert_eq!(back.counters().accepted(), services, "{model}");
    }
}

#[test]
fn a_kept_connection_that_broke_is_replaced() {
    for model in models() {
        let back = start(model, Commands::new());
        let again = Options { listen: back.local_addr(), ..options() };
        let front = engine::start(model, &options(), Gateway { to: back.local_addr() }).unwrap();
        let mut client = connect(&front);
        assert_eq!(ask(&mut client, "hello you"), "hello you", "{model}");
        drop(back);
        assert!(ask(&mut client, "hello nobody").starts_with("failed: Connection refused"), "{model}");
        let back = start_with(model, &again, Commands::new());
        assert_eq!(ask(&mut client, "hello again"), "hello again", "{model}");
        assert_eq!(back.counters().accepted(), 1, "{model}");
    }
}
