//! Real processes to observe: this test binary, run again in the role of a server.
#![allow(dead_code, clippy::unwrap_used)] // each test binary uses only a part of this; tests may panic

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

const ROLE: &str = "OBSERVE_TEST_ROLE";

/// A child process that serves a port until dropped.
pub(crate) struct Server {
    child: Child,
    // Kept open so that the child can go on printing.
    _stdout: BufReader<ChildStdout>,
    pub(crate) addr: SocketAddr,
}

impl Server {
    /// Starts this binary's test `child` in a role: see [`run_role`].
    pub(crate) fn start(role: &str) -> Self {
        Self::start_with(Command::new(std::env::current_exe().unwrap()), role)
    }

    /// The same through another program, which gets this binary as its last arguments.
    pub(crate) fn start_with(mut command: Command, role: &str) -> Self {
        command.args(["--exact", "child", "--ignored", "--nocapture"]).env(ROLE, role);
        // Standard error might be a socket to the journal, which would look like a tier behind the server.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let lines = stdout.by_ref().lines();
        let addr =
            lines.map_while(Result::ok).find_map(|line| Some(line.split_once("ADDR=")?.1.parse().unwrap()));
        Self { child, _stdout: stdout, addr: addr.expect("the child prints where it listens") }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to the child's standard input.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Ends the child's standard input, which ends it, and waits for it.
    pub(crate) fn end(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Plays a child's role: the first word says what to do, the second where to listen, the third what to call.
pub(crate) fn run_role() {
    let role = std::env::var(ROLE).expect("run by the other tests");
    let words: Vec<&str> = role.split(' ').collect();
    let listener = match words[0] {
        "listen-again" => bound_again(words[1]),
        _ => TcpListener::bind(words[1]).unwrap(),
    };
    let addr = listener.local_addr().unwrap();
    let announce = move || {
        println!("ADDR={addr}");
        std::io::stdout().flush().unwrap();
    };
    match words[0] {
        "listen" | "listen-again" => serve(&announce),
        "call" => call(words[2], &announce),
        "call-unix" => call_unix(words[2], &announce),
        "listen-unix" => listen_unix(words[2], &announce),
        "call-later" => call_later(&announce),
        "fork" => fork(&announce),
        "send" => send(&listener, &announce),
        "share" => share(&listener, &announce),
        "burn" => serve_beside(burn, &announce),
        "hash" => hash(&announce),
        "queue" => queue(&announce),
        "park" => park(&announce),
        "crowd" => crowd(&announce),
        "sleep" => sleep(&announce),
        "queue-anew" => queue_anew(&announce),
        "churn" => serve_beside(churn, &announce),
        "reap" => serve_beside(spawn_burners, &announce),
        other => panic!("no role {other}"),
    }
    drop(listener);
}

/// Announces where the child listens, and stays until its parent ends it.
fn serve(announce: &dyn Fn()) {
    announce();
    // Ends with the parent, however that ends.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Serves while another thread works.
fn serve_beside(work: fn(), announce: &dyn Fn()) {
    thread::spawn(work);
    serve(announce);
}

/// Serves while a worker process runs, and ends that afterwards.
fn serve_with(mut worker: Child, announce: &dyn Fn()) {
    serve(announce);
    worker.kill().unwrap();
    worker.wait().unwrap();
}

fn call(addr: &str, announce: &dyn Fn()) {
    let call = TcpStream::connect(addr).unwrap();
    serve(announce);
    drop(call);
}

fn call_unix(path: &str, announce: &dyn Fn()) {
    let call = UnixStream::connect(path).unwrap();
    serve(announce);
    drop(call);
}

fn listen_unix(path: &str, announce: &dyn Fn()) {
    let unix = UnixListener::bind(path).unwrap();
    let accepted = thread::spawn(move || (unix.accept(), unix));
    serve(announce);
    drop(accepted);
}

/// Each line on standard input is an address to call; the calls stay open.
fn call_later(announce: &dyn Fn()) {
    announce();
    let lines = std::io::stdin().lines().map_while(Result::ok);
    let calls: Vec<TcpStream> = lines.map(|line| TcpStream::connect(line).unwrap()).collect();
    drop(calls);
}

fn fork(announce: &dyn Fn()) {
    serve_with(Command::new("sleep").arg("30").spawn().unwrap(), announce);
}

fn send(listener: &TcpListener, announce: &dyn Fn()) {
    let listener = listener.try_clone().unwrap();
    thread::spawn(move || send_to_all(&listener));
    serve(announce);
}

/// Shares the listening socket with a worker process.
fn share(listener: &TcpListener, announce: &dyn Fn()) {
    let stdin = Stdio::from(OwnedFd::from(listener.try_clone().unwrap()));
    serve_with(Command::new("sleep").arg("30").stdin(stdin).spawn().unwrap(), announce);
}

fn hash(announce: &dyn Fn()) {
    for name in ["hash-1", "hash-2"] {
        thread::Builder::new().name(name.to_owned()).spawn(burn).unwrap();
    }
    serve(announce);
}

/// Five threads wait for a lock.
fn queue(announce: &dyn Fn()) {
    let mutex = Mutex::new(());
    let held = mutex.lock().unwrap();
    thread::scope(|threads| {
        (0..5).for_each(|_| drop(threads.spawn(|| drop(mutex.lock()))));
        serve(announce);
        drop(held);
    });
}

fn park(announce: &dyn Fn()) {
    (0..5).for_each(|_| drop(thread::spawn(thread::park)));
    serve(announce);
}

/// One thread among thousands uses the processor.
fn crowd(announce: &dyn Fn()) {
    let small = || thread::Builder::new().stack_size(16 << 10);
    // Fewer where the host allows no more.
    let parked = (0..10_000).map_while(|_| small().spawn(thread::park).ok()).count();
    assert!(parked > 1_000, "this host allows {parked} threads");
    thread::Builder::new().name("hash-1".to_owned()).spawn(burn).unwrap();
    serve(announce);
}

fn sleep(announce: &dyn Fn()) {
    (0..5).for_each(|_| drop(thread::spawn(|| thread::sleep(Duration::from_secs(3_600)))));
    serve(announce);
}

/// Five threads wait for a lock, all of them new five times a second.
fn queue_anew(announce: &dyn Fn()) {
    let mutex = Mutex::new(());
    thread::scope(|threads| {
        threads.spawn(|| {
            loop {
                let held = mutex.lock().unwrap();
                let waiting: Vec<_> = (0..5).map(|_| threads.spawn(|| drop(mutex.lock()))).collect();
                thread::sleep(Duration::from_millis(200));
                drop(held);
                waiting.into_iter().for_each(|thread| thread.join().unwrap());
            }
        });
        serve(announce);
        std::process::exit(0);
    });
}

/// Listens at a port that was free a moment ago. The system may have given it to another test meanwhile.
fn bound_again(addr: &str) -> TcpListener {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        match TcpListener::bind(addr) {
            Err(_) if Instant::now() < give_up => thread::sleep(Duration::from_millis(20)),
            bound => return bound.unwrap(),
        }
    }
}

fn burn() {
    let mut sum = 0u64;
    loop {
        sum = std::hint::black_box(sum.wrapping_add(1));
    }
}

fn burn_briefly() {
    (0..500_000u64).fold(0, |sum, next| std::hint::black_box(sum ^ next));
}

/// Short-lived threads that each use a little CPU time.
fn churn() {
    loop {
        thread::spawn(burn_briefly).join().unwrap();
    }
}

/// Sends to each connection in turn until it is closed.
fn send_to_all(listener: &TcpListener) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        while stream.write_all(&[0; 16 << 10]).is_ok() {}
    }
}

/// Short-lived children that each use a little CPU time.
fn spawn_burners() {
    loop {
        Command::new("sh").args(["-c", "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done"]).status().unwrap();
    }
}

/// Whether tests that need root can run. If not, says so, or fails in CI, which promises root.
pub(crate) fn is_root(test: &str) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let uid =
        status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1)?.parse().ok());
    let root = uid == Some(0u32);
    if !root {
        skip(test, "needs root");
    }
    root
}

/// Says that a test was not run, and why. Fails in CI, which promises a host on which it can run.
pub(crate) fn skip(test: &str, why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{test} {why}, and CI has to run it");
    eprintln!("SKIPPED: {test} {why}");
}
