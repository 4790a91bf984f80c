//! Both ends prove keys: which servers are accepted, and what a service learns about its clients.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{io, net::SocketAddr, path::Path, sync::Arc};

use engine::{
    Model, Options,
    service::{Connection, Factory},
};
use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Insecurity, Request, Trust, Upstream},
    server::{Error, Exchange, Handler, Http, HttpOptions, Secured},
};
use tls::{Identity, Key, Keys, PublicKey};

/// Responds with the client's key.
struct Who;

impl<C: Connection> Handler<C> for Who {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let key = exchange.connection().proven_key().map(|bytes| PublicKey::try_from(bytes).unwrap());
        let text = key.map_or_else(|| "nobody".to_owned(), |key| key.to_string());
        exchange.respond(200).text(&text)
    }
}

struct Whos;

impl Factory for Whos {
    type Service<C: Connection> = Http<Who>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        Ok(Http::new(Who, HttpOptions::default()))
    }
}

fn serve(model: Model, identity: Identity) -> engine::Server {
    let options = Options { loops: 1, workers: 2, ..Options::new("127.0.0.1:0".parse().unwrap()) };
    let factory = Secured::new(Whos, identity, HttpOptions::default(), Arc::default());
    engine::start(model, &options, factory).unwrap()
}

fn key(number: u8) -> Key {
    Key::from_seed(&[number; 32]).unwrap()
}

fn keys(numbers: &[u8]) -> Keys {
    numbers.iter().map(|number| key(*number).public()).collect()
}

/// The client's key as the server sees it, several times: connections are kept, and sessions resumed.
fn ask(to: SocketAddr, trust: &Trust) -> Result<String, ClientError> {
    let server = Upstream::secure(to, trust.peer("127.0.0.1").unwrap());
    let mut said = String::new();
    for _ in 0..2 {
        let mut caller = BlockingClient::new(server.clone(), ClientOptions::default());
        for _ in 0..2 {
            let answer = caller.send(&Request::new(Method::Get, "/"))?;
            let now = String::from_utf8(answer.into_body()).unwrap();
            assert!(said.is_empty() || said == now, "{said} and {now}");
            said = now;
        }
    }
    Ok(said)
}

fn refusal(asked: Result<String, ClientError>) -> Insecurity {
    match asked {
        Err(ClientError::Insecure { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_ends_know_each_other_by_key_under_every_model() {
    for &model in Model::ALL {
        let server = serve(model, Identity::of_key(&key(1), None).unwrap());
        let asked = ask(server.local_addr(), &Trust::of_keys(&key(2), keys(&[1, 3])).unwrap());
        assert_eq!(asked.unwrap(), key(2).public().to_string(), "{model}");
    }
}

#[test]
fn a_server_whose_key_is_not_on_the_list_is_told_nothing() {
    let server = serve(Model::Epoll, Identity::of_key(&key(1), None).unwrap());
    let asked = ask(server.local_addr(), &Trust::of_keys(&key(2), keys(&[2, 3])).unwrap());
    assert!(matches!(refusal(asked), Insecurity::UnknownKey(shown) if shown == key(1).public()));
}

/// A certificate for this machine.
fn certificate(folder: &Path) -> (Identity, Trust) {
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let [certificate, private] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    std::fs::write(&certificate, pair.cert.pem()).unwrap();
    std::fs::write(&private, pair.signing_key.serialize_pem()).unwrap();
    (Identity::load(&certificate, &private).unwrap(), Trust::of_file(&certificate).unwrap())
}

#[test]
fn who_knows_no_keys_sees_the_certificate_and_is_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (certified, authorities) = certificate(folder.path());
    let by_key = Trust::of_keys(&key(2), keys(&[1])).unwrap();

    let both = serve(Model::Epoll, Identity::of_key(&key(1), Some(certified.clone())).unwrap());
    assert_eq!(ask(both.local_addr(), &authorities).unwrap(), "nobody");
    assert_eq!(ask(both.local_addr(), &by_key).unwrap(), key(2).public().to_string());

    let without_key = serve(Model::Epoll, certified);
    assert!(matches!(refusal(ask(without_key.local_addr(), &by_key)), Insecurity::NoKey));
    let key_alone = serve(Model::Epoll, Identity::of_key(&key(1), None).unwrap());
    let refused = refusal(ask(key_alone.local_addr(), &authorities)).to_string();
    assert!(refused.contains("is not trusted") || refused.contains("certificate"), "{refused}");
}
