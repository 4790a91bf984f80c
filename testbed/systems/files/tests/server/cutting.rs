//! A relay between client and server whose first connection breaks.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

/// The first connection is cut after this many bytes.
const CUT_AFTER: usize = 1_500_000;

/// Relays connections to a server.
pub(crate) struct Cutting {
    pub(crate) address: SocketAddr,
}

impl Cutting {
    /// A relay to this server.
    pub(crate) fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let has_cut = Arc::new(AtomicBool::new(false));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { return };
                let (back, has_cut) =
                    ((server.try_clone().unwrap(), client.try_clone().unwrap()), has_cut.clone());
                thread::spawn(move || forth(client, server, &has_cut));
                thread::spawn(move || {
                    let (mut from, mut to) = back;
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        });
        Self { address }
    }
}

fn forth(mut from: TcpStream, mut to: TcpStream, has_cut: &AtomicBool) {
    let (mut buffer, mut sent) = (vec![0; 16 * 1024], 0);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
        sent += count;
        if sent >= CUT_AFTER && !has_cut.swap(true, SeqCst) {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
