use proptest::prelude::*;

use super::*;
use crate::scenario::Value;

fn command(text: &str) -> Curl {
    text.parse().unwrap()
}

fn fault(text: &str) -> CurlError {
    text.parse::<Curl>().unwrap_err()
}

#[test]
fn data_makes_a_post_with_its_type() {
    let curl = command("curl -sd a=1 --data-raw 'b=@x' --data-urlencode 'c=1 2' http://h:81/p?q=1#part");
    assert_eq!((curl.method.as_str(), curl.urls[0].as_str()), ("POST", "http://h:81/p?q=1"));
    assert_eq!(curl.headers, [("Content-Type".into(), "application/x-www-form-urlencoded".into())]);
    assert!(curl.body == Some(Body::Text("a=1&b=@x&c=1+2".into())));
    let curl = command("curl -G -d a=1 h/p?q=1");
    assert_eq!((curl.method.as_str(), curl.urls[0].as_str()), ("GET", "http://h/p?q=1&a=1"));
    assert!(command("curl -XDELETE h -H 'Content-Type: text/plain' -d x").method == "DELETE");
    assert!(command("curl -T file.bin h").body == Some(Body::File("file.bin".into())));
    let json = command("curl --json '{}' h");
    assert_eq!(header(&json.headers, "accept"), Some("application/json"));
}

