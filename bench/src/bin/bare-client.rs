//! Yardstick: the least an HTTP load generator can do. One thread sends fixed bytes, counts bytes, and checks nothing.
//!
//! Usage: `bare-client ADDRESS PATH USERS SECONDS [HEADER]` prints `requests BYTES_IN`; and, to standard error, `all
//! answered REQUESTS` once every user has a response: from then on the server opens no more connections.

use std::{
    env,
    error::Error,
    io::{ErrorKind, Write},
    mem,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use bench::{Poller, request, response_length};
use rustix::net::{RecvFlags, recv};

struct User {
    stream: TcpStream,
    left: u64,
    answered: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, address, path, users, seconds, header @ ..] = args.as_slice() else {
        return Err("usage: bare-client ADDRESS PATH USERS SECONDS [HEADER]".into());
    };
    let address: SocketAddr = address.parse()?;
    let request = request(address, path, header.first().map_or("", String::as_str));
    let length = response_length(address, &request)?;
    let mut poller = Poller::new()?;
    let mut crowd = Vec::new();
    for token in 0..users.parse()? {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        poller.add(&stream, token)?;
        stream.write_all(&request)?;
        crowd.push(User { stream, left: length, answered: false });
    }
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse()?);
    let (mut requests, mut bytes, mut unanswered) = (0_u64, 0_u64, crowd.len());
    // Bodies are discarded in the kernel, as nstar does, without a copy.
    let mut buffer = vec![0; 1 << 20];
    while Instant::now() < end {
        for token in poller.wait()? {
            let user = &mut crowd[usize::try_from(token)?];
            loop {
                match recv(&user.stream, buffer.as_mut_slice(), RecvFlags::TRUNC) {
                    Ok((_, 0)) => return Err("the server closed a connection".into()),
                    Ok((_, count)) => {
                        bytes += count as u64;
                        user.left -= count as u64;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
                if user.left == 0 {
                    requests += 1;
                    user.left = length;
                    if !mem::replace(&mut user.answered, true) {
                        unanswered -= 1;
                        if unanswered == 0 {
                            eprintln!("all answered {requests}");
                        }
                    }
                    user.stream.write_all(&request)?;
                    break;
                }
            }
        }
    }
    println!("{requests} {bytes}");
    Ok(())
}
