//! https targets: certificates checked or not, sessions, faults.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use analysis::ticks::ErrorKind;
use load::{Connections, LoadError, Plan, ProbeError, Stop, probe};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::common::{OK, Server, one_error, plan, run};

/// Starts a server with an untrusted certificate.
fn serve() -> SocketAddr {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let session = ServerConnection::new(config.clone()).unwrap();
            std::thread::spawn(move || answer(StreamOwned::new(session, socket)));
        }
    });
    address
}

fn answer(stream: StreamOwned<ServerConnection, std::net::TcpStream>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
        if line == "\r\n" && reader.get_mut().write_all(OK).and_then(|()| reader.get_mut().flush()).is_err() {
            return;
        }
        line.clear();
    }
}

fn secure(address: SocketAddr) -> Plan {
    plan(&format!("https://localhost:{}/", address.port()).parse().unwrap())
}

#[test]
fn an_insecure_plan_accepts_any_certificate() {
    let address = serve();
    for connections in [Connections::Kept, Connections::PerRequest] {
        let mut plan = secure(address);
        plan.insecure = true;
        plan.connections = connections;
        let counted = run(&plan, 3, Stop::PerUser(10));
        assert_eq!((counted.completed, counted.errors_total()), (30, 0), "{counted:?}");
    }
}

#[test]
fn an_untrusted_certificate_is_refused() {
    let plan = secure(serve());
    assert_eq!(one_error(&plan), ErrorKind::Tls);
    let refused = probe(&plan).unwrap_err();
    assert!(matches!(refused, LoadError::Probe(ProbeError::Tls { .. })), "{refused}");
    assert!(refused.to_string().contains("-k"), "{refused}");
}

#[test]
fn the_probe_tells_tls_from_plain() {
    let secure_address = serve();
    let plain = Server::start(|mut peer, _| {
        let _ = peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        peer.wait_for_end();
    });
    let mut plan_secure = secure(secure_address);
    plan_secure.insecure = true;
    let report = probe(&plan_secure).unwrap().remove(0);
    assert_eq!((report.status, report.tls.as_deref()), (200, Some("TLSv1_3")));
    let mut wrong = secure(plain.address);
    wrong.insecure = true;
    assert!(matches!(probe(&wrong), Err(LoadError::Probe(ProbeError::NotTls { .. }))));
    assert_eq!(one_error(&wrong), ErrorKind::Tls);
    let wrong = plan(&format!("http://{secure_address}/").parse().unwrap());
    assert!(matches!(probe(&wrong), Err(LoadError::Probe(ProbeError::NeedsTls { .. }))));
}
