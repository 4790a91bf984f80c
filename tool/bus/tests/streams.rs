//! Streams over a real bus: what goes in comes out, and whatever happens to the bus or at the other end is told.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../../nstar/tests/common/program.rs"]
mod program;

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bus::{
    Address, Broken, Bus, BusError, Card, Ending, Farewell, GatherError, Login, Member, Membership, Patience,
    Wanted, gather, reach,
};
use nkeys::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::program::{PATIENCE, free_port};

/// A NATS server, stopped when dropped.
struct Server {
    port: u16,
    flags: Vec<String>,
    child: Child,
    folder: TempDir,
}

impl Server {
    /// `None` where it is not installed, which under CI it must be.
    fn start(flags: &[&str]) -> Option<Self> {
        let flags = flags.iter().copied().map(str::to_owned).collect();
        Self::in_folder(TempDir::new().unwrap(), flags)
    }

    fn in_folder(folder: TempDir, flags: Vec<String>) -> Option<Self> {
        let port = free_port();
        let child = run(port, &flags);
        if child.is_none() {
            assert!(std::env::var_os("CI").is_none(), "nats-server is needed: make setup");
            eprintln!("SKIPPED: nats-server is not installed");
        }
        Some(Self { port, flags, child: child?, folder }).inspect(Self::wait)
    }

    fn wait(&self) {
        let deadline = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "it does not listen");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn restart(&mut self) {
        self.stop();
        self.child = run(self.port, &self.flags).unwrap();
        self.wait();
    }

    fn address(&self) -> Address {
        format!("nats://127.0.0.1:{}", self.port).parse().unwrap()
    }

