//! Clients that hold on to what they are given, a few of each kind at once, against the shipped limits and time-outs.
//! `bench hostile` measures what larger numbers of them cost others.

use crate::{
    client::{Client, get, request},
    content::{LARGE, content},
    models::every_model,
    server::{Served, Setup},
};

/// Clients of each kind. All kinds together hold fewer than the workers of any model.
const EACH: usize = 8;

/// A way to hold on to a connection: begins it on the client with this number.
type Attack = fn(&mut Client, usize);

const ATTACKS: [Attack; 5] = [idle, slow_head, slow_body, one_byte_chunks, slow_reader];

fn idle(_: &mut Client, _: usize) {}

fn slow_head(client: &mut Client, _: usize) {
    client.send("GET /files/1000 HTTP/1.1\r\nHost: localhost\r\nX-");
}

fn slow_body(client: &mut Client, number: usize) {
    let head = request("PUT", &format!("/files/slow-{number}"), "Content-Length: 1000000\r\n");
    client.send(head + "x");
}

fn one_byte_chunks(client: &mut Client, number: usize) {
    let head = request("PUT", &format!("/files/chunks-{number}"), "Transfer-Encoding: chunked\r\n");
    client.send(head + &"1\r\nx\r\n".repeat(1_000));
}

fn slow_reader(client: &mut Client, _: usize) {
    client.send(get(&format!("/files/{LARGE}"), ""));
}

#[test]
fn others_are_served_beside_hostile_clients_of_every_kind() {
    every_model(|model| {
        let server = Setup::files(model, &[1_000, LARGE]).with("--open-uploads").start();
        let mut earlier = server.connect();
        assert!(earlier.get("/files/1000", "").body == content(1_000), "{model}");
        let mut hostile = Vec::new();
        for attack in ATTACKS {
            hostile.extend((0..EACH).map(|number| begun(&server, attack, number)));
        }
        for _ in 0..5 {
            assert!(earlier.get("/files/1000", "").body == content(1_000), "{model}: a client from before");
            let mut later = server.connect();
            let answer = later.get("/files/1000", "Connection: close\r\n");
            assert!(answer.body == content(1_000), "{model}: a client that came later");
        }
        drop(hostile);
        server.assert_well();
        server.stop();
    });
}

fn begun(server: &Served, attack: Attack, number: usize) -> Client {
    let mut client = server.connect();
    attack(&mut client, number);
    client
}