/// They were joined by `&`, as pieces of `-d` are, and each brought a header.
#[test]
fn pieces_of_json_make_one_text() {
    let json = command(r#"curl --json '{"room":' --json '7}' h"#);
    assert!(json.body == Some(Body::Text(r#"{"room":7}"#.into())));
    let accepts = json.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
    assert_eq!(accepts.count(), 1);
    assert_eq!(header(&json.headers, "content-type"), Some("application/json"));
    let mixed = command("curl -d a=1 -d b=2 --json '{}' -d c h");
    assert!(mixed.body == Some(Body::Text("a=1&b=2{}&c".into())));
    assert_eq!(header(&mixed.headers, "content-type"), Some("application/json"));
    let own = command("curl --json '{}' -H 'Accept: text/plain' h");
    assert_eq!(header(&own.headers, "accept"), Some("text/plain"));
    let in_query = command("curl -G --json a --json b h");
    assert_eq!(in_query.urls[0].as_str(), "http://h/?ab");
}

/// curl reads `--json @FILE` as it reads `-d @FILE`; it was sent as the text `@FILE`.
#[test]
fn json_may_come_from_a_file() {
    let json = command("curl --json @body.json h");
    assert!(json.body == Some(Body::File("body.json".into())));
    assert_eq!(json.method, "POST");
    assert_eq!(header(&json.headers, "content-type"), Some("application/json"));
}

#[test]
fn options_that_change_nothing_are_told() {
    let curl = command("curl -skLm 5 -o /dev/null --compressed -u joe:pw -A me h");
    assert!(curl.insecure && curl.credentials == Some(("joe".into(), "pw".into())));
    let options = ["-L", "-m"].map(|option| LeftOut::CurlOption { option: option.into() });
    assert_eq!(curl.left_out, options);
    assert_eq!(header(&curl.headers, "user-agent"), Some("me"));
}

#[test]
fn mistakes_are_told_without_what_may_be_secret() {
    assert_eq!(fault("wget http://h"), CurlError::NotCurl);
    assert_eq!(fault("curl -H"), CurlError::Value("-H".into()));
    assert_eq!(fault("curl -H secret h"), CurlError::Header);
    assert_eq!(fault("curl --form a=b h"), CurlError::Option("--form".into()));
    assert_eq!(fault("curl --tokn=s3cret h"), CurlError::Option("--tokn".into()));
    assert_eq!(fault("curl -s"), CurlError::NoUrl);
    assert_eq!(fault("curl ftp://h"), CurlError::Scheme);
    assert_eq!(fault("curl -d @a -d b h"), CurlError::File);
    assert_eq!(fault("curl -X 'GET /' h"), CurlError::Method);
}

#[test]
fn secrets_are_taken_from_the_environment() {
    let text = "curl 'https://h/p?page=2&api_key=k%26ey' -u 'joe:pass1' -b sid=abc -H 'X-Note: ${x}' --json \
                '{\"user\":\"joe\",\"password\":\"hun\\\"ter2\",\"n\":1}'";
    let imported = command(text).into_scenario().unwrap();
    let toml = imported.to_toml("mine");
    for secret in ["pass1", "abc", "k%26ey", "k&ey", "ter2"] {
        assert!(!toml.contains(secret), "{toml}");
    }
    assert!(toml.contains(r#"path = "/p?page=2&api_key=${api_key}""#), "{toml}");
    assert!(toml.contains(r#"body = '{"user":"joe","password":"${password}","n":1}'"#), "{toml}");
    assert!(toml.contains(r#"X-Note = "$${x}""#), "{toml}");
    assert!(toml.contains(r#"basic_auth = { name = "joe", password = "${password_2}" }"#), "{toml}");
    assert!(imported.values.contains(&("cookie".into(), Value::Env("COOKIE".into()))));
    let told = |variable: &str| {
        let is_told =
            |what: &LeftOut| matches!(what, LeftOut::Secret { variable: told, .. } if told == variable);
        imported.left_out.iter().any(is_told)
    };
    assert!(["API_KEY", "COOKIE", "PASSWORD", "PASSWORD_2"].into_iter().all(told));
}

/// It became a scenario without a request, which nothing reads.
#[test]
fn a_body_that_looks_like_a_file_is_refused() {
    let refused = command("curl --data-raw '@x' h").into_scenario().unwrap_err();
    assert!(refused.to_string().contains("begins with `@`"), "{refused}");
}

/// A scenario with that URL was refused when it was read again.
#[test]
fn port_0_is_refused() {
    assert_eq!(fault("curl http://h:0/"), CurlError::Url(url::ParseError::InvalidPort));
}

/// A long body was copied for each of thousands of URLs.
#[test]
fn what_is_sent_to_many_urls_is_not_copied_without_limit() {
    let urls: String = (0..40).map(|number| format!(" h/{number}")).collect();
    let text = format!("curl -d {} {urls}", "x".repeat(1 << 20));
    let imported = command(&text).into_scenario().unwrap();
    assert_eq!(imported.requests.len(), 15);
    assert!(imported.left_out.contains(&LeftOut::Copies { requests: 25 }));
}

/// What lay under a name was replaced wherever the same characters stood in the text, and not where that name came twice or
/// the text was written with escapes.
#[test]
fn secrets_in_json_are_replaced_where_they_stand() {
    let body = r#"{"token":",","password":"s3cret","a":["b","c"],"password":"s3cr\u0065t2","copy":"s3cret","n":"${x}"}"#;
    let imported = command(&format!("curl --json '{body}' h")).into_scenario().unwrap();
    let expected = r#"{"token":"${token}","password":"${password}","a":["b","c"],"password":"${password_2}","copy":"${password}","n":"$${x}"}"#;
    assert!(imported.requests[0].body == Some(Body::Text(expected.into())), "{}", imported.to_toml("x"));
}

/// Lines of JSON, as in bulk requests, and lists in hundreds of others were taken for no JSON, and kept what they held.
#[test]
fn secrets_in_lines_of_json_and_deep_in_lists_are_replaced() {
    let lines = command(
        "curl --data-raw $'{\"token\":\"s3cret\"}\\n{\"a\":{\"pwd\":\"s3cret2\"}}' -H 'Content-Type: a/b' h",
    );
    let lines = lines.into_scenario().unwrap();
    let expected = "{\"token\":\"${token}\"}\n{\"a\":{\"pwd\":\"${pwd}\"}}";
    assert!(lines.requests[0].body == Some(Body::Text(expected.into())), "{}", lines.to_toml("x"));
    let (open, close) = ("[".repeat(300), "]".repeat(300));
    let deep = command(&format!("curl --json '{open}{{\"token\":\"s3cret\"}}{close}' h"));
    assert!(!deep.into_scenario().unwrap().to_toml("x").contains("s3cret"));
}

/// `user%5Bpin%5D`, and the like.
#[test]
fn the_name_of_a_secret_may_be_percent_encoded() {
    let curl = command("curl 'http://h/?%5Bpin%5D=1234&%70wd=x1' -d 'a%5Bpassword%5D=s3cret'");
    let toml = curl.into_scenario().unwrap().to_toml("x");
    assert!(!toml.contains("1234") && !toml.contains("x1") && !toml.contains("s3cret"), "{toml}");
}

proptest! {
    #[test]
    fn any_words_are_read_or_refused_without_panic(
        text in "curl( (-[a-zA-Z#]{1,3}|--[a-z-]{1,12}|[ -~é]{0,12}|'[^']{0,9}'|\\$'[ -~]{0,9}')){0,6}"
    ) {
        if let Ok(curl) = text.parse::<Curl>() {
            let _ = curl.into_scenario().map(|imported| imported.to_toml("x"));
        }
    }
}
