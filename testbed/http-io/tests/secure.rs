//! Requests over TLS: which servers are accepted, and time-outs.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use engine::{
    Counters, Handshake, Model, Options, Server,
    service::{Connection, Factory},
};
use http_io::{
    Method, Problem,
    client::{Client, ClientOptions, Request, Trust, Upstream},
    server::{Error, Exchange, Handler, Http, HttpOptions, Secured},
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, SanType, date_time_ymd};
use tempfile::TempDir;
use tls::Identity;

/// Forwards to an upstream server as the given peer, if there is one, or responds itself.
#[derive(Clone)]
struct Tier {
    behind: Option<(SocketAddr, String, PathBuf)>,
}

struct Asking<C>(Option<Client<C>>);

impl<C: Connection> Handler<C> for Asking<C> {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let Some(behind) = &self.0 else { return exchange.respond(200).text("hello") };
        let asked = behind.send(exchange.connection(), &Request::new(Method::Get, "/")).await;
        let answer = asked.map_err(|error| Problem::new(503, error.to_string()))?;
        let (kept, length) = (behind.idle(), answer.body().len());
        exchange.respond(answer.status()).text(&format!("{length} bytes, {kept} kept"))
    }
}

impl Factory for Tier {
    type Service<C: Connection> = Http<Asking<C>>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let client = self.behind.as_ref().map(|(to, name, ca)| {
            let peer = Trust::of_file(ca).and_then(|trust| trust.peer(name)).map_err(io::Error::other)?;
            Ok::<_, io::Error>(Client::new(Upstream::secure(*to, peer), ClientOptions::default()))
        });
        Ok(Http::new(Asking(client.transpose()?), HttpOptions::default()))
    }
}

fn options() -> Options {
    Options { loops: 1, ..Options::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))) }
}

/// A certificate for `localhost` and 127.0.0.1 with its key, changed by `with`.
fn pair(folder: &TempDir, name: &str, with: impl FnOnce(&mut CertificateParams)) -> (PathBuf, PathBuf) {
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
    with(&mut params);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let paths = (folder.path().join(format!("{name}.pem")), folder.path().join(format!("{name}.key")));
    fs::write(&paths.0, certificate.pem()).expect("a file");
    fs::write(&paths.1, key.serialize_pem()).expect("a file");
    paths
}

fn secured(model: Model, pair: &(PathBuf, PathBuf), patience: Duration) -> (Server, Arc<Counters>) {
    let identity = Identity::load(&pair.0, &pair.1).expect("a pair");
    let counters = Arc::<Counters>::default();
    let patience = HttpOptions { head_timeout: patience, ..HttpOptions::default() };
    let factory = Secured::new(Tier { behind: None }, identity, patience, Arc::clone(&counters));
    (engine::start(model, &options(), factory).expect("a server"), counters)
}

/// The response of a server that forwards to `behind` under this name, trusting `ca`.
fn asked(model: Model, behind: SocketAddr, name: &str, ca: &Path) -> String {
    let tier = Tier { behind: Some((behind, name.to_owned(), ca.to_path_buf())) };
    let front = engine::start(model, &options(), tier).expect("a server");
    let mut answer = String::new();
    for closing in ["", "Connection: close\r\n"] {
        let mut stream = TcpStream::connect(front.local_addr()).expect("connected");
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{closing}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        answer.clear();
        stream.read_to_string(&mut answer).expect("an answer");
    }
    answer
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn another_tier_is_asked_in_private_and_its_connection_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = pair(&folder, "good", |_| ());
    for &model in Model::ALL {
        let (behind, counters) = secured(model, &good, LONG);
        for name in ["localhost", "127.0.0.1"] {
            let answer = asked(model, behind.local_addr(), name, &good.0);
            assert!(answer.contains("200 OK") && answer.contains("5 bytes, 1 kept"), "{model}: {answer}");
        }
        assert!(counters.handshakes(Handshake::Full) >= 2, "{model}");
    }
}

#[test]
fn whoever_is_not_the_one_meant_is_not_asked_and_the_reason_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = pair(&folder, "good", |_| ());
    let other = pair(&folder, "other", |_| ());
    let late = pair(&folder, "late", |params| params.not_after = date_time_ymd(2002, 1, 1));
    let authority = pair(&folder, "ca", |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    for model in [Model::Threads, Model::Epoll, Model::Uring] {
        for (shown, name, believed, said) in [
            (&good, "localhost", &other, "is not trusted here"),
            (&good, "example.org", &good, "not for example.org"),
            (&late, "localhost", &late, "has expired"),
            (&authority, "localhost", &authority, "CA:TRUE"),
        ] {
            let (behind, counters) = secured(model, shown, LONG);
            let answer = asked(model, behind.local_addr(), name, &believed.0);
            assert!(answer.contains("503 ") && answer.contains(said), "{model}: {answer}");
            assert_eq!(counters.handshakes(Handshake::Full), 0, "{model}");
        }
        let plain = engine::start(model, &options(), Tier { behind: None }).expect("a server");
        let answer = asked(model, plain.local_addr(), "localhost", &good.0);
        assert!(answer.contains("503 ") && answer.contains("does not speak TLS"), "{model}: {answer}");
    }
}

#[test]
fn a_handshake_that_never_ends_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = pair(&folder, "good", |_| ());
    for &model in Model::ALL {
        let (server, counters) = secured(model, &good, Duration::from_millis(50));
        // Nothing, and the beginning of a record.
        for said in [&b""[..], &[22, 3, 1, 2, 0, 1]] {
            let mut stream = TcpStream::connect(server.local_addr()).expect("connected");
            stream.set_read_timeout(Some(LONG)).expect("a timeout");
            stream.write_all(said).expect("sent");
            let mut answer = Vec::new();
            // A reset, because of unread input, is an end too.
            let _ = stream
                .read_to_end(&mut answer)
                .map_err(|error| assert_eq!(error.kind(), io::ErrorKind::ConnectionReset));
        }
        while counters.handshakes(Handshake::Failed) < 2 {
            std::thread::yield_now();
        }
        drop(server);
    }
}
