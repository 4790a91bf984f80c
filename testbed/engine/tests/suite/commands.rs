//! A service with one-line requests, each of which exercises one capability of a connection.

use std::{
    fs::File,
    future::pending,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use engine::{offload, service::Connection};
use futures_channel::oneshot;

use crate::common::{Program, line, pattern, reply};

/// Answers `COMMAND ARGUMENT` lines until the peer or the server ends the connection.
pub(crate) struct Commands {
    pool: offload::Pool,
    parked: Mutex<Vec<oneshot::Sender<String>>>,
    file: Option<Arc<File>>,
}

impl Commands {
    pub(crate) fn new() -> Self {
        let pool = offload::Pool::new("offload", 2, 8);
        Self { pool, parked: Mutex::default(), file: None }
    }

    pub(crate) fn with_file(file: File) -> Self {
        Self { file: Some(Arc::new(file)), ..Self::new() }
    }
}

impl Program for Commands {
    async fn serve<C: Connection>(&self, mut connection: C) {
        while let Some(request) = line(&mut connection).await {
            let (command, argument) = request.split_once(' ').unwrap_or((&request, ""));
            let done = match command {
                "file" => self.file(&mut connection, argument).await,
                "borrowed" => send_borrowed(&mut connection, argument).await,
                "send" => send(&mut connection, argument).await,
                "flood" => flood(&mut connection).await,
                "until" => until(&mut connection, argument).await,
                _ => {
                    let answer = self.answer(&connection, command, argument).await;
                    reply(&mut connection, &answer).await
                }
            };
            if done.is_err() {
                return;
            }
        }
    }
}

impl Commands {
    async fn answer<C: Connection>(&self, connection: &C, command: &str, argument: &str) -> String {
        match command {
            "thread" => format!("{:?} of {}", thread::current().id(), std::process::id()),
            "sleep" => {
                connection.sleep(milliseconds(argument)).await;
                "slept".to_owned()
            }
            "panic" => panic!("on purpose"),
            "forever" => pending().await,
            "offload" => {
                let number: u64 = argument.parse().expect("a number");
                let squared = self.pool.run(move || number * number).await;
                squared.map_or_else(|error| error.to_string(), |number| number.to_string())
            }
            "ask" => ask(connection, argument).await.unwrap_or_else(|error| format!("failed: {error}")),
            "park" => self.park().await,
            "unpark" => self.unpark(argument),
            _ => format!("{command} {argument}"),
        }
    }

    /// Waits for an `unpark` on another connection.
    async fn park(&self) -> String {
        let (sender, receiver) = oneshot::channel();
        self.parked.lock().expect("no panic").push(sender);
        receiver.await.expect("an answer")
    }

    fn unpark(&self, message: &str) -> String {
        let parked = self.parked.lock().expect("no panic").pop();
        parked
            .map_or("nobody", |sender| sender.send(message.to_owned()).map_or("gone", |()| "told"))
            .to_owned()
    }

    /// `HEAD OFFSET LENGTH`: sends the head, then the range of the file.
    async fn file<C: Connection>(&self, connection: &mut C, argument: &str) -> io::Result<()> {
        let mut words = argument.split(' ');
        let head = words.next().unwrap_or_default();
        let mut number = || words.next().unwrap_or_default().parse::<u64>().expect("a number");
        let (offset, length) = (number(), number());
        connection.output().extend_from_slice(head.as_bytes());
        let file = self.file.as_ref().expect("a file");
        connection.send_file(file, offset, length).await
    }
}

/// `HEAD LENGTH`: sends the head, then that many bytes of the pattern from where they lie.
async fn send_borrowed<C: Connection>(connection: &mut C, argument: &str) -> io::Result<()> {
    let (head, length) = argument.split_once(' ').expect("a head and a length");
    connection.output().extend_from_slice(head.as_bytes());
    connection.send_bytes(&pattern(length.parse().expect("a length"))).await
}

/// Sends `count` bytes of the pattern.
async fn send<C: Connection>(connection: &mut C, count: &str) -> io::Result<()> {
    connection.output().extend_from_slice(&pattern(count.parse().expect("a number")));
    connection.flush().await
}

/// Sends more than any socket buffers, quickly made.
async fn flood<C: Connection>(connection: &mut C) -> io::Result<()> {
    connection.output().resize(64 << 20, b'x');
    connection.flush().await
}

/// Answers that it waits, then how the wait for input ended, which takes at most `limit` milliseconds.
async fn until<C: Connection>(connection: &mut C, limit: &str) -> io::Result<()> {
    reply(connection, "waiting").await?;
    connection.set_deadline(Some(milliseconds(limit)));
    let outcome = connection.fill().await;
    connection.set_deadline(None);
    match outcome {
        Ok(count) => {
            let _ = line(connection).await;
            reply(connection, &format!("{count} bytes")).await
        }
        Err(error) => reply(connection, &format!("{:?}", error.kind())).await,
    }
}

/// `ADDRESS LINE`: asks another server twice over one connection, and returns both answers.
async fn ask<C: Connection>(connection: &C, argument: &str) -> io::Result<String> {
    let (address, question) = argument.split_once(' ').expect("an address and a line");
    let address: SocketAddr = address.parse().expect("an address");
    let mut upstream = connection.connect(address).await?;
    let mut answers = Vec::new();
    for _ in 0..2 {
        if upstream.is_stale() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        reply(&mut upstream, question).await?;
        answers.extend(line(&mut upstream).await);
    }
    Ok(answers.join(" and "))
}

fn milliseconds(text: &str) -> Duration {
    Duration::from_millis(text.parse().expect("a number"))
}
