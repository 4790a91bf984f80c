//! A bus with TLS that asks for certificates, all signed by an authority of our own.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::*;

/// What a machine shows that our authority knows.
const OURS: [&str; 6] = ["--nats-ca", "ca.pem", "--nats-cert", "ours.pem", "--nats-key", "ours.key"];

/// What a certificate of this machine says.
fn said(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Who signs certificates, with its own in a file.
fn authority(place: &Place, name: &str) -> Issuer<'static, KeyPair> {
    let mut params = said(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    place.write(&format!("{name}.pem"), params.self_signed(&key).expect("a certificate").pem());
    Issuer::new(params, key)
}

/// Writes a certificate of this machine, and its key.
fn certify(place: &Place, name: &str, by: &Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().expect("a key");
    place.write(&format!("{name}.pem"), said(name).signed_by(&key, by).expect("a certificate").pem());
    place.write(&format!("{name}.key"), key.serialize_pem());
}

/// A bus that lets in whoever shows a certificate of one authority, and its URL. Another authority has signed one too.
fn secure_bus(place: &Place) -> Option<(Bus, String)> {
    let (ours, other) = (authority(place, "ca"), authority(place, "other-ca"));
    for (name, by) in [("server", &ours), ("ours", &ours), ("strange", &other)] {
        certify(place, name, by);
    }
    let [certificate, key, ca] =
        ["server.pem", "server.key", "ca.pem"].map(|name| place.path(name).display().to_string());
    // However slow the machine, the handshake is waited for.
    let tls = format!(
        "tls {{ cert_file: {certificate:?}, key_file: {key:?}, ca_file: {ca:?}, verify: true, timeout: 60 }}\n"
    );
    let configuration = place.write("nats.conf", tls).display().to_string();
    let bus = Bus::start(&["-c", &configuration])?;
    let url = format!("tls://127.0.0.1:{}", bus.port);
    Some((bus, url))
}

#[test]
fn a_bus_that_asks_for_certificates_lets_in_whom_its_authority_signed() {
    let place = Place::beside_sleepers();
    let Some((mut bus, url)) = secure_bus(&place) else { return };
    let server = Server::python(COUNTING);
    let mut member = member(&place, &url, &OURS);
    let make_load = || {
        let more = [&["-c", "2", "-n", "10"][..], &OURS[..]].concat();
        println!("{}", load(&place, &server, (&url, "1"), &more).run().exits(0));
        assert_eq!(completed(&place.run_file()), 20);
    };
    make_load();
    // The certificate is shown again to one that restarts.
    bus.restart();
    member.wait_for_stderr("connected to the bus again");
    make_load();
}

#[test]
fn a_certificate_that_will_not_do_is_named_with_what_is_wrong_with_it() {
    let place = Place::beside_others();
    let Some((_bus, url)) = secure_bus(&place) else { return };
    let join = |login: &[&str]| place.nstar(["agent", "--join", &url].iter().chain(login)).run();
    let with = |ca: &str, certificate: &str, key: &str| {
        join(&["--nats-ca", ca, "--nats-cert", certificate, "--nats-key", key]).exits(1)
    };
    join(&["--nats-ca", "ca.pem"]).exits(1).complains(&url).complains("--nats-cert");
    with("ca.pem", "strange.pem", "strange.key").complains(&url).complains("--nats-cert");
    with("other-ca.pem", "ours.pem", "ours.key").complains("no TLS with the bus").complains("--nats-ca");
    with("none.pem", "ours.pem", "ours.key").complains("cannot read none.pem: ");
    with("ca.pem", "none.pem", "ours.key").complains("cannot read none.pem: ");
    with("ca.pem", "ours.pem", ".").complains("cannot read .: ");
    with("ours.key", "ours.pem", "ours.key").complains("cannot read ours.key: it holds no certificate");
    with("ca.pem", "ours.pem", "ca.pem").complains("cannot read ca.pem: it holds no key");
    let of_another = with("ca.pem", "ours.pem", "strange.key");
    of_another.complains("strange.key is not the key of the certificate in ours.pem");
    join(&["--nats-cert", "ours.pem"]).exits(2).complains("--nats-key");
    let pair = ["--nats-cert", "ours.pem", "--nats-key", "ours.key"];
    place.nstar(["agent"].iter().chain(&pair)).run().exits(2).complains("--nats-cert goes with --join");
    let load = ["load", "http://127.0.0.1:9/", "-d", "1s", "--fleet", &url, "--nats-ca", "other-ca.pem"];
    place.nstar(load.iter().chain(&pair)).run().exits(1).complains("--fleet: no TLS with the bus");
}
