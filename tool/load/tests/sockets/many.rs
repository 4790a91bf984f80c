//! Many users.

use std::io::{Read, Write};
use std::net::TcpListener;

use load::{Generator, LoadError, Stop, limits};

use crate::common::{OK, Server, plan, run};

#[test]
fn a_thousand_users_on_two_threads() {
    let server = Server::answering(OK);
    let mut plan = server.plan();
    plan.threads = 2;
    let counted = run(&plan, 1_000, Stop::PerUser(3));
    assert_eq!((counted.completed, counted.errors_total()), (3_000, 0), "{counted:?}");
    assert_eq!(server.accepted(), 1_000);
}

#[test]
fn too_many_users_are_refused_with_the_command_that_raises_the_limit() {
    let allowed = limits::users_allowed(1);
    let Some(too_many) = allowed.checked_add(1) else { return };
    let mut generator = Generator::start(&Server::answering(OK).plan()).unwrap();
    let refused = generator.set_users(too_many).unwrap_err();
    assert!(matches!(&refused, LoadError::Limit(limit) if limit.allowed == allowed));
    assert!(refused.to_string().contains("ulimit -n"), "{refused}");
}

/// With the server in the same process, 10 000 users take 20 000 descriptors. The server polls non-blocking sockets in
/// turn. Run with `cargo test -p load -- --ignored ten_thousand`.
#[test]
#[ignore = "needs 20 000 descriptors and several seconds"]
fn ten_thousand_users_on_two_threads() {
    let _ = limits::users_allowed(2);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let mut peers = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            while let Ok((peer, _)) = listener.accept() {
                peer.set_nonblocking(true).unwrap();
                peers.push(peer);
            }
            peers.retain_mut(|peer| match peer.read(&mut buffer) {
                Ok(0) => false,
                Ok(_) => peer.write_all(OK).is_ok(),
                Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
            });
        }
    });
    let mut plan = plan(&url);
    plan.threads = 2;
    let counted = run(&plan, 9_900, Stop::PerUser(2));
    assert_eq!((counted.completed, counted.errors_total()), (19_800, 0), "{counted:?}");
}
