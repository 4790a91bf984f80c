//! What the probe reports before a load.

use std::path::Path;
use std::time::Duration;

use analysis::check::{Fault, Kept, Outcome};
use load::{LoadError, Plan, ProbeError, Scenario, check, probe};

use crate::common::{OK, Server, nobody, plan};

fn fault(plan: &load::Plan) -> ProbeError {
    match probe(plan) {
        Err(LoadError::Probe(error)) => error,
        other => panic!("expected a failed probe, got {other:?}"),
    }
}

#[test]
fn a_server_that_answers() {
    let report = probe(&Server::answering(OK).plan()).unwrap().remove(0);
    assert_eq!((report.status, report.status_expected, report.tls), (200, true, None));
    let missing = Server::answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let report = probe(&missing.plan()).unwrap().remove(0);
    assert_eq!((report.status, report.status_expected), (404, false));
}

#[test]
fn a_long_body_is_not_read_to_its_end() {
    let server = Server::start(|mut peer, _| {
        peer.request();
        let _ = peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        while peer.send(&[b'x'; 65_536]).is_ok() {}
    });
    assert_eq!(probe(&server.plan()).unwrap().remove(0).status, 200);
}

#[test]
fn each_fault_has_its_own_error() {
    let (nobody, _kept) = nobody();
    let url = nobody.to_string().replacen("http://", "http://joe:secret@", 1).parse().unwrap();
    let refused = fault(&plan(&url));
    assert!(matches!(refused, ProbeError::Refused { .. }));
    assert!(!format!("{refused} {refused:?}").contains("secret"));

    let garbage = Server::answering(b"220 mail.example ESMTP\r\n");
    assert!(matches!(fault(&garbage.plan()), ProbeError::NotHttp { .. }));
    let closing = Server::start(|mut peer, _| drop(peer.request()));
    assert!(matches!(fault(&closing.plan()), ProbeError::Closed { .. }));
    let silent = Server::start(|mut peer, _| peer.wait_for_end());
    let mut patient = silent.plan();
    patient.timeout = Duration::from_millis(50);
    assert!(matches!(fault(&patient), ProbeError::NoAnswer { .. }));
}

#[test]
fn a_name_that_does_not_resolve() {
    // Names below `.invalid` never resolve (RFC 6761 section 6.4).
    let plan = plan(&"http://nobody.invalid/".parse().unwrap());
    assert!(matches!(probe(&plan), Err(LoadError::Resolve { .. })));
    assert!(matches!(load::Generator::start(&plan), Err(LoadError::Resolve { .. })));
}

#[test]
fn looking_up_a_name_is_timed_and_an_address_takes_no_look_up() {
    let server = Server::answering(OK);
    let lookup = |plan: &Plan| load::Generator::start(plan).unwrap().name_lookup();
    assert_eq!(lookup(&server.plan()), None);
    let named = plan(&format!("http://localhost:{}/", server.address.port()).parse().unwrap());
    assert!(lookup(&named).is_some_and(|took| took > Duration::ZERO));
}

#[test]
fn each_of_several_servers_is_probed() {
    let (good, other) =
        (Server::answering(OK), Server::answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
    let mut plan = good.plan();
    plan.scenario = plan.scenario.with_bases(vec![good.url("/"), other.url("/")]);
    let statuses: Vec<u16> = probe(&plan).unwrap().iter().map(|report| report.status).collect();
    assert_eq!(statuses, [200, 404]);

    let (nobody, _kept) = nobody();
    plan.scenario = plan.scenario.with_bases(vec![good.url("/"), nobody.clone()]);
    let ProbeError::Refused { target, .. } = fault(&plan) else { panic!("a server answered") };
    assert_eq!(target, nobody.to_string());
}

/// Users share the servers in turn, so a value that goes round may name something that one server alone has. The probe took
/// the values of the first user for all, and warned of a 404 that no user would get.
#[test]
fn each_server_is_asked_for_what_its_own_user_asks() {
    const MISSING: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let only = |path: &'static str| {
        Server::start(move |mut peer, _| {
            while let Some(request) = peer.request() {
                let found = request.line.starts_with(&format!("GET {path} "));
                peer.send(if found { OK } else { MISSING }).unwrap();
            }
        })
    };
    let (first, second) = (only("/of-first"), only("/of-second"));
    let text = "[values]\nown = { kind = \"cycle\", items = [\"of-first\", \"of-second\"] }\n\
                [[request]]\npath = \"/${own}\"\n";
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap();
    let plan = Plan::new(scenario.with_bases(vec![first.url("/"), second.url("/")]));
    let statuses: Vec<u16> = probe(&plan).unwrap().iter().map(|report| report.status).collect();
    assert_eq!(statuses, [200, 200]);
}

/// Each request is sent once, in the order of the file, and what one keeps is there for the next.
#[test]
fn a_check_sends_each_request_once_and_in_order() {
    let server = Server::start(|mut peer, _| {
        let Some(request) = peer.request() else { return };
        let answer: &[u8] = match request.line.as_str() {
            "POST /books HTTP/1.1" => b"HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
            "GET /books/7 HTTP/1.1" => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "GET /garbage HTTP/1.1" => b"220 mail.example ESMTP\r\n",
            _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        };
        let _ = peer.send(answer);
    });
    let text = r#"
        [[request]]
        method = "POST"
        path = "/books"
        keep = { name = "book", from = "json:id" }
        [[request]]
        path = "/books/${taken:book}"
        keep = { name = "tag", from = "header:etag" }
        [[request]]
        path = "/books/${taken:book}"
        [[request]]
        path = "/none"
        [[request]]
        path = "/garbage"
    "#;
    let scenario = Scenario::from_toml(Path::new("x.toml"), text).unwrap().with_base(server.url("/"));
    let checked = check(&Plan::new(scenario)).unwrap();
    let outcomes: Vec<_> = checked
        .iter()
        .map(|checked| match &checked.outcome {
            Outcome::Answered(answered) => Ok((answered.status, answered.fault, answered.kept.clone())),
            other => Err(other.clone()),
        })
        .collect();
    assert_eq!(outcomes[0], Ok((201, None, Some(Kept { list: "book".into(), value: "7".into() }))));
    assert_eq!(outcomes[1], Ok((200, Some(Fault::NothingToKeep), None)));
    assert_eq!(outcomes[2], Err(Outcome::NothingToTake { list: "book".into() }));
    assert_eq!(outcomes[3], Ok((404, Some(Fault::Status), None)));
    assert!(matches!(&outcomes[4], Err(Outcome::Failed { .. })));
    assert_eq!(
        checked.iter().map(|checked| checked.is_success()).collect::<Vec<_>>(),
        [true, false, false, false, false]
    );
}
