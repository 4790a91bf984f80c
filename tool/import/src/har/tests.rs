use proptest::prelude::*;

use super::*;

fn entry(method: &str, url: &str, status: i64, more: &str) -> String {
    format!(
        r#"{{"request":{{"method":"{method}","url":"{url}","httpVersion":"h2"{more}}},"response":{{"status":{status}}}}}"#
    )
}

fn recording(entries: &[String]) -> String {
    format!(r#"{{"log":{{"version":"1.2","entries":[{}]}}}}"#, entries.join(","))
}

#[test]
fn requests_to_the_busiest_server_are_kept_and_the_same_ones_are_one() {
    let text = recording(&[
        entry("GET", "https://cdn/x.js", 200, ""),
        entry(
            "GET",
            "https://h/a?x=1",
            200,
            r#","headers":[{"name":":path","value":"/a"},{"name":"Sec-Fetch-Mode","value":"cors"},{"name":"Accept","value":"*/*"}]"#,
        ),
        entry("GET", "https://h/b", 404, ""),
        entry("GET", "https://h/b", 200, ""),
        entry("GET", "wss://h/socket", 101, ""),
        entry("GET", "https://h/blocked", 0, ""),
    ]);
    let imported = read(&text, None).unwrap();
    assert_eq!(imported.base.as_deref(), Some("https://h"));
    let [a, b] = imported.requests.as_slice() else { panic!("{imported:?}") };
    assert_eq!((a.name.as_str(), a.path.as_str(), a.weight), ("GET /a", "/a?x=1", 1));
    assert_eq!(a.headers, [("Accept".into(), "*/*".into())]);
    assert_eq!((b.weight, b.expect.iter().copied().collect::<Vec<_>>()), (2, vec![200, 404]));
    assert_eq!(
        imported.left_out,
        [
            LeftOut::NotHttp { requests: 1 },
            LeftOut::Unanswered { requests: 1 },
            LeftOut::OtherServer { server: "https://cdn".into(), requests: 1 },
            LeftOut::Version { requests: 3 },
            LeftOut::Order,
            LeftOut::Headers { names: vec!["sec-fetch-mode".into()] },
            LeftOut::Expected { request: "GET /b".into(), status: 404 },
        ]
    );
    let other = read(&text, Some("https://cdn/")).unwrap();
    assert_eq!(other.requests[0].name, "GET /x.js");
}

#[test]
fn bodies_are_kept_where_they_are_text() {
    let body = |data: &str| {
        let text = recording(&[
            entry("POST", "http://h/", 200, &format!(r#","postData":{data}"#)),
            entry("GET", "http://h/", 200, ""),
        ]);
        let imported = read(&text, None).unwrap();
        let why = imported.left_out.iter().find_map(|what| match what {
            LeftOut::Request { why, .. } => Some(*why),
            _ => None,
        });
        (imported.requests[0].body.clone(), why)
    };
    let text = |text: &str| (Some(Body::Text(text.into())), None);
    assert!(body(r#"{"mimeType":"text/plain","text":"hi"}"#) == text("hi"));
    let form = r#"{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a","value":"1 2"},{"name":"pwd","value":"x"}]}"#;
    assert!(body(form) == text("a=1+2&pwd=${pwd}"));
    assert!(
        body(r#"{"mimeType":"multipart/form-data; boundary=x","text":"hi"}"#) == (None, Some(Why::Multipart))
    );
    assert!(body(r#"{"mimeType":"x/y","text":"aGk=","encoding":"base64"}"#) == (None, Some(Why::Binary)));
    assert!(body(r#"{"mimeType":"x/y","text":"@hi"}"#) == (None, Some(Why::LikeFile)));
}

#[test]
fn secrets_in_lists_and_objects_are_replaced_or_told() {
    let data = r#","postData":{"mimeType":"application/json","text":"{\"tokens\":[\"s3cret\",7],\"session\":{\"id\":\"s3cret2\"}}"}"#;
    let imported = read(&recording(&[entry("POST", "http://h/", 200, data)]), None).unwrap();
    let body = r#"{"tokens":["${tokens}",7],"session":{"id":"${session}"}}"#;
    assert!(imported.requests[0].body == Some(Body::Text(body.into())));
    for what in [
        secret("tokens", "TOKENS"),
        secret("session", "SESSION"),
        LeftOut::SecretInBody { request: "POST /".into(), name: "tokens".into() },
    ] {
        assert!(imported.left_out.contains(&what), "{what:?}");
    }
}

/// Thousands of texts under one name became as many variables, each of which was to be set before a run.
#[test]
fn many_secrets_of_one_name_have_a_few_variables() {
    let entries: Vec<String> = (0..2_000)
        .map(|number| {
            let headers = format!(r#","headers":[{{"name":"X-CSRF-Token","value":"s3cret{number}"}}]"#);
            entry("GET", "http://h/", 200, &headers)
        })
        .collect();
    let imported = read(&recording(&entries), None).unwrap();
    assert_eq!((imported.values.len(), imported.requests.len()), (16, 16));
    assert_eq!(imported.requests[15].weight, 1_985);
    let (name, variable) = ("X-CSRF-Token".to_owned(), "X_CSRF_TOKEN_16".to_owned());
    assert!(imported.left_out.contains(&LeftOut::SharedVariable { name, variable, others: 1_984 }));
    assert!(!imported.to_toml("x").contains("s3cret"));
}

/// A long name was written for each of the texts below it.
#[test]
fn the_name_of_a_secret_is_cut_where_it_stands_for_its_texts() {
    let name = format!("token{}", "x".repeat(10_000));
    let body = serde_json::json!({name: vec!["s"; 1_000]}).to_string();
    let data = serde_json::json!({"mimeType": "application/json", "text": body});
    let text = recording(&[entry("POST", "http://h/", 200, &format!(r#","postData":{data}"#))]);
    assert!(read(&text, None).unwrap().to_toml("x").len() < 200_000);
}

/// Name, path, headers and body of a request.
type Written<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, &'a str);

fn written(request: &Request) -> Written<'_> {
    let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = match &request.body {
        Some(Body::Text(text)) => text.as_str(),
        _ => "",
    };
    (request.name.as_str(), request.path.as_str(), headers, body)
}

fn all_written(imported: &Imported) -> Vec<Written<'_>> {
    imported.requests.iter().map(written).collect()
}

fn secret(name: &str, variable: &str) -> LeftOut {
    LeftOut::Secret { name: name.into(), variable: variable.into() }
}

/// HTTP/2, caches, a service worker, what a blocker stopped, a WebSocket, `data:` and `blob:`, forms and files.
#[test]
fn a_recording_of_chromium() {
    let imported = read(include_str!("chromium.har"), None).unwrap();
    let agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36";
    let page = vec![
        ("accept", "text/html"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("cookie", "${cookie}"),
        ("user-agent", agent),
    ];
    let login = vec![
        ("authorization", "${authorization}"),
        ("content-type", "application/json"),
        ("referer", "https://shop.example/?token=${token}&page=1"),
        ("user-agent", agent),
    ];
    let login_body = r#"{"user":"ann","password":"${password}","pin":7}"#;
    let search = vec![("content-type", "application/x-www-form-urlencoded"), ("user-agent", agent)];
    let expected = [
        ("GET /", "/", page, ""),
        ("POST /api/login", "/api/login", login, login_body),
        ("POST /search", "/search?q=tea", search, "sort=price+up&csrf_token=${csrf_token}"),
    ];
    assert_eq!(all_written(&imported), expected);
    let passing = ["content-length", "priority", "sec-ch-ua", "sec-fetch-mode", "upgrade-insecure-requests"];
    let left_out = [
        LeftOut::NotHttp { requests: 3 },
        LeftOut::Unanswered { requests: 3 },
        secret("cookie", "COOKIE"),
        secret("authorization", "AUTHORIZATION"),
        secret("token", "TOKEN"),
        secret("password", "PASSWORD"),
        LeftOut::SecretInBody { request: "POST /api/login".into(), name: "pin".into() },
        secret("csrf_token", "CSRF_TOKEN"),
        LeftOut::Request { request: "POST /photo".into(), why: Why::Multipart },
        LeftOut::OtherServer { server: "https://cdn.example".into(), requests: 1 },
        LeftOut::Version { requests: 4 },
        LeftOut::Order,
        LeftOut::Headers { names: passing.map(str::to_owned).into() },
        LeftOut::Bodies,
    ];
    assert_eq!(imported.left_out, left_out);
    assert!(!imported.to_toml("x").contains("s3cret"), "{}", imported.to_toml("x"));
}

/// A page that was asked for again, what a blocker stopped, a WebSocket with the URL of HTTP, and headers before a form.
#[test]
fn a_recording_of_firefox() {
    let imported = read(include_str!("firefox.har"), None).unwrap();
    let common = [
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"),
        ("Accept", "*/*"),
        ("Accept-Language", "de,en;q=0.5"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ];
    let form = "application/x-www-form-urlencoded";
    let login = [("Content-Type", form), ("Authorization", "${authorization}"), ("Cookie", "${cookie}")];
    let with = |more: &[(&'static str, &'static str)]| [&common[..], more].concat();
    let expected = [
        ("GET /", "/", with(&[("Cookie", "${cookie}")]), ""),
        ("GET /logo.png", "/logo.png", with(&[]), ""),
        ("POST /login", "/login", with(&login), "user=ann&pwd=${pwd}"),
        ("PUT /cart", "/cart", with(&[("Content-Type", "application/json")]), r#"{"item":7}"#),
    ];
    assert_eq!(all_written(&imported), expected);
    assert_eq!(imported.requests[0].weight, 2);
    let passing = ["connection", "content-length", "if-none-match", "sec-fetch-site", "te"];
    let left_out = [
        LeftOut::NotHttp { requests: 1 },
        LeftOut::Unanswered { requests: 1 },
        secret("Cookie", "COOKIE"),
        secret("Authorization", "AUTHORIZATION"),
        secret("pwd", "_PWD"),
        LeftOut::Request { request: "POST /raw".into(), why: Why::Binary },
        LeftOut::Version { requests: 6 },
        LeftOut::Order,
        LeftOut::Headers { names: passing.map(str::to_owned).into() },
        LeftOut::Bodies,
        LeftOut::Expected { request: "POST /login".into(), status: 401 },
    ];
    assert_eq!(imported.left_out, left_out);
    let toml = imported.to_toml("x");
    assert!(!toml.contains("s3cret") && !toml.contains("czNjcmV0"), "{toml}");
}

#[test]
fn fields_may_be_null() {
    let entry = r#"{"request":{"method":"POST","url":"http://h/","httpVersion":null,
        "headers":[{"name":"X","value":null}],"postData":{"mimeType":null,"text":"a","params":null}},
        "response":{"status":200}}"#;
    let imported = read(&recording(&[entry.into()]), None).unwrap();
    assert_eq!(all_written(&imported), [("POST /", "/", vec![("X", "")], "a")]);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let fault = |text: &str| read(text, None).unwrap_err();
    assert!(matches!(fault("{"), ImportError::Json(reason) if reason.contains("line 1")));
    assert!(matches!(fault("{}"), ImportError::Unknown));
    let entry = r#"{"log":{"entries":[{"request":{"method":7,"url":"http://h/"}}]}}"#;
    assert!(
        matches!(fault(entry), ImportError::Field { path, .. } if path == "log.entries[0].request.method")
    );
    assert!(matches!(fault(&recording(&[])), ImportError::Nothing(_)));
}

proptest! {
    #[test]
    fn any_request_is_read_or_refused_without_panic(
        method in "[A-Za-z ]{0,4}", url in "(https?://)?[ -~é]{0,20}", name in "[ -~]{0,12}", value in "\\PC{0,12}",
        data in "\\PC{0,20}", status in any::<i64>(),
    ) {
        let json = serde_json::json!({"log": {"entries": [{
            "request": {
                "method": method, "url": url, "headers": [{"name": name, "value": value}],
                "postData": {"mimeType": "application/json", "text": data},
            },
            "response": {"status": status},
        }]}});
        if let Ok(imported) = read(&json.to_string(), None) {
            let _ = imported.to_toml("x");
        }
    }
}