    fn connect(&self) -> Bus {
        Bus::connect(&self.address(), &Login::default(), |_| ()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn run(port: u16, flags: &[String]) -> Option<Child> {
    let mut command = Command::new("nats-server");
    command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
    command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(flags);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn card(version: &str) -> Card {
    Card { host: "far".into(), version: version.into(), observes: false }
}

fn wanted(generators: Option<usize>) -> Wanted {
    Wanted { who: "ann@laptop".into(), version: "1".into(), generators }
}

/// A member that gives every run to this function, for so many runs.
fn join(bus: &Bus, runs: usize, serve: impl Fn(bus::Run) + Send + 'static) -> thread::JoinHandle<()> {
    let membership = Membership::join(bus, &card("1")).unwrap();
    thread::spawn(move || (0..runs).for_each(|_| serve(membership.next_run().unwrap())))
}

/// Sends everything back.
fn echo(run: bus::Run) {
    let (mut reader, mut writer, end) = run.split();
    let mut chunk = [0; 1000];
    while let Ok(read @ 1..) = reader.read(&mut chunk) {
        if writer.write_all(&chunk[..read]).is_err() {
            break;
        }
    }
    end(writer, &Farewell { code: Some(3), said: "done\x1b[2J".into() });
}

fn gathered(bus: &Bus, wanted: &Wanted) -> Result<Vec<Member>, GatherError> {
    let interrupt = AtomicBool::new(false);
    gather(bus, wanted, &Patience::begin(wanted, &interrupt))
}

fn one(bus: &Bus) -> Member {
    gathered(bus, &wanted(Some(1))).unwrap().pop().unwrap()
}

#[test]
fn a_million_bytes_go_there_and_back_and_the_last_words_come() {
    let Some(server) = Server::start(&[]) else { return };
    let (far, near) = (server.connect(), server.connect());
    let member = join(&far, 2, echo);
    for _ in 0..2 {
        let Member { mut reader, mut writer, host, observes, .. } = one(&near);
        assert_eq!((&*host, observes), ("far", false));
        let sent: Vec<u8> = (0..1_000_000u32).map(|number| (number % 251) as u8).collect();
        let expected = sent.clone();
        let sending = thread::spawn(move || writer.write_all(&sent).unwrap());
        let (ending, mut came) = (reader.ending(), Vec::new());
        reader.read_to_end(&mut came).unwrap();
        sending.join().unwrap();
        assert!(came == expected, "{} bytes came", came.len());
        assert_eq!(ending(), Some(Ending::Farewell(Farewell { code: Some(3), said: "done[2J".into() })));
    }
    member.join().unwrap();
}

#[test]
fn one_run_has_a_member_at_a_time_and_it_is_free_again_after() {
    let Some(server) = Server::start(&[]) else { return };
    let (far, near) = (server.connect(), server.connect());
    let nobody = gathered(&near, &wanted(None)).unwrap_err().to_string();
    assert!(nobody.contains("nobody joined"), "{nobody}");
    let member = join(&far, 2, echo);
    let first = one(&near);
    let refused = gathered(&server.connect(), &wanted(None)).unwrap_err().to_string();
    assert!(refused.contains("ann@laptop runs on 1"), "{refused}");
    // Whoever stops reading gives it back.
    drop(first);
    drop(one(&near));
    member.join().unwrap();
    let _other = Membership::join(&far, &card("0.0.9")).unwrap();
    let refused = gathered(&near, &wanted(Some(1))).unwrap_err().to_string();
    assert!(refused.contains("far runs 0.0.9, and this is 1"), "{refused}");
}

/// Both find the members free, and only one can claim them then.
#[test]
fn of_two_runs_that_begin_at_once_the_second_waits_for_the_first() {
    let Some(server) = Server::start(&[]) else { return };
    let far = server.connect();
    let _members = [join(&far, 9, echo), join(&far, 9, echo)];
    let runs = [server.connect(), server.connect()];
    thread::scope(|scope| {
        for near in &runs {
            scope.spawn(move || {
                let claimed = gathered(near, &wanted(Some(2))).unwrap();
                assert_eq!(claimed.len(), 2);
                thread::sleep(Duration::from_millis(500));
            });
        }
    });
}

#[test]
fn a_bus_that_restarts_ends_streams_at_both_ends_and_its_members_are_there_again() {
    let Some(mut server) = Server::start(&[]) else { return };
    let (far, near) = (server.connect(), server.connect());
    let (tell, told) = mpsc::channel();
    let member = join(&far, 2, move |run| {
        let (mut reader, writer, end) = run.split();
        tell.send(reader.read_to_end(&mut Vec::new()).map_err(|error| error.to_string())).unwrap();
        end(writer, &Farewell::default());
    });
    let Member { mut reader, writer: _writer, .. } = one(&near);
    server.restart();
    let broke = "the connection to the bus broke";
    assert_eq!(reader.read(&mut [0; 9]).unwrap_err().to_string(), broke);
    assert_eq!(told.recv_timeout(PATIENCE).unwrap().unwrap_err(), broke);
    drop(one(&server.connect()));
    told.recv_timeout(PATIENCE).unwrap().unwrap_err();
    member.join().unwrap();
}

/// Hears every frame to a member, and can say anything in another's place.
struct Intruder {
    client: async_nats::Client,
    runtime: tokio::runtime::Runtime,
    heard: async_nats::Subscriber,
}

impl Intruder {
    fn at(server: &Server) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (client, heard) = runtime.block_on(async {
            let client = async_nats::connect(server.address().to_string()).await.unwrap();
            let heard = client.subscribe("nstar.run.*.*.down").await.unwrap();
            client.flush().await.unwrap();
            (client, heard)
        });
        Self { client, runtime, heard }
    }

    /// Says this to the run instead of its member, so many times.
    fn say(&mut self, bytes: &[u8], times: usize) {
        use futures_util::StreamExt;
        let Self { client, runtime, heard } = self;
        runtime.block_on(async {
            let subject = heard.next().await.unwrap().subject.replace(".down", ".up");
            for _ in 0..times {
                client.publish(subject.clone(), bytes.to_vec().into()).await.unwrap();
            }
            client.flush().await.unwrap();
        });
    }
}

#[test]
fn lost_messages_lies_and_floods_end_a_stream() {
    let Some(server) = Server::start(&[]) else { return };
    let (far, near) = (server.connect(), server.connect());
    let member = join(&far, 3, |run| {
        let (mut reader, writer, end) = run.split();
        let _ = reader.read_to_end(&mut Vec::new());
        end(writer, &Farewell::default());
    });
    let frame = |number: u64| [&[1][..], &number.to_le_bytes(), &0u64.to_le_bytes()].concat();
    for (said, times) in [(frame(99), 1), (b"hello".to_vec(), 1), (vec![b'x'; 100_000], 500)] {
        let mut intruder = Intruder::at(&server);
        let Member { mut reader, writer: _writer, .. } = one(&near);
        intruder.say(&said, times);
        let ending = reader.ending();
        reader.read(&mut [0; 9]).unwrap_err();
        let Some(Ending::Broken(broken)) = ending() else { panic!("{:?}", ending()) };
        let as_expected = match said.len() {
            17 => matches!(broken, Broken::Lost { came: 99, .. }),
            5 => broken == Broken::Malformed,
            _ => matches!(broken, Broken::Lost { .. } | Broken::Malformed),
        };
        assert!(as_expected, "{broken:?}");
    }
    member.join().unwrap();
}

#[test]
fn a_run_that_waits_for_a_bus_or_for_members_ends_when_the_user_asks_to_stop() {
    let Some(server) = Server::start(&[]) else { return };
    let (wanted, near) = (wanted(Some(1)), server.connect());
    let none: Address = format!("nats://127.0.0.1:{}", free_port()).parse().unwrap();
    // It accepts connections, and says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent: Address = format!("nats://{}", listener.local_addr().unwrap()).parse().unwrap();
    let error_of = |wait: &dyn Fn(&Patience<'_>) -> String| {
        let interrupt = AtomicBool::new(false);
        let patience = Patience::begin(&wanted, &interrupt);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(300));
                interrupt.store(true, Ordering::Relaxed);
            });
            wait(&patience)
        })
    };
    let reaching = |address: &Address| {
        let login = Login::default();
        error_of(&|patience| reach(address, &login, patience).unwrap_err().to_string())
    };
    let began = Instant::now();
    assert_eq!([reaching(&none), reaching(&silent)], ["interrupted"; 2]);
    let nobody = error_of(&|patience| gather(&near, &wanted, patience).unwrap_err().to_string());
    assert!(nobody.contains("interrupted"), "{nobody}");
    assert!(began.elapsed() < Duration::from_secs(25), "none waited for all of its 30 s");
}

