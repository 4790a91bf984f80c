//! Yardstick: the least an HTTP server can do. One thread answers whatever arrives with the same bytes.
//!
//! Usage: `bare-responder ADDRESS BODY_BYTES [STEPS]`; with STEPS it computes so much before each response.

use std::{
    collections::HashMap,
    env,
    error::Error,
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
};

use bench::{Poller, work};

const LISTENER: u64 = u64::MAX;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, address, body, steps @ ..] = args.as_slice() else {
        return Err("usage: bare-responder ADDRESS BODY_BYTES [STEPS]".into());
    };
    let body: usize = body.parse()?;
    let steps = steps.first().map_or(Ok(0), |steps| steps.parse::<u64>())?;
    // ab speaks HTTP/1.0 and keeps a connection only if the server says so.
    let mut response =
        format!("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: {body}\r\n\r\n").into_bytes();
    response.resize(response.len() + body, b'x');
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let mut poller = Poller::new()?;
    poller.add(&listener, LISTENER)?;
    let mut streams: HashMap<u64, TcpStream> = HashMap::new();
    let mut next = 0;
    let mut buffer = vec![0; 16 << 10];
    loop {
        let ready: Vec<u64> = poller.wait()?.collect();
        for token in ready {
            if token == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    poller.add(&stream, next)?;
                    streams.insert(next, stream);
                    next += 1;
                }
            } else if let Some(stream) = streams.get_mut(&token) {
                let open = match stream.read(&mut buffer) {
                    Ok(0) => false,
                    Ok(_) => {
                        work(steps);
                        stream.write_all(&response).is_ok()
                    }
                    Err(error) => error.kind() == ErrorKind::WouldBlock,
                };
                if !open {
                    streams.remove(&token);
                }
            }
        }
    }
}
