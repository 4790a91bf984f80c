//! More connections than are served at one time, or than there are descriptors for.

use engine::Model;

use crate::{
    client::{Client, get},
    content::content,
    descriptors,
    models::{Crowd, every_model},
    server::{Served, Setup},
};

const BUSY: usize = 50;

#[test]
fn idle_connections_are_kept_while_others_are_busy() {
    if !descriptors::are_enough_or_skip("a crowd of idle connections", 1_200) {
        return;
    }
    every_model(|model| {
        let crowd = Crowd::of(model);
        let server = Setup::files(model, &[1_000, 300_000]).with(crowd.flags).start();
        let mut idle: Vec<_> = (0..crowd.connections - BUSY).map(|_| server.connect()).collect();
        let mut busy: Vec<_> = (0..BUSY).map(|_| server.connect()).collect();
        for round in 0..20 {
            let length = if round % 5 == 0 { 300_000 } else { 1_000 };
            busy.iter_mut().for_each(|client| client.send(get(&format!("/files/{length}"), "")));
            for client in &mut busy {
                assert!(client.response().body == content(length), "{model}: round {round}");
            }
        }
        // No connection was forgotten, or closed in favour of another.
        for client in idle.iter_mut().chain(&mut busy) {
            assert!(client.get("/files/1000", "").body == content(1_000), "{model}");
        }
        let open = busy[0].get("/metrics", "").metric("nstar_files_connections");
        assert_eq!(open, crowd.connections as u64, "{model}");
        drop((idle, busy));
        server.wait_for_metric("nstar_files_connections", 1);
        server.stop();
    });
}

/// On models whose connections have no thread or process of their own. Rarely needed state must not be part of every
/// connection: it once took 6 KB each.
#[test]
fn an_idle_connection_takes_at_most_4_kb_of_memory() {
    const FIRST: usize = 200;
    const MORE: usize = 1_000;
    // The state of TLS is not counted.
    let encrypted = std::env::var_os("NSTAR_TLS").is_some();
    if encrypted || !descriptors::are_enough_or_skip("a crowd of idle connections", 1_400) {
        return;
    }
    every_model(|model| {
        if !matches!(model, Model::Poll | Model::Epoll | Model::Uring) {
            return;
        }
        let server = Setup::files(model, &[1_000]).with("--loops 1").start();
        let mut idle = Vec::new();
        let [before, after] = [FIRST, FIRST + MORE].map(|count| {
            idle.resize_with(count, || answered_once(&server));
            server.user_memory_bytes()
        });
        let each = after.saturating_sub(before) / MORE;
        assert!(each <= 4_096, "{model}: {each} bytes");
        server.stop();
    });
}

fn answered_once(server: &Served) -> Client {
    let mut client = server.connect();
    assert!(client.get("/files/1000", "").body == content(1_000));
    client
}

#[test]
fn out_of_descriptors_a_server_waits_and_recovers_by_itself() {
    const CLIENTS: usize = 150;
    every_model(|model| {
        let mut server = Setup::files(model, &[1_000]).under("prlimit --nofile=64:64").start();
        server.assert_well();
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
        let run_out = Crowd::of(model).run_out_of_descriptors;
        if run_out {
            server.wait_until_it_says("cannot accept connections for now");
        }
        clients.iter_mut().for_each(|client| client.send(get("/files/1000", "Connection: close\r\n")));
        for client in &mut clients {
            // The file may need a descriptor too; then its client gets 503.
            let answer = client.response();
            let served = answer.status == 200 && answer.body == content(1_000);
            assert!(served || answer.status == 503, "{model}: {}", answer.head);
        }
        drop(clients);
        assert!(server.connect().get("/files/1000", "").body == content(1_000), "{model}");
        assert_eq!(server.metric("nstar_files_accept_errors_total") > 0, run_out, "{model}");
        server.stop();
    });
}

/// With descriptor 1 024, select(2) would write beyond its sets.
#[test]
fn what_select_cannot_watch_is_turned_away_and_the_others_are_served() {
    if !descriptors::are_enough_or_skip("more connections than select can watch", 1_200) {
        return;
    }
    let server = Setup::files("select".parse().unwrap(), &[1_000]).start();
    let mut clients: Vec<_> = (0..1_200).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| {
        // A refused connection may have been closed already.
        let _ = client.try_send(get("/files/1000", ""));
    });
    let mut served: Vec<Client> = Vec::new();
    for mut client in clients {
        if client.is_answered() {
            assert!(client.response().body == content(1_000));
            served.push(client);
        }
    }
    assert!((1_000..1_024).contains(&served.len()), "{} were served", served.len());
    let refused = served[0].get("/metrics", "").metric("nstar_files_connections_refused_total");
    assert_eq!(refused as usize, 1_200 - served.len());
    drop(served);
    server.assert_well();
    server.stop().complains("closed unserved").complains("1024");
}
