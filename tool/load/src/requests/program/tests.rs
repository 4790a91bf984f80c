use std::path::Path;

use proptest::prelude::*;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::*;
use crate::{Credentials, RequestTemplate};

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn program(toml: &str, base: &str) -> Program {
    Program::new(&Scenario::from_toml(Path::new("s.toml"), toml).unwrap(), &url(base), false)
}

fn render(program: &Program, stream: &mut UserStream, scratch: &mut Scratch) -> String {
    let index = program.pick(stream).request;
    String::from_utf8(program.render(index, stream, scratch).bytes.to_vec()).unwrap()
}

fn single(template: RequestTemplate, target: &str, close: bool) -> String {
    let scenario = Scenario::single(&url(target), template).unwrap();
    let program = Program::new(&scenario, scenario.base().unwrap(), close);
    render(&program, &mut program.stream(1, 0), &mut Scratch::default())
}

#[test]
fn a_plain_get() {
    let sent = single(RequestTemplate::default(), "http://h:8080/a?b=c", false);
    assert_eq!(sent, "GET /a?b=c HTTP/1.1\r\nHost: h:8080\r\n\r\n");
    let sent = single(RequestTemplate::default(), "http://h/", true);
    assert_eq!(sent, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
}

#[test]
fn flags_and_credentials() {
    // The example of RFC 7617 section 2.
    let credentials = Credentials { name: "Aladdin".into(), password: "open sesame".into() };
    let template = RequestTemplate {
        method: "POST".into(),
        headers: vec!["host: other".into(), "X-A:  b ".into()],
        body: b"hi".to_vec(),
        credentials: Some(credentials),
        ..RequestTemplate::default()
    };
    let expected = "POST / HTTP/1.1\r\nhost: other\r\nX-A: b\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\
                    Content-Length: 2\r\n\r\nhi";
    assert_eq!(single(template.clone(), "http://h/", false), expected);
    assert!(!format!("{template:?}").contains("sesame"));
    let from_url = single(RequestTemplate::default(), "http://Aladdin:open%20sesame@h/", false);
    assert!(from_url.contains("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"), "{from_url}");
}

#[test]
fn flags_that_would_break_the_request_are_refused() {
    let with = |method: &str, header: &str| RequestTemplate {
        method: method.into(),
        headers: vec![header.into()],
        ..RequestTemplate::default()
    };
    for template in
        [with("GE T", "a: b"), with("GET", "a b: c"), with("GET", "none"), with("GET", "a: b\r\nc: d")]
    {
        assert!(Scenario::single(&url("http://h/"), template).is_err());
    }
}

#[test]
fn values_are_drawn_once_per_request_and_encoded_where_they_stand() {
    let toml = r#"
        [values]
        city = { kind = "cycle", items = ["New Delhi?", "Ooty"] }
        [[request]]
        method = "PUT"
        path = "/c/${city}"
        headers = { X-City = "${city}" }
        body = "<${city}>"
        basic_auth = { name = "u-${city}", password = "p" }
    "#;
    let program = program(toml, "http://h/api/");
    let mut stream = program.stream(1, 0);
    let mut scratch = Scratch::default();
    let auth = BASE64.encode("u-New Delhi?:p");
    let first = format!(
        "PUT /api/c/New%20Delhi%3F HTTP/1.1\r\nHost: h\r\nX-City: New Delhi?\r\nAuthorization: Basic {auth}\r\n\
         Content-Length: 12\r\n\r\n<New Delhi?>"
    );
    assert_eq!(render(&program, &mut stream, &mut scratch), first);
    assert!(render(&program, &mut stream, &mut scratch).ends_with("Content-Length: 6\r\n\r\n<Ooty>"));
}

#[test]
fn requests_are_picked_by_weight() {
    let toml = "[[request]]\npath = \"/a\"\nweight = 7\n[[request]]\npath = \"/b\"\nweight = 3\n";
    let program = program(toml, "http://h/");
    let mut stream = program.stream(1, 0);
    let first = (0..10_000).filter(|_| program.pick(&mut stream).request == 0).count();
    // Standard deviation 46.
    assert!(first.abs_diff(7_000) < 230, "{first}");
}

proptest! {
    /// Whatever the values, the request parses, Content-Length is right, and the slots hold the draws.
    #[test]
    fn the_rendered_bytes_are_a_request(
        items in prop::collection::vec("[^\\p{C}\"\\\\]{0,12}", 1..4),
        seed: u64,
        user in 0u32..1000,
    ) {
        let list: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
        let toml = format!(
            "[values]\nv = {{ kind = \"cycle\", items = [{}] }}\nr = {{ kind = \"random\", max = 99999 }}\n\
             [[request]]\nmethod = \"POST\"\npath = \"/x/${{v}}/${{r}}\"\nbody = \"${{r}}|${{v}}|${{r}}\"\n",
            list.join(",")
        );
        prop_assume!(Scenario::from_toml(Path::new("s.toml"), &toml).is_ok());
        let program = program(&toml, "http://h/");
        let mut scratch = Scratch::default();
        let mut stream = program.stream(seed, user);
        let mut again = program.stream(seed, user);
        for k in 0..3 {
            let bytes = program.render(0, &mut stream, &mut scratch).bytes.to_vec();
            let same = program.render(0, &mut again, &mut scratch).bytes.to_vec();
            prop_assert_eq!(&bytes, &same);
            let head = wire::request::parse(&bytes, &wire::Limits::default()).unwrap().unwrap();
            let body = std::str::from_utf8(&bytes[head.len..]).unwrap();
            prop_assert_eq!(head.framing, wire::Framing::Length(body.len() as u64));
            let (before, rest) = body.split_once('|').unwrap();
            let (item, after) = rest.rsplit_once('|').unwrap();
            prop_assert_eq!(before, after);
            prop_assert_eq!(item, &items[(user as usize + k) % items.len()]);
        }
    }

    /// A generated body has the length that its head gives, which is one of the sizes, and comes piece by piece.
    #[test]
    fn a_generated_body_has_the_length_its_head_says(
        sizes in prop::collection::vec(0_u64..700_000, 1..4),
        counted: bool,
        seed: u64,
    ) {
        let path = if counted { "/${n}" } else { "/" };
        let toml = format!(
            "[values]\nn = {{ kind = \"counter\" }}\n[[request]]\nmethod = \"POST\"\npath = \"{path}\"\n\
             body = {{ sizes = {sizes:?} }}\n"
        );
        let program = program(&toml, "http://h/");
        let (mut stream, mut scratch) = (program.stream(seed, 0), Scratch::default());
        for _ in 0..4 {
            let rendered = program.render(0, &mut stream, &mut scratch);
            let mut bytes = rendered.bytes.to_vec();
            while (bytes.len() as u64) < rendered.whole {
                let piece = program.fill(bytes.len() as u64 - rendered.head, rendered.whole - bytes.len() as u64);
                bytes.extend_from_slice(piece);
            }
            let head = wire::request::parse(&bytes, &wire::Limits::default()).unwrap().unwrap();
            let length = bytes.len() - head.len;
            prop_assert_eq!((bytes.len() as u64, head.len as u64), (rendered.whole, rendered.head));
            prop_assert!(sizes.contains(&(length as u64)));
            let framing = if length == 0 { wire::Framing::None } else { wire::Framing::Length(length as u64) };
            prop_assert_eq!(head.framing, framing);
            // The part rendered with the head is the beginning of the same body.
            let body = |position: usize| program.fill(position as u64, 1)[0];
            prop_assert!(length == 0 || bytes[head.len] == body(0) && bytes[bytes.len() - 1] == body(length - 1));
            prop_assert!(rendered.bytes.len() <= head.len + 4_096);
        }
    }
}

const BOOK_OR_CANCEL: &str = r#"
    [[request]]
    weight = 30
    method = "DELETE"
    path = "/b/${taken:id}"
    body = "${taken:id} again"
    [[request]]
    weight = 50
    path = "/book"
    keep = { name = "id", from = "json:id" }
    [[request]]
    weight = 20
    path = "/look"
"#;

#[test]
fn a_captured_value_is_taken_once_and_encoded() {
    let program = program(BOOK_OR_CANCEL, "http://h/");
    let (mut stream, mut scratch) = (program.stream(1, 0), Scratch::default());
    assert!(stream.captured.add(0, b"a b"));
    let sent = program.render(0, &mut stream, &mut scratch).bytes.to_vec();
    let sent = String::from_utf8(sent).unwrap();
    assert!(sent.starts_with("DELETE /b/a%20b HTTP/1.1\r\n") && sent.ends_with("a b again"), "{sent}");
    assert!(!stream.captured.has(0));
}

#[test]
fn a_captured_path_is_sent_unchanged() {
    let text = "[[request]]\npath = \"${taken:p}\"\n[[request]]\npath = \"/\"\nkeep = { name = \"p\", from = \"header:location\" }\n";
    let program = program(text, "http://h/base/");
    let (mut stream, mut scratch) = (program.stream(1, 0), Scratch::default());
    stream.captured.add(0, b"/x/%20?y=z");
    let sent = program.render(0, &mut stream, &mut scratch).bytes.to_vec();
    assert!(sent.starts_with(b"GET /x/%20?y=z HTTP/1.1\r\n"), "{}", sent.escape_ascii());
    let sent = program.render(1, &mut stream, &mut scratch).bytes.to_vec();
    assert!(sent.starts_with(b"GET /base/ HTTP/1.1\r\n"), "{}", sent.escape_ascii());
}

proptest! {
    /// No user makes a request that needs a value it does not have.
    #[test]
    fn only_requests_that_can_be_made_are_picked(seed in any::<u64>(), captured in prop::collection::vec(any::<bool>(), 1..200)) {
        let program = program(BOOK_OR_CANCEL, "http://h/");
        let mut stream = program.stream(seed, 0);
        for captures in captured {
            let had = stream.captured.has(0);
            let choice = program.pick(&mut stream);
            prop_assert_eq!(choice.instead_of.is_some(), choice.instead_of == Some(0));
            match choice.request {
                0 => {
                    prop_assert!(had && choice.instead_of.is_none());
                    stream.captured.take(0, &mut Vec::new());
                }
                1 if captures => prop_assert!(stream.captured.add(0, b"x")),
                _ => {}
            }
        }
    }
}

#[test]
fn a_replacement_is_picked_by_weight() {
    let program = program(BOOK_OR_CANCEL, "http://h/");
    let mut stream = program.stream(1, 0);
    let choices: Vec<_> = (0..10_000).map(|_| program.pick(&mut stream)).collect();
    let share = |request| choices.iter().filter(|choice| choice.request == request).count() as f64 / 1e4;
    assert!((share(1) - 5.0 / 7.0).abs() < 0.02 && (share(2) - 2.0 / 7.0).abs() < 0.02);
    let replaced = choices.iter().filter(|choice| choice.instead_of == Some(0)).count() as f64 / 1e4;
    assert!((replaced - 0.3).abs() < 0.02, "{replaced}");
}
