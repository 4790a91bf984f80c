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
    let imported = command(text).into_scenario();
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

proptest! {
    #[test]
    fn any_words_are_read_or_refused_without_panic(
        text in "curl( (-[a-zA-Z#]{1,3}|--[a-z-]{1,12}|[ -~é]{0,12}|'[^']{0,9}'|\\$'[ -~]{0,9}')){0,6}"
    ) {
        if let Ok(curl) = text.parse::<Curl>() {
            let _ = curl.into_scenario().to_toml("x");
        }
    }
}