#[test]
fn a_bus_that_is_away_is_waited_for_by_who_wants_a_number_of_members() {
    let Some(mut server) = Server::start(&[]) else { return };
    server.stop();
    let (address, login, interrupt) = (server.address(), Login::default(), AtomicBool::new(false));
    let all = Patience::begin(&wanted(None), &interrupt);
    assert!(matches!(reach(&address, &login, &all), Err(BusError::NotReached(..))));
    let some = Patience::begin(&wanted(Some(1)), &interrupt);
    thread::scope(|scope| {
        let reaching = scope.spawn(|| reach(&address, &login, &some).map(|_| ()));
        thread::sleep(Duration::from_millis(500));
        server.restart();
        reaching.join().unwrap().unwrap();
    });
}

#[test]
fn a_bus_that_does_not_let_in_or_is_none_is_told_without_the_password() {
    let Some(server) = Server::start(&["--user", "ann", "--pass", "opensesame"]) else { return };
    let connect = |login: &str| {
        let address: Address = format!("nats://{login}127.0.0.1:{}", server.port).parse().unwrap();
        Bus::connect(&address, &Login::default(), |_| ())
    };
    connect("ann:opensesame@").unwrap();
    for login in ["ann:sesame@", "sesame@", ""] {
        let error = connect(login).unwrap_err();
        assert!(matches!(error, BusError::NotLetIn(_)) && !error.to_string().contains("sesame"), "{error}");
    }
    let none: Address = format!("nats://127.0.0.1:{}", free_port()).parse().unwrap();
    let error = Bus::connect(&none, &Login::default(), |_| ()).unwrap_err().to_string();
    assert!(error.contains("cannot be reached"), "{error}");
    let login = Login { credentials: Some(server.path("none.creds")), ..Login::default() };
    let error = Bus::connect(&none, &login, |_| ()).unwrap_err().to_string();
    assert!(error.contains("none.creds"), "{error}");
}

