//! A server that runs out of descriptors keeps its connections, and accepts further ones once it can.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Stdio},
    thread,
};

use engine::Model;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::{commands::Commands, common::*};

/// More than the server has descriptors for.
const CLIENTS: usize = 60;
const DESCRIPTORS: u64 = 40;

#[test]
fn a_server_out_of_descriptors_recovers_by_itself() {
    // A process per connection has descriptors of its own, and does not run out of them.
    for model in models().filter(|model| !model.forks()) {
        let mut server = Served::start(model);
        let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| server.connect()).collect();
        // Requests come only now: a model that closes answered connections while others wait might not run out.
        server.wait_until_exhausted();
        for (number, client) in clients.iter_mut().enumerate() {
            client.write_all(format!("number {number}\n").as_bytes()).unwrap();
        }
        // Not all can be open at once, but each is served once earlier ones have closed.
        thread::scope(|scope| {
            for (number, mut client) in clients.into_iter().enumerate() {
                scope
                    .spawn(move || assert_eq!(read_line(&mut client), format!("number {number}"), "{model}"));
            }
        });
        assert_eq!(ask(&mut server.connect(), "hello again"), "hello again", "{model}");
        server.stop();
    }
}

/// The server of this test, in a process of its own because the limit applies to the whole process.
#[test]
#[ignore = "run by the test above"]
fn server_with_few_descriptors() {
    let model = model_to_try();
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) }).unwrap();
    let server = start(model, Commands::new());
    println!("\nlistening {}", server.local_addr());
    eventually("descriptors run out", || server.counters().accept_errors() > 0);
    println!("\nexhausted");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

struct Served {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
    address: SocketAddr,
}

impl Served {
    fn start(model: Model) -> Self {
        let mut process = apart("exhaustion::server_with_few_descriptors", model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server's process");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let address = value(&mut output, "listening ").parse().expect("an address");
        Self { process, output, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
        stream
    }

    /// Waits until the server has failed to accept a client.
    fn wait_until_exhausted(&mut self) {
        value(&mut self.output, "exhausted");
    }

    /// Ends the server.
    fn stop(&mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().expect("its end").success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Already gone if all went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The rest of the next line that begins with `name`.
fn value(output: &mut impl BufRead, name: &str) -> String {
    for line in output.lines() {
        if let Some(value) = line.expect("text").strip_prefix(name) {
            return value.to_owned();
        }
    }
    panic!("the server ended without telling `{name}`");
}
