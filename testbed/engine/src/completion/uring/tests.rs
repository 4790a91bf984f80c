//! What is particular to completions: operations that outlive their tasks, and queues and buffers that run out. Both are
//! tiny in tests (see `ring` and `reactor`), so that every server meets its limits.

use std::{
    future::{Future, poll_fn},
    io::{self, Read, Write},
    mem,
    net::{SocketAddr, TcpStream},
    os::{fd::AsFd, unix::net::UnixStream},
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use rustix::{io::Errno, net::sockopt::set_socket_linger};

use super::{Uring, operation::Operation, reactor::Reactor, source::Socket};
use crate::{
    clock::NEVER,
    control::Control,
    error::EngineError,
    implementation::Implementation,
    options::Options,
    server::Server,
    service::{Connection, Factory, Service},
};

/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Acts on the first byte of a connection.
struct Program;

impl Factory for Program {
    type Service<C: Connection> = Self;

    fn make<C: Connection>(&self) -> io::Result<Self> {
        Ok(Self)
    }
}

impl<C: Connection> Service<C> for Program {
    async fn serve(&self, mut connection: C) {
        if !matches!(connection.fill().await, Ok(1..)) {
            return;
        }
        // The peer sees what went wrong.
        let _ = match connection.input().first() {
            Some(b'e') => echo(&mut connection).await,
            Some(b'g') => give_up_midway(&mut connection).await,
            Some(b'd') => send_after_deadline(&mut connection).await,
            Some(b'p') => panic_midway(&mut connection).await,
            _ => sleep_through(&mut connection).await,
        };
    }
}

async fn echo<C: Connection>(connection: &mut C) -> io::Result<()> {
    loop {
        let input = connection.input().to_vec();
        connection.consume(input.len());
        connection.output().extend_from_slice(&input);
        connection.flush().await?;
        if connection.fill().await? == 0 {
            return Ok(());
        }
    }
}

/// More than any socket buffers.
fn fill_output<C: Connection>(connection: &mut C) {
    connection.output().resize(16 << 20, b'g');
}

/// Begins to send, and returns before the kernel is done.
async fn give_up_midway<C: Connection>(connection: &mut C) -> io::Result<()> {
    fill_output(connection);
    begin(connection.flush()).await;
    Ok(())
}

/// Tries to send more after a send was abandoned.
async fn send_after_deadline<C: Connection>(connection: &mut C) -> io::Result<()> {
    fill_output(connection);
    connection.set_deadline(Some(Duration::from_millis(10)));
    let late = connection.flush().await;
    assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
    connection.set_deadline(None);
    connection.output().extend_from_slice(b"in the middle of it");
    assert_eq!(connection.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    Ok(())
}

async fn panic_midway<C: Connection>(connection: &mut C) -> io::Result<()> {
    fill_output(connection);
    begin(connection.flush()).await;
    panic!("on purpose");
}

/// Sleeps while input arrives, then answers how much it was.
async fn sleep_through<C: Connection>(connection: &mut C) -> io::Result<()> {
    connection.sleep(Duration::from_millis(50)).await;
    let mut count = connection.input().len();
    connection.consume(count);
    while connection.fill().await? > 0 {
        count += connection.input().len();
        connection.consume(usize::MAX);
    }
    connection.output().extend_from_slice(count.to_string().as_bytes());
    connection.flush().await
}

/// Polls once.
async fn begin(operation: impl Future) {
    let mut operation = pin!(operation);
    poll_fn(|context| {
        let _ = operation.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

fn start(loops: usize) -> Server {
    let options = Options { loops, ..Options::new(SocketAddr::from(([127, 0, 0, 1], 0))) };
    Uring::start(&options, Program).expect("the server starts")
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.local_addr()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
    stream
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "never came true: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Echoes `text` on every client, all at once.
fn echo_all(clients: &mut [TcpStream], text: &[u8]) {
    for client in &mut *clients {
        client.write_all(text).expect("sent");
    }
    for client in clients {
        let mut back = vec![0; text.len()];
        client.read_exact(&mut back).expect("echoed");
        assert!(back == text);
    }
}

#[test]
fn more_connections_than_buffers_and_places_in_the_queues_are_all_served() {
    let server = start(1);
    let mut clients: Vec<_> = (0..200).map(|_| connect(&server)).collect();
    for round in 0..5 {
        echo_all(&mut clients, format!("echo {round}").as_bytes());
    }
    drop(clients);
    eventually("all are closed", || server.counters().active() == 0);
}

/// Trying all of 10 000 connections at once for a few buffers would fail for nearly all of them, again and again, and
/// take a minute instead of a second.
#[test]
fn a_crowd_that_finds_no_buffers_is_tried_a_few_at_a_time() {
    const CROWD: usize = 100;
    let reactor = Reactor::new(Arc::new(Control::new(Vec::new()))).expect("a ring");
    let mut peers = Vec::new();
    for _ in 0..CROWD {
        let (mut peer, socket) = UnixStream::pair().expect("a pair");
        peer.write_all(b"x").expect("sent");
        peers.push(peer);
        let key = reactor.add_source(Rc::new(Socket::new(socket.into(), false, None)));
        assert!(reactor.wait_to_receive(key, false, NEVER).is_pending());
    }
    let (mut received, mut failed, mut completions) = (0, 0, Vec::new());
    while received < CROWD {
        reactor.feed();
        reactor.ring.borrow_mut().enter(Some(PATIENCE), &mut completions).expect("completions");
        for completion in completions.drain(..) {
            failed += usize::from(completion.result == Err(Errno::NOBUFS));
            let Operation::Socket(key, kind) = completion.operation else { continue };
            received += usize::from(reactor.complete(key, kind, &completion).is_some());
        }
    }
    assert!(failed < 2 * CROWD, "{failed} tries for {CROWD} found no buffer");
}

#[test]
fn long_messages_come_back_whole_through_few_buffers() {
    let server = start(1);
    let text: Vec<u8> = (0..1_000_000).map(|at| b'e' ^ (at % 251) as u8).collect();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut reader = connect(&server);
                let mut writer = reader.try_clone().expect("another handle");
                let mut back = vec![0; text.len()];
                thread::scope(|scope| {
                    scope.spawn(|| writer.write_all(&text).expect("sent"));
                    reader.read_exact(&mut back).expect("echoed");
                });
                assert!(back == text);
            });
        }
    });
}

#[test]
fn input_for_a_busy_task_is_kept_within_bounds_and_not_lost() {
    let server = start(1);
    let text = vec![b's'; 3_000_000];
    let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.write_all(&text).expect("sent");
        client.shutdown(std::net::Shutdown::Write).expect("half-closed");
    }
    for client in &mut clients {
        let mut said = String::new();
        client.read_to_string(&mut said).expect("told");
        assert_eq!(said, "3000000");
    }
}