#[test]
fn tls_needs_a_certificate_that_is_trusted() {
    let folder = TempDir::new().unwrap();
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let paths = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    fs::write(&paths[0], certified.cert.pem()).unwrap();
    fs::write(&paths[1], certified.signing_key.serialize_pem()).unwrap();
    let [cert, key] = paths.map(|path| path.display().to_string());
    let flags = ["--tls", "--tlscert", &cert, "--tlskey", &key].map(str::to_owned).to_vec();
    let Some(server) = Server::in_folder(folder, flags) else { return };
    let address: Address = format!("tls://127.0.0.1:{}", server.port).parse().unwrap();
    let trusting = Login { authorities: Some(cert.into()), ..Login::default() };
    Bus::connect(&address, &trusting, |_| ()).unwrap();
    let error = Bus::connect(&address, &Login::default(), |_| ()).unwrap_err();
    assert!(matches!(error, BusError::Tls(..)), "{error}");
}

/// A token that one key signs for another, as `nsc` makes them.
fn signed(by: &KeyPair, of: &KeyPair, claims: Value) -> String {
    let payload = json!({
        "jti": "none", "iat": 1_600_000_000, "iss": by.public_key(), "sub": of.public_key(), "name": "test", "nats": claims,
    });
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let said = [header, payload].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let signature = URL_SAFE_NO_PAD.encode(by.sign(said.as_bytes()).unwrap());
    format!("{said}.{signature}")
}

#[test]
fn a_file_of_credentials_lets_in_who_has_its_key() {
    let [operator, account, user, other] =
        [KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user(), KeyPair::new_user()];
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
    });
    let of_operator = signed(&operator, &operator, json!({ "type": "operator", "version": 2 }));
    let of_account =
        signed(&operator, &account, json!({ "type": "account", "version": 2, "limits": limits }));
    let of_user = signed(
        &account,
        &user,
        json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 }),
    );
    let folder = TempDir::new().unwrap();
    let configuration = folder.path().join("nats.conf");
    let preload = format!("{{ {}: \"{of_account}\" }}", account.public_key());
    fs::write(
        &configuration,
        format!("operator: \"{of_operator}\"\nresolver: MEMORY\nresolver_preload: {preload}\n"),
    )
    .unwrap();
    let flags = vec!["-c".to_owned(), configuration.display().to_string()];
    let Some(server) = Server::in_folder(folder, flags) else { return };
    let connect = |key: &KeyPair| {
        let seed = key.seed().unwrap();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        fs::write(server.path("user.creds"), text).unwrap();
        let login = Login { credentials: Some(server.path("user.creds")), ..Login::default() };
        Bus::connect(&server.address(), &login, |_| ())
    };
    let far = connect(&user).unwrap();
    let member = join(&far, 1, echo);
    drop(one(&far));
    member.join().unwrap();
    let error = connect(&other).unwrap_err();
    assert!(matches!(error, BusError::NotLetIn(_)), "{error}");
    fs::write(server.path("user.creds"), "nothing").unwrap();
    let login = Login { credentials: Some(server.path("user.creds")), ..Login::default() };
    let error = Bus::connect(&server.address(), &login, |_| ()).unwrap_err().to_string();
    assert!(error.contains("user.creds"), "{error}");
}
