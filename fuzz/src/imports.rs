//! What scenarios are made of: command lines of curl, recordings of browsers, descriptions of APIs.

use std::path::Path;

use import::{Body, Imported, Value};
use load::Scenario;
use serde::de::IgnoredAny;
use serde_json::{Value as Json, json};

/// A secret, put under names that say that it is one.
const SECRET: &str = "s3cret-8a61";

/// The longest file that is made of what a description repeats, bytes: three limits of 16 MiB, with each byte escaped twice.
const REPEATED_MAX: usize = 512 << 20;
/// How much longer than what was read may be what is made of the rest.
const TIMES_MAX: usize = 64;

pub(crate) fn import(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for base in [None, Some("http://127.0.0.1:1/v2")] {
        if let Ok(imported) = import::read(text, base) {
            is_a_scenario(imported, text.len());
        }
    }
    // Then it may stand where nothing says that it is one.
    if text.contains(SECRET) {
        return;
    }
    let with_secrets = [in_command(text), in_recording(text), in_body(text), in_description(text)];
    for text in with_secrets.into_iter().flatten() {
        if let Ok(imported) = import::read(&text, None) {
            let told = format!("{:?}", imported.left_out);
            let written = imported.to_toml("fuzz");
            assert!(
                !written.contains(SECRET) && !told.contains(SECRET),
                "a secret is kept: {written}\n{told}"
            );
        }
    }
}

/// What is written can be read. Other files, and variables that are not set, are not looked for.
fn is_a_scenario(mut imported: Imported, read: usize) {
    for (_, value) in &mut imported.values {
        if matches!(value, Value::Env(_)) {
            *value = Value::Items(vec!["x".to_owned()]);
        }
    }
    for request in &mut imported.requests {
        if matches!(request.body, Some(Body::File(_))) {
            request.body = None;
        }
    }
    let written = imported.to_toml("fuzz");
    assert!(written.len() <= REPEATED_MAX + TIMES_MAX * read, "{read} bytes made {}", written.len());
    if let Err(error) = Scenario::from_toml(Path::new("nowhere/scenario.toml"), &written) {
        panic!("it is no scenario: {error}\n{written}");
    }
}

/// A command line with secrets in front of its other words.
fn in_command(text: &str) -> Option<String> {
    let rest = text.trim_start().strip_prefix("curl")?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let secrets = format!(
        "-H 'X-Api-Key: {SECRET}' --oauth2-bearer {SECRET} -b sid={SECRET} -u a:{SECRET} 'http://a/?token={SECRET}'"
    );
    Some(format!("curl {secrets}{rest}"))
}

/// A recording with a secret in a header and in the query of each request.
fn in_recording(text: &str) -> Option<String> {
    let mut recording: Json = serde_json::from_str(text).ok()?;
    for entry in recording.pointer_mut("/log/entries")?.as_array_mut()? {
        if let Some(Json::Array(headers)) = entry.pointer_mut("/request/headers") {
            headers.push(json!({"name": "Authorization", "value": SECRET}));
        }
        if let Some(Json::String(url)) = entry.pointer_mut("/request/url") {
            let begins = if url.contains('?') { '&' } else { '?' };
            *url = format!("{url}{begins}token={SECRET}");
        }
    }
    Some(recording.to_string())
}

/// JSON with secrets behind and in front of what was given, which stays as it was written.
fn with_secrets(text: &str) -> Option<String> {
    let body = format!(
        r#"{{"a":{text},"password":["{SECRET}",{text},{{"b":"{SECRET}"}}],"b":{text},"pin":"{SECRET}","a":{{"x":{text}}}}}"#
    );
    serde_json::from_str::<IgnoredAny>(text).and(serde_json::from_str::<IgnoredAny>(&body)).ok()?;
    Some(body)
}

/// A recording of a request with such a body.
fn in_body(text: &str) -> Option<String> {
    let data = json!({"mimeType": "application/json", "text": with_secrets(text)?});
    let request = json!({"method": "POST", "url": "http://a/", "postData": data});
    Some(json!({"log": {"entries": [{"request": request, "response": {"status": 200}}]}}).to_string())
}

/// A description with such an example of a body, and of parameters.
fn in_description(text: &str) -> Option<String> {
    let example = with_secrets(text)?;
    let body = format!(r#"{{"content":{{"application/json":{{"example":{example}}}}}}}"#);
    let parameter = |name: &str, place: &str, rest: &str| {
        format!(r#"{{"name":"{name}","in":"{place}","required":true,{rest}}}"#)
    };
    let parameters = [
        parameter("X-Api-Key", "header", &format!(r#""example":"{SECRET}""#)),
        parameter("q", "query", &format!(r#""content":{{"application/json":{{"example":{example}}}}}"#)),
        parameter("r", "query", &format!(r#""schema":{{"default":{example}}}"#)),
        parameter("c", "cookie", &format!(r#""example":[{example},1]"#)),
    ]
    .join(",");
    Some(format!(
        r#"{{"openapi":"3.1.0","paths":{{"/a":{{"post":{{"parameters":[{parameters}],"requestBody":{body}}}}}}}}}"#
    ))
}