#[test]
fn a_task_may_abandon_a_send() {
    let server = start(1);
    for request in [b"g", b"d", b"p"] {
        eventually("the one before is closed", || server.counters().active() == 0);
        let before = server.counters().closed();
        let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
        clients.iter_mut().for_each(|client| client.write_all(request).expect("sent"));
        // Nobody reads before this: a reader could take everything while the server is slow to abandon the send.
        eventually("all are closed", || server.counters().closed() == before + 4);
        for client in &mut clients {
            let mut got = Vec::new();
            // Cut off where the kernel was when the task ended.
            let _ = client.read_to_end(&mut got);
            assert!(got.len() < 16 << 20 && got.iter().all(|&byte| byte == b'g'));
        }
        echo_all(&mut [connect(&server)], b"echo");
    }
    assert_eq!(server.counters().panics(), 4);
}

#[test]
fn resets_in_the_middle_of_transfers_free_every_place() {
    let server = start(2);
    for round in 0..5 {
        let mut clients: Vec<_> = (0..40).map(|_| connect(&server)).collect();
        for client in &mut clients {
            client.write_all(&vec![b'e'; 200_000 * round + 1]).expect("sent");
        }
        for client in clients {
            set_socket_linger(client.as_fd(), Some(Duration::ZERO)).expect("set");
        }
        eventually("all are closed", || server.counters().active() == 0);
    }
    echo_all(&mut [connect(&server)], b"echo");
}

#[test]
fn a_server_stops_with_operations_of_every_kind_in_flight() {
    let server = start(2);
    let mut clients: Vec<_> = (0..60).map(|_| connect(&server)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        // Some are idle, some send what nobody reads, some receive while they sleep.
        match number % 3 {
            0 => {}
            1 => client.write_all(&[b'e'; 100]).expect("sent"),
            _ => client.write_all(b"sleep").expect("sent"),
        }
    }
    eventually("all are accepted", || server.counters().active() == 60);
    let counters = std::sync::Arc::clone(server.counters());
    drop(server);
    assert_eq!(counters.active(), 0);
    assert_eq!(counters.panics(), 0);
}

#[test]
fn a_sandbox_that_denies_io_uring_is_named_with_a_remedy() {
    // A filter applies to the thread that sets it and those it starts.
    let denied = thread::spawn(|| {
        deny_io_uring();
        let options = Options { loops: 2, ..Options::new(SocketAddr::from(([127, 0, 0, 1], 0))) };
        Uring::start(&options, Program).map(drop)
    });
    let error = denied.join().expect("no panic").expect_err("denied");
    assert!(matches!(error, EngineError::ModelUnavailable { model: "uring", .. }), "{error}");
    let said = error.to_string();
    assert!(said.starts_with("the model `uring` cannot run here: a sandbox forbids it"), "{said}");
    assert!(said.contains("io_uring_setup") && said.contains("another model"), "{said}");
}

/// Makes io_uring_setup(2) fail for this thread from now on, as the filters of containers do.
fn deny_io_uring() {
    const NUMBER_AT: u32 = mem::offset_of!(libc::seccomp_data, nr) as u32;
    let statement = |code: u32, k| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, NUMBER_AT),
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_io_uring_setup as u32)
        },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: neither call keeps a pointer; the program and its filter live until they return.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(set, "{}", io::Error::last_os_error());
}
