//! Yardstick: the least a client of an upload sink can do. One thread per user sends the same body again and again and
//! reads each response to its end.
//!
//! Usage: `bare-uploader ADDRESS BODY_BYTES USERS SECONDS`; prints the number of uploads and the bytes of their bodies.

use std::{
    env,
    error::Error,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use bench::response_length;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, address, body, users, seconds] = args.as_slice() else {
        return Err("usage: bare-uploader ADDRESS BODY_BYTES USERS SECONDS".into());
    };
    let (address, body, users): (SocketAddr, usize, u32) = (address.parse()?, body.parse()?, users.parse()?);
    let head = format!("POST /upload HTTP/1.1\r\nHost: {address}\r\nContent-Length: {body}\r\n\r\n");
    let request = [head.into_bytes(), vec![b'x'; body]].concat();
    // All responses are alike.
    let answer = usize::try_from(response_length(address, &request)?)?;
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let uploads = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..users).map(|_| scope.spawn(|| upload(address, &request, answer, end))).collect();
        threads
            .into_iter()
            .map(|user| user.join().map_err(|_| io::Error::other("a user panicked"))?)
            .sum::<io::Result<u64>>()
    })?;
    println!("{uploads} {}", uploads * body as u64);
    Ok(())
}

/// Runs one user to the end. Returns the uploads that were answered.
fn upload(address: SocketAddr, request: &[u8], answer: usize, end: Instant) -> io::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; answer];
    let mut uploads = 0;
    while Instant::now() < end {
        stream.write_all(request)?;
        stream.read_exact(&mut buffer)?;
        uploads += 1;
    }
    Ok(uploads)
}
