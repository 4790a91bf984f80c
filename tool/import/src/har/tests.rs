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
