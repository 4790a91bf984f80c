//! Yardstick: the least a file server can do. One thread per connection answers whatever arrives with the same head and
//! the same file, by sendfile.
//!
//! Usage: `bare-sender ADDRESS FILE`

use std::{
    env,
    error::Error,
    fs::File,
    io::{self, Read},
    net::{TcpListener, TcpStream},
    thread,
};

use rustix::{
    fs::sendfile,
    net::{SendFlags, send},
};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, address, path] = args.as_slice() else {
        return Err("usage: bare-sender ADDRESS FILE".into());
    };
    let listener = TcpListener::bind(address)?;
    for stream in listener.incoming() {
        let (stream, file) = (stream?, File::open(path)?);
        thread::spawn(move || serve(stream, &file));
    }
    Ok(())
}

fn serve(mut stream: TcpStream, file: &File) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let length = file.metadata()?.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer)? > 0 {
        send(&stream, head.as_bytes(), SendFlags::MORE)?;
        let mut offset = 0;
        while offset < length {
            let left = usize::try_from(length - offset).unwrap_or(usize::MAX);
            if sendfile(&stream, file, Some(&mut offset), left)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    Ok(())
}
